"""Gaits: when each leg stands and swings, and what a foot does that touches too early or not at all."""

from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float

from iap.locomotion import gait_kernels


class FootState(IntEnum):
    """What a foot does, by the numbers that a policy observes."""

    LOST = gait_kernels.LOST  # should stand, and touches nothing
    STANCE = gait_kernels.STANCE
    SWING = gait_kernels.SWING
    EARLY = gait_kernels.EARLY  # should swing, and has landed already


@dataclass(frozen=True)
class Gait:
    """A cycle in which each leg stands for a time and then swings.

    Attributes:
        stance_s: how long a leg stands.
        duty: the share of the cycle for which it stands.
        phases: where in the cycle each leg is at time zero, standing from 0 to `duty`.
    """

    stance_s: float
    duty: float
    phases: tuple[float, float, float, float]

    def __post_init__(self) -> None:
        """Refuse a gait in which no leg can stand, or none can swing."""
        if not self.stance_s > 0:
            raise ValueError(f"stance_s must be positive, not {self.stance_s}")
        if not 0 < self.duty < 1:
            raise ValueError(f"duty must lie between 0 and 1, not {self.duty}")

    @property
    def period_s(self) -> float:
        """The time of a whole cycle."""
        return self.stance_s / self.duty

    @property
    def swing_s(self) -> float:
        """How long a leg swings."""
        return self.period_s - self.stance_s

    @cached_property
    def lead_s(self) -> float:
        """The time from lifting off to the middle of the coming stance."""
        return self.swing_s + self.stance_s / 2

    @cached_property
    def clock(self) -> tuple[float, float, Any]:
        """What compiled loops take."""
        return self.period_s, self.duty, np.array(self.phases)

    def mirrored(self) -> "Gait":
        """With the legs of the left and of the right exchanged."""
        front_right, front_left, rear_right, rear_left = self.phases
        return replace(self, phases=(front_left, front_right, rear_left, rear_right))

    def phase(self, time_s: float) -> Float[np.ndarray, " 4"]:
        """Where in the cycle each leg is, from 0 to 1."""
        return gait_kernels.phases_at(self.clock, time_s)

    def swing_progress(self, time_s: float) -> Float[np.ndarray, " 4"]:
        """How much of its swing each leg has behind it; below zero where it stands."""
        return gait_kernels.swing_progress(self.clock, time_s)

    def stands(self, time_s: float) -> Bool[np.ndarray, " 4"]:
        """Which legs should stand."""
        return self.phase(time_s) < self.duty

    def contacts(self, time_s: float, steps: int, step_s: float) -> Bool[np.ndarray, "N 4"]:
        """Which legs should stand in each of the coming steps, by the middle of the step."""
        return gait_kernels.coming_contacts(self.clock, time_s, steps, step_s)


TROT = Gait(stance_s=0.3, duty=0.6, phases=(0.0, 0.5, 0.5, 0.0))
WALK = Gait(stance_s=0.75, duty=0.8, phases=(0.25, 0.75, 0.5, 0.0))
