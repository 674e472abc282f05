"""Recorded steps of a policy in its environment: what exported policies are compared with."""

from typing import Any, NamedTuple

import numpy as np

from iap._observations import sensors_of
from iap._validation import require_count
from iap.policies import Policy


class RecordedStep(NamedTuple):
    """One step.

    Attributes:
        starts: whether it is the first of an episode.
        image: the image, if it was encoded; else None.
        sensors: the sensors.
        action: the policy's action in [−1, 1].
        scores: of each patch; None if no image was encoded or without attention.
        selected: indices of the selected patches; None if no image was encoded or without attention.
    """

    starts: bool
    image: np.ndarray | None
    sensors: np.ndarray
    action: np.ndarray
    scores: np.ndarray | None
    selected: np.ndarray | None


def record_steps(policy: Policy, steps: int, seed: int = 0, env: Any = None) -> list[RecordedStep]:
    """Steps of a policy in its environment, in as many episodes as that takes.

    Args:
        policy: the policy.
        steps: their number.
        seed: of the first episode.
        env: another environment than the policy's own: anything that `iap.make_env` takes.
    """
    from iap._api import make_env
    from iap.envs.core import action_map

    require_count("steps", steps)
    if env is None and policy.env is None:
        raise ValueError("env must be given: the policy has none of its own")
    recorded: list[RecordedStep] = []
    made = make_env(policy.env if env is None else env)
    to_action = action_map(made.action_space)
    while len(recorded) < steps:
        observation, _ = made.reset(seed=seed)
        state, ended, starts = policy.reset(seed), False, True
        while not ended and len(recorded) < steps:
            needs_image = policy.needs_image(state)
            action, state, attention = policy.act(state, observation)
            image = np.array(observation["image"]) if needs_image else None
            attended = (None, None) if attention is None else (attention.scores, attention.selected)
            recorded.append(RecordedStep(starts, image, np.array(sensors_of(observation)), action, *attended))
            observation, _, terminated, truncated, _ = made.step(to_action(action))
            ended, starts = terminated or truncated, False
        seed += 1
    made.close()
    return recorded


def image_type_of(policy: Policy, env: Any = None) -> str:
    """The dtype of the images that the policy's environment gives: "uint8" or "float32"."""
    from iap._api import make_env

    if not policy.config.encoder.uses_image:
        return "uint8"
    if env is None and policy.env is None:
        raise ValueError("image_type must be given, uint8 or float32: the policy has no environment")
    made = make_env(policy.env if env is None else env)
    space: Any = made.observation_space["image"]  # pyright: ignore[reportIndexIssue]
    made.close()
    return "uint8" if space.dtype == np.uint8 else "float32"
