"""When an episode on uneven terrain ends with a fall."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, get_args

from iap._compile import compiled
from iap._validation import require_number
from iap.locomotion.walker_kernels import roll_pitch_of

Contacts = Literal["any", "body", "none"]
WITHIN, TIPPED_OVER, TOO_LOW = range(3)  # results of `exceeded_limit`


@dataclass(frozen=True)
class FallLimits:
    """The limits at which an episode ends.

    Attributes:
        max_roll_rad: of the body.
        max_pitch_rad: of the body.
        min_height_m: of the body above its feet.
        contacts: parts whose contact with the ground ends the episode: "any" part except feet, the "body" (any part
            except feet and shins), or "none".
    """

    max_roll_rad: float
    max_pitch_rad: float
    min_height_m: float
    contacts: Contacts

    def __post_init__(self) -> None:
        require_number("max_roll_rad", self.max_roll_rad, 0, math.pi)
        require_number("max_pitch_rad", self.max_pitch_rad, 0, math.pi)
        require_number("min_height_m", self.min_height_m, 0, 1)
        if self.contacts not in get_args(Contacts):
            raise ValueError(
                f"terminate_on_contact must be one of {', '.join(get_args(Contacts))}, not {self.contacts!r}"
            )

    @cached_property
    def numbers(self) -> tuple[float, float, float]:
        """The limits for compiled functions."""
        return self.max_roll_rad, self.max_pitch_rad, self.min_height_m

    def reason(self, exceeded: int, contacts: Sequence[str]) -> str | None:
        """Why the episode ends, given the result of `exceeded_limit` and the parts in contact; None if it goes on."""
        if exceeded != WITHIN:
            return "tipped over" if exceeded == TIPPED_OVER else "too low"
        if not contacts or self.contacts == "none":
            return None
        counts = self.contacts == "any" or any(not part.endswith("lower_leg") for part in contacts)
        return "body contact" if counts else None


@compiled
def exceeded_limit(position, rotation, footholds, limits):
    """Which limit a body with these footholds exceeds."""
    max_roll, max_pitch, min_height = limits
    roll, pitch = roll_pitch_of(rotation)
    if not (abs(roll) <= max_roll and abs(pitch) <= max_pitch):
        return TIPPED_OVER
    feet = (footholds[0, 2] + footholds[1, 2] + footholds[2, 2] + footholds[3, 2]) / 4
    return WITHIN if position[2] - feet > min_height else TOO_LOW
