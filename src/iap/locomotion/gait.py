"""Gaits: when each leg is in stance and in swing, and the states of the feet.

Compiled functions take a gait as its clock: period, duty factor, and phase offsets of the legs.
"""

from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int

from iap._compile import compiled

LOST, STANCE, SWING, EARLY = -2, -1, 1, 2  # the values of `FootState`, for compiled functions

EARLIEST_CONTACT = 0.5  # fraction of the swing; contacts before it are with the ground that the foot is leaving
PHASE_RESOLUTION = 1e9  # phases are rounded, so that lift-off does not depend on the rounding errors of the time


class FootState(IntEnum):
    """The state of a foot, with the values that a policy observes."""

    LOST = LOST  # scheduled for stance, but without contact
    STANCE = STANCE
    SWING = SWING
    EARLY = EARLY  # scheduled for swing, but already in contact


@dataclass(frozen=True)
class Gait:
    """A cycle in which each leg is in stance for a time and then in swing.

    Attributes:
        stance_s: duration of the stance.
        duty: fraction of the cycle in stance.
        phases: phase of each leg at time zero; stance is from 0 to `duty`.
    """

    stance_s: float
    duty: float
    phases: tuple[float, float, float, float]

    def __post_init__(self) -> None:
        if not self.stance_s > 0:
            raise ValueError(f"stance_s must be positive, not {self.stance_s}")
        if not 0 < self.duty < 1:
            raise ValueError(f"duty must lie between 0 and 1, not {self.duty}")

    @property
    def period_s(self) -> float:
        """The duration of a cycle."""
        return self.stance_s / self.duty

    @property
    def swing_s(self) -> float:
        """The duration of a swing."""
        return self.period_s - self.stance_s

    @cached_property
    def lead_s(self) -> float:
        """The time from lift-off to the middle of the next stance."""
        return self.swing_s + self.stance_s / 2

    @cached_property
    def clock(self) -> tuple[float, float, Any]:
        """The gait for compiled functions."""
        return self.period_s, self.duty, np.array(self.phases)

    def mirrored(self) -> "Gait":
        """The gait with left and right legs exchanged."""
        front_right, front_left, rear_right, rear_left = self.phases
        return replace(self, phases=(front_left, front_right, rear_left, rear_right))

    def phase(self, time_s: float) -> Float[np.ndarray, " 4"]:
        """The phase of each leg, from 0 to 1."""
        return phases_at(self.clock, time_s)

    def swing_progress(self, time_s: float) -> Float[np.ndarray, " 4"]:
        """The completed fraction of each leg's swing; negative in stance."""
        return swing_progress(self.clock, time_s)

    def in_stance(self, time_s: float) -> Bool[np.ndarray, " 4"]:
        """Which legs are scheduled for stance."""
        return self.phase(time_s) < self.duty

    def contacts(self, time_s: float, steps: int, step_s: float) -> Bool[np.ndarray, "N 4"]:
        """Which legs are scheduled for stance in each of the next steps, at the middle of the step."""
        return scheduled_contacts(self.clock, time_s, steps, step_s)


TROT = Gait(stance_s=0.3, duty=0.6, phases=(0.0, 0.5, 0.5, 0.0))
WALK = Gait(stance_s=0.75, duty=0.8, phases=(0.25, 0.75, 0.5, 0.0))


@compiled
def phases_at(clock, time_s):
    """The phase of each leg, from 0 to 1."""
    period_s, _, offsets = clock
    phases = np.empty(4)
    for leg in range(4):
        phases[leg] = rounded(time_s / period_s + offsets[leg]) % 1.0
    return phases


@compiled
def swing_progress(clock, time_s):
    """The completed fraction of each leg's swing; negative in stance."""
    duty = clock[1]
    return (phases_at(clock, time_s) - duty) / (1 - duty)


@compiled
def scheduled_contacts(clock, time_s, steps, step_s):
    """Which legs are scheduled for stance in each of the next steps, at the middle of the step."""
    contacts = np.empty((steps, 4), np.bool_)
    for k in range(steps):
        contacts[k] = phases_at(clock, time_s + step_s * (k + 0.5)) < clock[1]
    return contacts


@compiled
def rounded(phase):
    """A phase without rounding errors."""
    return np.rint(phase * PHASE_RESOLUTION) / PHASE_RESOLUTION


@compiled
def foot_states(
    swing_progress: Float[np.ndarray, " 4"], touching: Bool[np.ndarray, " 4"], before: Int[np.ndarray, " 4"]
) -> Int[np.ndarray, " 4"]:
    """The state of each foot, from its schedule, its contact and its previous state.

    A foot that has landed early remains in contact until its stance begins, so that it does not swing twice.
    """
    states = np.empty(4, np.int64)
    for leg in range(4):
        if swing_progress[leg] < 0:
            states[leg] = STANCE if touching[leg] else LOST
        elif before[leg] == EARLY or (touching[leg] and swing_progress[leg] > EARLIEST_CONTACT):
            states[leg] = EARLY
        else:
            states[leg] = SWING
    return states
