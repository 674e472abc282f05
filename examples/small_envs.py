"""Five small environments of different kinds, to try a config on: each trains in a minute or two on two cores.

| id | image | sensors | actions | task |
|---|---|---|---|---|
| `small/GridGoal-v0` | (12, 12, 3) uint8, a pixel for a cell | none | Discrete(4) | walk to a goal |
| `small/Dot-v0` | (32, 32, 3) uint8 | none | Box(2) | move a dot to a target |
| `small/Catch-v0` | (40, 40) uint8 | none | MultiDiscrete([3, 2]) | catch a ball, and close the hand around it |
| `small/TwoCameras-v0` | two of (24, 24, 3) uint8 in a Dict | 2 | Box(2) | reach a point that two cameras show |
| `small/Lander-v0` | (3, 32, 32) float32 from 0 to 1 | none | MultiBinary(3) | land softly on a pad |

Train in one of them: iap train --env small_envs:small/Dot-v0 (in this folder)
"""

from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

RED, GREEN, BLUE, WHITE = (230, 60, 40), (60, 200, 80), (60, 110, 250), (240, 240, 240)


def paint(image: np.ndarray, centre: np.ndarray, radius: float, colour: Any) -> None:
    """Paint a square with its centre at a point in units of the image's side, (row, column)."""
    side = image.shape[0]
    top, left = np.clip(np.rint((centre - radius) * side), 0, side - 1).astype(int)
    bottom, right = np.clip(np.rint((centre + radius) * side), 1, side).astype(int)
    image[top : max(bottom, top + 1), left : max(right, left + 1)] = colour


class GridGoal(gymnasium.Env):
    """A walker on a grid with walls around it goes to a goal, which is then put elsewhere. A goal counts 1."""

    SIDE, MOVES = 12, ((-1, 0), (1, 0), (0, -1), (0, 1))

    def __init__(self) -> None:
        self.observation_space = spaces.Box(0, 255, (self.SIDE, self.SIDE, 3), np.uint8)
        self.action_space = spaces.Discrete(4)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        """Walker and goal in random cells."""
        super().reset(seed=seed)
        self.walker, self.goal = self._cell(), self._cell()
        return self._image(), {}

    def step(self, action: int) -> tuple[np.ndarray, float, bool, bool, dict]:
        """One cell up, down, left or right; coming nearer counts 0.1."""
        before = np.abs(self.goal - self.walker).sum()
        self.walker = np.clip(self.walker + self.MOVES[int(action)], 1, self.SIDE - 2)
        reward = 0.1 * float(before - np.abs(self.goal - self.walker).sum())
        if (self.walker == self.goal).all():
            reward += 1.0
            self.goal = self._cell()
        return self._image(), reward, False, False, {}

    def _cell(self) -> np.ndarray:
        return self.np_random.integers(1, self.SIDE - 1, 2)

    def _image(self) -> np.ndarray:
        image = np.full((self.SIDE, self.SIDE, 3), 90, np.uint8)
        image[1:-1, 1:-1] = 10
        image[tuple(self.goal)] = GREEN
        image[tuple(self.walker)] = RED
        return image


