"""When a walk over uneven terrain counts as a fall."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from iap.envs.quadruped.courses import require_number
from iap.locomotion.walker import Motion

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

    def why_ended(self, motion: Motion, feet_m: float, bumped: Sequence[str]) -> str | None:
        """Which limit is passed by a body above feet at this height, with these parts on the ground."""
        roll, pitch = motion.roll_pitch
        if not (abs(roll) <= self.most_roll_rad and abs(pitch) <= self.most_pitch_rad):
            return "tipped over"
        if not motion.position_m[2] - feet_m > self.least_height_m:
            return "sunk down"
        counted = self.bumps == "any" or any(not part.endswith("lower_leg") for part in bumped)
        return "bumped" if bumped and counted and self.bumps != "none" else None
