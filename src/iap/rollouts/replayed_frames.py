"""Ablations of the image: episodes in which the policy receives frames of another time.

If the return does not drop, the policy does not use its images.
"""

from typing import Any, Literal

import gymnasium
import numpy as np

from iap.rollouts.episode import Actor, Episode, run_episode

Frames = Literal["own", "replayed", "shuffled"]

OTHER_EPISODE_BIT = 1 << 28  # flipped in the seed to get another episode of the same seed range


def run_with_replaced_frames(
    env: gymnasium.Env, policy: Actor, seed: int, frames: Frames, max_steps: int | None = None
) -> Episode:
    """Run the episode of `seed` with images recorded before: of another episode ("replayed") or its own, shuffled.

    The images are recorded in an episode in which the policy receives its own. They are replaced step by step, and
    start over when they run out. Sensors are not replaced.
    """
    recorded: list[np.ndarray] = []
    source = seed if frames == "shuffled" else seed ^ OTHER_EPISODE_BIT
    run_episode(env, policy, source, max_steps, lambda step: recorded.append(np.array(step.observation["image"])))
    if frames == "shuffled":
        recorded = [recorded[i] for i in np.random.default_rng(seed).permutation(len(recorded))]
    return run_episode(_ReplacedImages(env, recorded), policy, seed, max_steps)


class _ReplacedImages(gymnasium.Wrapper):
    """An environment whose images are replaced by recorded ones."""

    def __init__(self, env: gymnasium.Env, images: list[np.ndarray]) -> None:
        super().__init__(env)
        self._images, self._steps = images, 0

    def reset(self, **kwargs: Any) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        observation, info = super().reset(**kwargs)
        self._steps = 0
        return self._replace(observation), info

    def step(self, action: Any) -> tuple[dict[str, np.ndarray], Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = super().step(action)
        self._steps += 1
        return self._replace(observation), reward, terminated, truncated, info

    def _replace(self, observation: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return observation | {"image": self._images[self._steps % len(self._images)]}
