"""A small environment with an expert: a bright dot in an image, and a reward for pointing at it."""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from iap.distillation import DAgger
from iap.envs.core import EnvConfig
from iap.envs.protocols import Label
from iap.policies import CNN, GRU, Controller, Encoder, Hierarchy, Linear, PolicyConfig
from iap.training.config import TrainConfig, fit_to_env

SIDE, STEPS = 12, 12
STUDENT, LINEAR = CNN(((4, 3, 2), (4, 3, 2))), Linear()


class Dot(gymnasium.Env):
    """A dot moves about; an action is its row and column, with the image's edges at ±1. Reward: minus the error."""

    observation_space = spaces.Dict(
        {
            "image": spaces.Box(0, 255, (SIDE, SIDE, 1), np.uint8),
            "sensors": spaces.Box(-1, 1, (1,), np.float32),
        }
    )
    action_space = spaces.Box(-1, 1, (2,), np.float32)
    symmetry = {"sensors": [-1], "actions": [1, -2]}  # noqa: RUF012

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict]:
        super().reset(seed=seed)
        self._place, self._steps = self.np_random.integers(1, SIDE - 1, 2), 0
        return self._observe(), {}

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict]:
        reward = -float(np.abs(np.asarray(action) - self.label().action).mean())
        self._place = np.clip(self._place + self.np_random.integers(-2, 3, 2), 1, SIDE - 2)
        self._steps += 1
        return self._observe(), reward, False, self._steps >= STEPS, {}

    def label(self) -> Label:
        """The dot's place."""
        place = ((2 * self._place + 1) / SIDE - 1).astype(np.float32)
        return Label(place, state=place)

    def keypoints(self, names: Any) -> np.ndarray:
        """The same."""
        return self.label().action

    def keypoints_visible(self, names: Any) -> bool:
        """It is always in view."""
        return True

    def _observe(self) -> dict[str, np.ndarray]:
        image = np.full((SIDE, SIDE, 1), 40, np.uint8)
        row, column = self._place
        image[row - 1 : row + 2, column - 1 : column + 2] = 230
        return {"image": image, "sensors": self.label().action[1:]}


def mean_of_sensor(env: Any) -> np.ndarray:
    """Another expert: the middle row, and the dot's column."""
    return np.array([0.0, env.label().action[1]])


def dot_config(
    dagger: DAgger,
    encoder: Encoder = STUDENT,
    controller: Controller = LINEAR,
    *,
    recurrent: bool = False,
) -> TrainConfig:
    """A run that distils the expert."""
    hierarchy = Hierarchy(8, max_command_steps=1, low_level=GRU(8), high_level_sensors=False) if recurrent else None
    policy = PolicyConfig((SIDE, SIDE, 1), 1, 2, encoder=encoder, controller=controller, hierarchy=hierarchy)
    env = EnvConfig.from_factory(Dot)
    return fit_to_env(TrainConfig(env=env, policy=policy, pretraining=dagger, iterations=0, evaluate_episodes=4))
