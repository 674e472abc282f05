"""`iap/Seek-v0`: follow a target that jumps about, where only the image tells where it is, and where oneself is.

The reward of a step is by how much it came closer to the target, in widths of the image. Whoever goes straight to the
target earns about 3.75 an episode. Standing still earns 0. Whoever moves unseeing earns f(start) − f(end) on average,
where f(x) is the mean distance of x from all places of the target: the jumps come at fixed times and do not depend on
where the agent is, so that everything between cancels. The start has the least f, and so no blind policy earns
more than 0.
"""

import functools
import math
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces
from jaxtyping import Float, UInt8

from iap.attention.arrays import require_count
from iap.envs.wrappers import Observation, observation_space, rgb_space

SPEED = 0.06  # widths of the image a step, along each axis
STEPS_BETWEEN_JUMPS = 8
RADIUS = 0.07  # of everything drawn
BORDER = 0.08  # nothing comes nearer to the edge, so that no disc is cut off
START = (0.5, 0.5)
TEXTURE_CELLS = 8
PICTURE_SIDE = 256
FINENESS = 8  # steps a pixel at which discs are drawn

Point = tuple[float, float]  # row and column, in widths of the image
Colour = tuple[int, int, int]

AGENT: Colour = (40, 130, 255)
TARGET: Colour = (255, 170, 20)
DISTRACTORS: tuple[Colour, ...] = ((60, 220, 80), (220, 60, 200), (230, 230, 230), (60, 220, 220))


class Seek(gymnasium.Env):
    """The built-in encoder task: an action is the velocity, down and to the right, each in [-1, 1].

    The ground has a new pattern in each episode.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 15, "camera_is_scene": True}  # noqa: RUF012

    def __init__(self, size: int = 32, distractors: int = 0, render_mode: str | None = None) -> None:
        """An image of `size`×`size` pixels, with a number of blobs of other colours that mean nothing."""
        self._side = require_count("size", size, least=8, most=1024)
        self._distractors = require_count("distractors", distractors, least=0, most=100)
        self.render_mode = render_mode
        self.observation_space = observation_space(rgb_space((size, size)))
        self.action_space = spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, dict]:
        """Start in the middle of a new ground."""
        super().reset(seed=seed, options=options)
        self._ground = self._draw_ground()
        self._agent = START
        self._target = self._draw_place()
        self._steps = 0
        return self._observe(), {}

    def step(self, action: Float[np.ndarray, " 2"]) -> tuple[Observation, float, bool, bool, dict]:
        """Move the agent, and then the target when it is time for it."""
        before = math.dist(self._agent, self._target)
        row, column = (_moved(x, float(velocity)) for x, velocity in zip(self._agent, action, strict=True))
        self._agent = (row, column)
        reward = before - math.dist(self._agent, self._target)
        self._steps += 1
        if self._steps % STEPS_BETWEEN_JUMPS == 0:
            self._target = self._draw_place()
        return self._observe(), reward, False, False, {}

    def render(self) -> UInt8[np.ndarray, "P P 3"] | None:
        """The same scene in more pixels."""
        if self.render_mode is None:
            return None
        nearest = np.arange(PICTURE_SIDE) * self._side // PICTURE_SIDE
        return self._draw_on(self._ground[nearest][:, nearest])

    def privileged_state(self) -> Float[np.ndarray, " 4"]:
        """Row and column of the agent and of the target."""
        return np.array([*self._agent, *self._target], np.float32)

    def _observe(self) -> Observation:
        return {"image": self._draw_on(self._ground.copy()), "sensors": np.zeros(0, np.float32)}

    def _draw_place(self) -> Point:
        row, column = self.np_random.uniform(BORDER, 1 - BORDER, 2).tolist()
        return row, column

    def _draw_ground(self) -> UInt8[np.ndarray, "S S 3"]:
        """Cells of dim colours with grain on them, and the distractors."""
        cells = self.np_random.integers(20, 100, (TEXTURE_CELLS, TEXTURE_CELLS, 3))
        nearest = np.arange(self._side) * TEXTURE_CELLS // self._side
        grain = self.np_random.integers(-20, 21, (self._side, self._side, 3))
        ground = (cells[nearest][:, nearest] + grain).astype(np.uint8)
        for i in range(self._distractors):
            paint_disc(ground, self._draw_place(), DISTRACTORS[i % len(DISTRACTORS)])
        return ground

    def _draw_on(self, ground: UInt8[np.ndarray, "S S 3"]) -> UInt8[np.ndarray, "S S 3"]:
        paint_disc(ground, self._target, TARGET)
        paint_disc(ground, self._agent, AGENT)
        return ground


def paint_disc(image: UInt8[np.ndarray, "S S 3"], centre: Point, colour: Colour) -> None:
    """Paint a disc with soft edges into the image, where it can move by less than a pixel."""
    side = len(image)
    row, row_part = divmod(round((centre[0] * side - 0.5) * FINENESS), FINENESS)
    column, column_part = divmod(round((centre[1] * side - 0.5) * FINENESS), FINENESS)
    stamp = _stamp(side, row_part, column_part, colour)
    top, left = row + stamp.top, column + stamp.left
    height, width = stamp.top_k.shape[:2]
    window = image[top : top + height, left : left + width]
    window[...] = window * stamp.top_k + stamp.ink


class _Stamp(NamedTuple):
    """A disc ready to print: where its corner lies from its centre's pixel, and what becomes of the pixels there."""

    top: int
    left: int
    top_k: Float[np.ndarray, "h w 1"]
    ink: Float[np.ndarray, "h w 3"]


@functools.lru_cache(maxsize=1024)
def _stamp(side: int, row_part: int, column_part: int, colour: Colour) -> _Stamp:
    radius = RADIUS * side
    rows, columns = (_pixels_near(part / FINENESS, radius + 0.5) for part in (row_part, column_part))
    distance = np.hypot((rows - row_part / FINENESS)[:, None], columns - column_part / FINENESS)
    cover = np.clip(radius + 0.5 - distance, 0, 1).astype(np.float32)[..., None]
    rounding = np.float32(0.5)
    return _Stamp(int(rows[0]), int(columns[0]), 1 - cover, cover * np.array(colour, np.float32) + rounding)


def _pixels_near(centre: float, reach: float) -> np.ndarray:
    return np.arange(math.ceil(centre - reach), math.floor(centre + reach) + 1)


def _moved(x: float, velocity: float) -> float:
    return min(max(x + SPEED * min(max(velocity, -1.0), 1.0), BORDER), 1 - BORDER)
