"""Obstacle courses: a platform with walls across it, each with a gap at one side, and the start of the robot."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, Self

import numpy as np

from iap._validation import require_count, require_number
from iap.envs.quadruped.simulation.protocol import Box, Colour

FIRST_WALL_M = 2.0
RUN_UP_M, RUN_OUT_M = 1.5, 3.5  # length of the platform behind the start and behind the last wall
SHORTEST_PLATFORM_M = 18.0  # longer than a robot walks in ten seconds
PLATFORM_THICKNESS_M = 0.4
WALL_HEIGHT_M, WALL_THICKNESS_M = 0.7, 0.16
FLOOR_FRICTION = 0.7  # with more, robots tip over instead of slipping
NARROWEST_GAP_M = 0.4  # through which a robot fits
MAX_WALLS = 100

FLOOR_COLOUR: Colour = (0.80, 0.73, 0.60)
WALL_COLOUR: Colour = (0.05, 0.42, 0.52)


@dataclass(frozen=True)
class Wall:
    """A wall across the platform at x, with a gap at the left or at the right."""

    x_m: float
    gap_m: float
    gap_at_left: bool


@dataclass(frozen=True)
class Course:
    """A course, and the start of the robot.

    Attributes:
        walls: from the first to the last.
        width_m: of the platform.
        wall_friction: 0 lets the trunk slide along walls.
        start_y_m: distance from the middle, positive to the left.
        start_yaw_rad: heading, positive to the left.
        left_foot_first: whether the left front foot swings first.
    """

    walls: tuple[Wall, ...]
    width_m: float
    wall_friction: float
    start_y_m: float
    start_yaw_rad: float
    left_foot_first: bool

    @property
    def start_x_m(self) -> float:
        """The start of the platform; the robot starts at x = 0."""
        return -RUN_UP_M

    @cached_property
    def end_x_m(self) -> float:
        """The end of the platform."""
        return max(SHORTEST_PLATFORM_M, max((wall.x_m for wall in self.walls), default=0.0) + RUN_OUT_M)

    def mirrored(self) -> "Course":
        """The course with left and right exchanged."""
        return replace(
            self,
            walls=tuple(replace(wall, gap_at_left=not wall.gap_at_left) for wall in self.walls),
            start_y_m=-self.start_y_m,
            start_yaw_rad=-self.start_yaw_rad,
            left_foot_first=not self.left_foot_first,
        )

    def boxes(self) -> list[Box]:
        """The platform, whose top is at z = 0, and the walls."""
        length = self.end_x_m - self.start_x_m
        centre = (self.start_x_m + length / 2, 0.0, -PLATFORM_THICKNESS_M / 2)
        size = (length, self.width_m, PLATFORM_THICKNESS_M)
        return [
            Box("floor", centre, size, colour=FLOOR_COLOUR, friction=FLOOR_FRICTION),
            *(self._wall_box(wall) for wall in self.walls),
        ]

    def _wall_box(self, wall: Wall) -> Box:
        gap_side = 1 if wall.gap_at_left else -1
        return Box(
            "wall",
            (wall.x_m, -gap_side * wall.gap_m / 2, WALL_HEIGHT_M / 2),
            (WALL_THICKNESS_M, self.width_m - wall.gap_m, WALL_HEIGHT_M),
            colour=WALL_COLOUR,
            friction=self.wall_friction,
        )


@dataclass(frozen=True)
class CourseOptions:
    """The distribution of courses.

    Attributes:
        walls: number of walls, the first two metres from the start.
        gap_m: narrowest and widest gap.
        spacing_m: distance between walls.
        wall_jitter_m: largest random displacement of a wall.
        width_m: of the platform.
        wall_friction: 0 lets the trunk slide along walls.
        start_y_m: largest distance of the start from the middle.
        start_yaw_rad: largest angle of the initial heading.
    """

    walls: int = 6
    gap_m: Sequence[float] = (1.2, 1.4)
    spacing_m: float = 2.5
    wall_jitter_m: float = 0.25
    width_m: float = 3.0
    wall_friction: float = 0.0
    start_y_m: float = 0.3
    start_yaw_rad: float = 0.2

    def __post_init__(self) -> None:
        require_count("walls", self.walls, least=0, most=MAX_WALLS)
        width = require_number("width_m", self.width_m, 2 * NARROWEST_GAP_M, 100)
        if not isinstance(self.gap_m, Sequence) or len(self.gap_m) != 2:  # noqa: PLR2004
            raise ValueError(f"gap_m must be (narrowest, widest), not {self.gap_m!r}")
        narrowest = require_number("gap_m", self.gap_m[0], NARROWEST_GAP_M, math.inf)
        widest = require_number("gap_m", self.gap_m[1], narrowest, math.inf)
        if widest >= width:
            raise ValueError(f"gap_m must be less than width_m, {width:g}, not {self.gap_m}")
        spacing = require_number("spacing_m", self.spacing_m, 2 * WALL_THICKNESS_M, 100)
        require_number("wall_jitter_m", self.wall_jitter_m, 0, (spacing - WALL_THICKNESS_M) / 2)
        require_number("wall_friction", self.wall_friction, 0, 10)
        require_number("start_y_m", self.start_y_m, 0, width / 2 - NARROWEST_GAP_M / 2)
        require_number("start_yaw_rad", self.start_yaw_rad, 0, math.pi)

    @classmethod
    def from_keywords(cls, env: str, options: dict[str, Any], others: Sequence[str]) -> Self:
        """The options of an environment that also has `others`; unknown names are refused."""
        known = [field.name for field in fields(cls)]
        if unknown := sorted(options.keys() - set(known)):
            raise TypeError(f"{env} has no option {', '.join(unknown)}; it has {', '.join([*others, *known])}")
        return cls(**options)

    def draw(self, rng: np.random.Generator) -> Course:
        """A random course."""
        jitter, (narrowest, widest) = self.wall_jitter_m, self.gap_m
        walls = tuple(
            Wall(
                FIRST_WALL_M + self.spacing_m * i + rng.uniform(-jitter, jitter),
                rng.uniform(narrowest, widest),
                bool(rng.integers(2)),
            )
            for i in range(self.walls)
        )
        return Course(
            walls,
            self.width_m,
            self.wall_friction,
            rng.uniform(-self.start_y_m, self.start_y_m),
            rng.uniform(-self.start_yaw_rad, self.start_yaw_rad),
            bool(rng.integers(2)),
        )
