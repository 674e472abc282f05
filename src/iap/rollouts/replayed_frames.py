"""Episodes in which a policy is shown other frames than those of the moment: does it act on what it sees?"""

from typing import Any, Literal

import gymnasium
import numpy as np

from iap.policies import Actor
from iap.rollouts.episode import Episode, run_episode

Frames = Literal["own", "foreign", "shuffled"]

OTHER_EPISODE = 1 << 28  # a bit of the seed: turned over, it gives an episode that nobody else asks for


def run_with_other_frames(
    env: gymnasium.Env, policy: Actor, seed: int, frames: Frames, max_steps: int | None = None
) -> Episode:
    """The episode of `seed` with images of an episode that the policy sees as it is: another one, or this one shuffled.

    Images are replaced step by step, and begin again when they run out; sensors are those of the moment.
    """
    shown: list[np.ndarray] = []
    source = seed if frames == "shuffled" else seed ^ OTHER_EPISODE
    run_episode(env, policy, source, max_steps, lambda step: shown.append(np.array(step.observation["image"])))
    if frames == "shuffled":
        shown = [shown[i] for i in np.random.default_rng(seed).permutation(len(shown))]
    return run_episode(_Shown(env, shown), policy, seed, max_steps)


class _Shown(gymnasium.Wrapper):
    """An environment with its images replaced."""

    def __init__(self, env: gymnasium.Env, frames: list[np.ndarray]) -> None:
        super().__init__(env)
        self._frames, self._steps = frames, 0

    def reset(self, **kwargs: Any) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        observation, info = super().reset(**kwargs)
        self._steps = 0
        return self._replaced(observation), info

    def step(self, action: Any) -> tuple[dict[str, np.ndarray], Any, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = super().step(action)
        self._steps += 1
        return self._replaced(observation), reward, terminated, truncated, info

    def _replaced(self, observation: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        return observation | {"image": self._frames[self._steps % len(self._frames)]}
