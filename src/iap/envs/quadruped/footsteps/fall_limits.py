"""When a walk over uneven terrain counts as a fall."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from iap.envs.quadruped.footsteps.walking_kernels import TIPPED_OVER, WITHIN
from iap.envs.quadruped.obstacle_course.course import require_number

Bumps = Literal["any", "body", "none"]


@dataclass(frozen=True)
class FallLimits:
    """At which an episode ends.

    Attributes:
        most_roll_rad: of the body.
        most_pitch_rad: of the body.
        least_height_m: of the body above its feet.
        bumps: "any" part but a foot that touches the ground, the "body" (any part but feet and shins), or "none".
    """

    most_roll_rad: float
    most_pitch_rad: float
    least_height_m: float
    bumps: Bumps

    def __post_init__(self) -> None:
        require_number("most_roll_rad", self.most_roll_rad, 0, math.pi)
        require_number("most_pitch_rad", self.most_pitch_rad, 0, math.pi)
        require_number("least_height_m", self.least_height_m, 0, 1)
        if self.bumps not in get_args(Bumps):
            raise ValueError(f"ends_at_bumps must be one of {', '.join(get_args(Bumps))}, not {self.bumps!r}")

    @cached_property
    def numbers(self) -> tuple[float, float, float]:
        """What compiled loops take."""
        return self.most_roll_rad, self.most_pitch_rad, self.least_height_m

    def why_ended(self, passed: int, bumped: Sequence[str]) -> str | None:
        """Why a body has fallen that has passed this one of `walking_loops`' limits, with these parts on the ground."""
        if passed != WITHIN:
            return "tipped over" if passed == TIPPED_OVER else "sunk down"
        if not bumped or self.bumps == "none":
            return None
        counted = self.bumps == "any" or any(not part.endswith("lower_leg") for part in bumped)
        return "bumped" if counted else None
