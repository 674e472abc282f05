"""`iap/Seek-v0`: move an agent to a target that jumps, using the image alone."""

import functools
import math
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from gymnasium import spaces
from jaxtyping import Float, UInt8

from iap._validation import require_count
from iap.envs.protocols import Label
from iap.envs.wrappers import Observation, observation_space, rgb_space

SPEED = 0.06  # image widths per step, along each axis
STEPS_BETWEEN_JUMPS = 8
RADIUS = 0.07  # of all discs, in image widths
BORDER = 0.08  # minimum distance from the edge, so that no disc is cut off
START = (0.5, 0.5)
TEXTURE_CELLS = 8
PICTURE_SIDE = 256
SUBPIXELS = 8  # positions per pixel at which discs are painted

Point = tuple[float, float]  # row and column, in image widths
Colour = tuple[int, int, int]

AGENT: Colour = (40, 130, 255)
TARGET: Colour = (255, 170, 20)
DISTRACTORS: tuple[Colour, ...] = ((60, 220, 80), (220, 60, 200), (230, 230, 230), (60, 220, 220))


class Seek(gymnasium.Env):
    """Follow a target that jumps every eight steps. The background has a new pattern in each episode.

    ## Actions
    | number | meaning | range |
    |---|---|---|
    | 0 | velocity downwards, in units of 0.06 image widths per step | −1 … 1 |
    | 1 | velocity to the right | −1 … 1 |

    ## Observations
    | key | shape | meaning |
    |---|---|---|
    | image | (size, size, 3) uint8 | the agent (blue) and the target (orange) on a textured background |

    ## Rewards
    The decrease of the distance to the target, in image widths. Moving straight to the target earns about 3.75 per
    episode. A policy that ignores the image earns at most 0 on average: jumps come at fixed times and do not depend
    on the agent, so its expected return is f(start) − f(end), where f(x) is the mean distance of x from all target
    positions, and f is smallest at the start.

    ## Termination
    Never. `iap/Seek-v0` is truncated after 80 steps.

    ## Options
    | option | default | meaning |
    |---|---|---|
    | size | 32 | height and width of the image, in pixels |
    | distractors | 0 | number of discs in other colours that have no meaning |
    | render_mode | None | "rgb_array" makes `render` return a larger image |
    """

    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": ["rgb_array"],
        "render_fps": 15,
        "camera_is_scene": True,
        "goal": "Move the blue agent to the orange target, which jumps every 8 steps.",
        "image_title": "image",
    }

    def __init__(self, size: int = 32, distractors: int = 0, render_mode: str | None = None) -> None:
        self._side = require_count("size", size, least=8, most=1024)
        self._distractors = require_count("distractors", distractors, least=0, most=100)
        self.render_mode = render_mode
        self.observation_space = observation_space(rgb_space((size, size)))
        self.action_space = spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, dict]:
        """Start in the middle of a new background."""
        super().reset(seed=seed, options=options)
        self._background = self._draw_background()
        self._agent = START
        self._target = self._draw_position()
        self._steps = 0
        return self._observe(), {}

    def step(self, action: Float[np.ndarray, " 2"]) -> tuple[Observation, float, bool, bool, dict]:
        """Move the agent, then the target if a jump is due."""
        before = math.dist(self._agent, self._target)
        row, column = (_moved(x, float(velocity)) for x, velocity in zip(self._agent, action, strict=True))
        self._agent = (row, column)
        reward = before - math.dist(self._agent, self._target)
        self._steps += 1
        if self._steps % STEPS_BETWEEN_JUMPS == 0:
            self._target = self._draw_position()
        return self._observe(), reward, False, False, {}

    def render(self) -> UInt8[np.ndarray, "P P 3"] | None:
        """The same scene in more pixels."""
        if self.render_mode is None:
            return None
        nearest = np.arange(PICTURE_SIDE) * self._side // PICTURE_SIDE
        return self._paint_discs(self._background[nearest][:, nearest])

    def scene_labels(self) -> list[tuple[str, float, float]]:
        """The agent and the target."""
        return [("agent", *self._agent), ("target", *self._target)]

    def privileged_state(self) -> Float[np.ndarray, " 4"]:
        """Row and column of the agent and of the target."""
        return np.array([*self._agent, *self._target], np.float32)

    def label(self) -> Label:
        """An expert's action: straight to the target, at full speed until it is near."""
        steps = [(to - here) / SPEED for here, to in zip(self._agent, self._target, strict=True)]
        return Label(np.clip(steps, -1, 1).astype(np.float32), state=self.privileged_state())

    def _observe(self) -> Observation:
        return {"image": self._paint_discs(self._background.copy())}

    def _draw_position(self) -> Point:
        row, column = self.np_random.uniform(BORDER, 1 - BORDER, 2).tolist()
        return row, column

    def _draw_background(self) -> UInt8[np.ndarray, "S S 3"]:
        """Cells of dark colours with noise, and the distractors."""
        cells = self.np_random.integers(20, 100, (TEXTURE_CELLS, TEXTURE_CELLS, 3))
        nearest = np.arange(self._side) * TEXTURE_CELLS // self._side
        noise = self.np_random.integers(-20, 21, (self._side, self._side, 3))
        background = (cells[nearest][:, nearest] + noise).astype(np.uint8)
        for i in range(self._distractors):
            paint_disc(background, self._draw_position(), DISTRACTORS[i % len(DISTRACTORS)])
        return background

    def _paint_discs(self, image: UInt8[np.ndarray, "S S 3"]) -> UInt8[np.ndarray, "S S 3"]:
        paint_disc(image, self._target, TARGET)
        paint_disc(image, self._agent, AGENT)
        return image


