"""Gaits: when each leg stands and swings, and what becomes of a foot that touches too early or not at all."""

from dataclasses import dataclass, replace
from enum import IntEnum
from functools import cached_property

import numpy as np
from jaxtyping import Bool, Float, Int
from numba import njit

EARLIEST_TOUCH = 0.5  # share of the swing before which a touch is the ground that the foot is just leaving
ROUNDING = 9  # digits of a phase, so that a leg lifts off at the same step however the time was added up


class FootState(IntEnum):
    """What a foot does, by the numbers that a policy observes."""

    LOST = -2  # should stand, and touches nothing
    STANCE = -1
    SWING = 1
    EARLY = 2  # should swing, and has landed already


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
    def _offsets(self) -> Float[np.ndarray, " 4"]:
        return np.array(self.phases)

    def mirrored(self) -> "Gait":
        """With the legs of the left and of the right exchanged."""
        front_right, front_left, rear_right, rear_left = self.phases
        return replace(self, phases=(front_left, front_right, rear_left, rear_right))

    def phase(self, time_s: float) -> Float[np.ndarray, " 4"]:
        """Where in the cycle each leg is, from 0 to 1."""
        return (time_s / self.period_s + self._offsets).round(ROUNDING) % 1.0

    def swing_progress(self, time_s: float) -> Float[np.ndarray, " 4"]:
        """How much of its swing each leg has behind it; below zero where it stands."""
        return (self.phase(time_s) - self.duty) / (1 - self.duty)

    def stands(self, time_s: float) -> Bool[np.ndarray, " 4"]:
        """Which legs should stand."""
        return self.phase(time_s) < self.duty

    def contacts(self, time_s: float, steps: int, step_s: float) -> Bool[np.ndarray, "N 4"]:
        """Which legs should stand in each of the coming steps, by the middle of the step."""
        middles = time_s + step_s * (np.arange(steps)[:, None] + 0.5)
        return (middles / self.period_s + self._offsets).round(ROUNDING) % 1.0 < self.duty


TROT = Gait(stance_s=0.3, duty=0.6, phases=(0.0, 0.5, 0.5, 0.0))
WALK = Gait(stance_s=0.75, duty=0.8, phases=(0.25, 0.75, 0.5, 0.0))


_LOST, _STANCE, _SWING, _EARLY = (int(state) for state in FootState)


@njit(cache=True)
def foot_states(
    swing_progress: Float[np.ndarray, " 4"], touching: Bool[np.ndarray, " 4"], before: Int[np.ndarray, " 4"]
) -> Int[np.ndarray, " 4"]:
    """What each foot does, given what it should do, whether it touches the ground, and what it did before.

    Whoever has landed early stands until its stance begins: a foot does not swing twice.
    """
    states = np.empty(4, np.int64)
    for leg in range(4):
        if swing_progress[leg] < 0:
            states[leg] = _STANCE if touching[leg] else _LOST
        elif before[leg] == _EARLY or (touching[leg] and swing_progress[leg] > EARLIEST_TOUCH):
            states[leg] = _EARLY
        else:
            states[leg] = _SWING
    return states
