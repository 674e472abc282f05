"""Our policies with the `predict` of Stable-Baselines3, which its evaluation and vectorised environments take."""

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np

from iap.envs.core import action_map
from iap.policies import Policy

States = tuple[Any, ...]


class Predictor:
    """A policy with the interface of a trained agent.

    Example:
        >>> import iap
        >>> from iap.interop.sb3 import Predictor
        >>> from stable_baselines3.common.evaluation import evaluate_policy
        >>> policy = iap.load_policy("zoo:seek")
        >>> env = iap.make_env(policy.env)
        >>> mean, std = evaluate_policy(Predictor(policy, env.action_space), env, n_eval_episodes=2, warn=False)
        >>> 0 < mean < 10
        True
    """

    def __init__(self, policy: Policy, action_space: gymnasium.Space) -> None:
        """A predictor for environments with this action space, and observations {"image": …, "sensors": …}."""
        self.policy, self.action_space = policy, action_space
        self._to_action = action_map(action_space)

    def predict(
        self,
        observation: Mapping[str, np.ndarray],
        state: States | None = None,
        episode_start: np.ndarray | None = None,
        deterministic: bool = True,
    ) -> tuple[Any, States]:
        """The actions of a batch of observations, or of one, and the states after them.

        Args:
            observation: of one environment, or with a leading axis of environments.
            state: what the last call returned; None at the start.
            episode_start: which environments start an episode; their state is reset.
            deterministic: not used: the policies always are.
        """
        image = self._channels_last(np.asarray(observation["image"]))
        is_batch = image.ndim > len(self.policy.config.image_shape)
        images = image if is_batch else image[None]
        rows = np.asarray(observation.get("sensors", ()), np.float32).reshape(len(images), -1)
        starts = np.zeros(len(images), bool) if episode_start is None else np.atleast_1d(episode_start)
        if state is not None and len(state) != len(images):
            raise ValueError(f"state must be of {len(images)} environments, not of {len(state)}")
        actions, after = [], []
        for i in range(len(images)):
            before = self.policy.reset() if state is None or starts[i] else state[i]
            action, following, _ = self.policy.act(before, {"image": images[i], "sensors": rows[i]})
            actions.append(self._to_action(action))
            after.append(following)
        return (np.array(actions) if is_batch else actions[0]), tuple(after)

    def _channels_last(self, image: np.ndarray) -> np.ndarray:
        """Images whose channels Stable-Baselines3 moved to the front, as they were."""
        height, width, channels = self.policy.config.image_shape
        return np.moveaxis(image, -3, -1) if image.shape[-3:] == (channels, height, width) else image