class Dot(gymnasium.Env):
    """A dot moves to a target, which jumps when it is reached. The reward is the decrease of the distance."""

    def __init__(self) -> None:
        self.observation_space = spaces.Box(0, 255, (32, 32, 3), np.uint8)
        self.action_space = spaces.Box(-0.08, 0.08, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        """Dot and target anywhere."""
        super().reset(seed=seed)
        self.dot, self.target = self.np_random.uniform(0.1, 0.9, (2, 2))
        return self._image(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Move by the action."""
        before = np.linalg.norm(self.target - self.dot)
        self.dot = np.clip(self.dot + action, 0.05, 0.95)
        after = np.linalg.norm(self.target - self.dot)
        if after < 0.1:
            self.target = self.np_random.uniform(0.1, 0.9, 2)
        return self._image(), float(before - after), False, False, {}

    def _image(self) -> np.ndarray:
        image = np.full((32, 32, 3), 40, np.uint8)
        paint(image, self.target, 0.06, RED)
        paint(image, self.dot, 0.06, BLUE)
        return image


class Catch(gymnasium.Env):
    """Balls fall one after the other. A hand below moves left, stays or moves right, and is open or closed.

    A ball that lands in the open hand counts 1; the hand must be closed for the rest of the time, which counts 0.01 a
    step.
    """

    def __init__(self) -> None:
        self.observation_space = spaces.Box(0, 255, (40, 40), np.uint8)
        self.action_space = spaces.MultiDiscrete([3, 2])

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        """The hand in the middle."""
        super().reset(seed=seed)
        self.hand = 0.5
        self._drop()
        return self._image(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Move the hand, and let the ball fall."""
        self.hand = float(np.clip(self.hand + 0.07 * (int(action[0]) - 1), 0.1, 0.9))
        is_open = bool(action[1])
        self.ball[0] += 0.06
        reward = 0.0 if is_open else 0.01
        if self.ball[0] >= 0.9:
            reward += float(is_open and abs(self.ball[1] - self.hand) < 0.12)
            self._drop()
        return self._image(), reward, False, False, {}

    def _drop(self) -> None:
        self.ball = np.array([0.08, self.np_random.uniform(0.1, 0.9)])

    def _image(self) -> np.ndarray:
        image = np.full((40, 40), 30, np.uint8)
        paint(image, self.ball, 0.06, 250)
        paint(image, np.array([0.94, self.hand]), 0.06, 140)
        return image


class TwoCameras(gymnasium.Env):
    """A point is reached with an arm whose position is a sensor.

    The camera in front shows the point's column, the camera above shows its depth. The reward is the decrease of the
    distance; the point moves on when it is reached.
    """

    def __init__(self) -> None:
        camera = spaces.Box(0, 255, (24, 24, 3), np.uint8)
        self.observation_space = spaces.Dict(front=camera, above=camera, arm=spaces.Box(0, 1, (2,), np.float32))
        self.action_space = spaces.Box(-1, 1, (2,), np.float64)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[dict, dict]:
        """The arm in the middle, the point anywhere."""
        super().reset(seed=seed)
        self.arm, self.point = np.full(2, 0.5), self.np_random.uniform(0.1, 0.9, 2)
        return self._observe(), {}

    def step(self, action: np.ndarray) -> tuple[dict, float, bool, bool, dict]:
        """Move the arm."""
        before = np.linalg.norm(self.point - self.arm)
        self.arm = np.clip(self.arm + 0.08 * action, 0, 1)
        after = np.linalg.norm(self.point - self.arm)
        if after < 0.1:
            self.point = self.np_random.uniform(0.1, 0.9, 2)
        return self._observe(), float(before - after), False, False, {}

    def _observe(self) -> dict[str, np.ndarray]:
        front, above = np.full((2, 24, 24, 3), 20, np.uint8)
        paint(front, np.array([0.6, self.point[0]]), 0.07, GREEN)
        paint(above, np.array([self.point[1], 0.5]), 0.07, GREEN)
        return {"front": front, "above": above, "arm": self.arm.astype(np.float32)}


class Lander(gymnasium.Env):
    """A probe falls towards a pad. Its jets push it left, right and up.

    The reward is the decrease of the distance to the pad, and 1 for touching it slowly. Touching anything ends the
    episode.
    """

    def __init__(self) -> None:
        self.observation_space = spaces.Box(0, 1, (3, 32, 32), np.float32)
        self.action_space = spaces.MultiBinary(3)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict]:
        """The probe high above the ground, the pad anywhere on it."""
        super().reset(seed=seed)
        self.probe = np.array([0.12, self.np_random.uniform(0.2, 0.8)])
        self.velocity = np.zeros(2)
        self.pad = np.array([0.94, self.np_random.uniform(0.15, 0.85)])
        return self._image(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict]:
        """Apply the jets and gravity."""
        left, right, up = (float(x) for x in action)
        before = np.linalg.norm(self.pad - self.probe)
        self.velocity = 0.9 * self.velocity + np.array([0.004 - 0.006 * up, 0.01 * (right - left)])
        self.probe = np.clip(self.probe + self.velocity, 0.05, 0.95)
        reward = float(before - np.linalg.norm(self.pad - self.probe))
        has_landed = bool(self.probe[0] > 0.88)
        if has_landed and abs(self.probe[1] - self.pad[1]) < 0.1:
            reward += float(self.velocity[0] < 0.035)
        return self._image(), reward, has_landed, False, {}

    def _image(self) -> np.ndarray:
        image = np.full((32, 32, 3), 0.1, np.float32)
        paint(image, self.pad, 0.06, np.array(GREEN) / 255)
        paint(image, self.probe, 0.06, np.array(WHITE) / 255)
        return np.ascontiguousarray(image.transpose(2, 0, 1))


for _env, _steps in ((GridGoal, 60), (Dot, 60), (Catch, 90), (TwoCameras, 60), (Lander, 80)):
    gymnasium.register(f"small/{_env.__name__}-v0", _env, max_episode_steps=_steps)  # pyright: ignore