def paint_disc(image: UInt8[np.ndarray, "S S 3"], centre: Point, colour: Colour) -> None:
    """Paint a disc with anti-aliased edges into the image, at a position in eighths of a pixel."""
    side = len(image)
    row, row_part = divmod(round((centre[0] * side - 0.5) * SUBPIXELS), SUBPIXELS)
    column, column_part = divmod(round((centre[1] * side - 0.5) * SUBPIXELS), SUBPIXELS)
    stamp = _stamp(side, row_part, column_part, colour)
    top, left = row + stamp.top, column + stamp.left
    height, width = stamp.transparency.shape[:2]
    window = image[top : top + height, left : left + width]
    window[...] = window * stamp.transparency + stamp.ink


class _Stamp(NamedTuple):
    """A precomputed disc.

    Attributes:
        top: rows from the pixel of the centre to the first row.
        left: columns from the pixel of the centre to the first column.
        transparency: how much of each pixel's old colour remains.
        ink: the colour that is added to each pixel.
    """

    top: int
    left: int
    transparency: Float[np.ndarray, "h w 1"]
    ink: Float[np.ndarray, "h w 3"]


@functools.lru_cache(maxsize=1024)
def _stamp(side: int, row_part: int, column_part: int, colour: Colour) -> _Stamp:
    radius = RADIUS * side
    rows, columns = (_pixels_near(part / SUBPIXELS, radius + 0.5) for part in (row_part, column_part))
    distance = np.hypot((rows - row_part / SUBPIXELS)[:, None], columns - column_part / SUBPIXELS)
    cover = np.clip(radius + 0.5 - distance, 0, 1).astype(np.float32)[..., None]
    rounding = np.float32(0.5)
    return _Stamp(int(rows[0]), int(columns[0]), 1 - cover, cover * np.array(colour, np.float32) + rounding)


def _pixels_near(centre: float, reach: float) -> np.ndarray:
    return np.arange(math.ceil(centre - reach), math.floor(centre + reach) + 1)


def _moved(x: float, velocity: float) -> float:
    return min(max(x + SPEED * min(max(velocity, -1.0), 1.0), BORDER), 1 - BORDER)
