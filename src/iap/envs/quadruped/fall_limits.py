"""When a walk over uneven terrain counts as a fall."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float
from numba import njit

from iap.envs.quadruped.courses import require_number
from iap.locomotion.body_loops import roll_pitch_of
from iap.locomotion.walker import Motion

Bumps = Literal["any", "body", "none"]
PASSED = (None, "tipped over", "sunk down")


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

    def why_ended(self, motion: Motion, footholds_m: Float[np.ndarray, "4 3"], bumped: Sequence[str]) -> str | None:
        """Which limit is passed by a body above feet that stand there, with these parts on the ground."""
        limits = (self.most_roll_rad, self.most_pitch_rad, self.least_height_m)
        passed = _passed(motion.rotation, motion.position_m, footholds_m, *limits)
        if passed:
            return PASSED[passed]
        if not bumped or self.bumps == "none":
            return None
        counted = self.bumps == "any" or any(not part.endswith("lower_leg") for part in bumped)
        return "bumped" if counted else None


@njit(cache=True)
def _passed(rotation, position, footholds, most_roll, most_pitch, least_height):
    """The index in `PASSED` of the limit that is passed."""
    roll, pitch = roll_pitch_of(rotation)
    if not (abs(roll) <= most_roll and abs(pitch) <= most_pitch):
        return 1
    feet = (footholds[0, 2] + footholds[1, 2] + footholds[2, 2] + footholds[3, 2]) / 4
    return 0 if position[2] - feet > least_height else 2
