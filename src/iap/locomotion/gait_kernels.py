"""The loops behind `gait`, compiled. A clock is a gait's period, the share of it for which legs stand, and phases."""

import numpy as np
from jaxtyping import Bool, Float, Int

from iap._compile import compiled

LOST, STANCE, SWING, EARLY = -2, -1, 1, 2  # what a foot does: see `gait.FootState`

EARLIEST_TOUCH = 0.5  # share of the swing before which a touch is the ground that the foot is just leaving
ROUNDING = 1e9  # parts of a phase, so that a leg lifts off at the same step however the time was added up


@compiled
def phases_at(clock, time_s):
    """Where in the cycle each leg is, from 0 to 1."""
    period_s, _, offsets = clock
    phases = np.empty(4)
    for leg in range(4):
        phases[leg] = rounded(time_s / period_s + offsets[leg]) % 1.0
    return phases


@compiled
def swing_progress(clock, time_s):
    """How much of its swing each leg has behind it; below zero where it stands."""
    duty = clock[1]
    return (phases_at(clock, time_s) - duty) / (1 - duty)


@compiled
def coming_contacts(clock, time_s, steps, step_s):
    """Which legs should stand in each of the coming steps, by the middle of the step."""
    contacts = np.empty((steps, 4), np.bool_)
    for k in range(steps):
        contacts[k] = phases_at(clock, time_s + step_s * (k + 0.5)) < clock[1]
    return contacts


@compiled
def rounded(phase):
    """A phase as exactly as it is told."""
    return np.rint(phase * ROUNDING) / ROUNDING


@compiled
def foot_states(
    swing_progress: Float[np.ndarray, " 4"], touching: Bool[np.ndarray, " 4"], before: Int[np.ndarray, " 4"]
) -> Int[np.ndarray, " 4"]:
    """What each foot does, given what it should do, whether it touches the ground, and what it did before.

    Whoever has landed early stands until its stance begins: a foot does not swing twice.
    """
    states = np.empty(4, np.int64)
    for leg in range(4):
        if swing_progress[leg] < 0:
            states[leg] = STANCE if touching[leg] else LOST
        elif before[leg] == EARLY or (touching[leg] and swing_progress[leg] > EARLIEST_TOUCH):
            states[leg] = EARLY
        else:
            states[leg] = SWING
    return states
