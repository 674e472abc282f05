"""Trajectories of a foot from lift-off to landing."""

import numpy as np
from jaxtyping import Float

from iap._compile import compiled

PEAK, LANDING = 0.45, 0.9  # fractions of the swing at which the foot is highest, and at which it should land
PEAK_FRACTION = 0.7  # of the distance to the landing that the foot has covered at its highest point
PRESS_M = 0.03  # final target below the landing point, so that a foot finds ground that is lower than expected

RISEN, LEAVING, ARRIVED, FALLING = 0.4, 0.18, 0.78, 0.6  # fractions of the vertical-first swing


@compiled
def _ease(x):
    """From 0 to 1 with zero derivative at both ends."""
    x = min(max(x, 0.0), 1.0)
    return x * x * (3 - 2 * x)


@compiled
def standard_swing(
    progress: float, start: Float[np.ndarray, " 3"], landing: Float[np.ndarray, " 3"], clearance_m: float
) -> Float[np.ndarray, " 3"]:
    """Up and forward at the same time; the peak is `clearance_m` above the straight line, closer to the landing.

    The keyframes are lift-off, peak, landing and the press into the ground, at 0, 0.45, 0.9 and 1 of the swing.
    """
    foot = np.empty(3)
    path = landing - start
    peak = start + PEAK_FRACTION * path
    peak[2] += clearance_m
    if progress < PEAK:
        share, begin, end = progress / PEAK, start, peak
    else:
        share, begin, end = min((progress - PEAK) / (LANDING - PEAK), 1.0), peak, landing
    for axis in range(2):  # the forward velocity is not zero at the peak
        pace = path[axis] * PEAK / LANDING
        at_begin, at_end = (0.0, pace) if progress < PEAK else (pace, 0.0)
        foot[axis] = _hermite(share, begin[axis], end[axis], at_begin, at_end)
    foot[2] = begin[2] + _ease(share) * (end[2] - begin[2])
    foot[2] -= PRESS_M * max((progress - LANDING) / (1 - LANDING), 0.0)
    return foot


@compiled
def vertical_swing(
    progress: float, start: Float[np.ndarray, " 3"], landing: Float[np.ndarray, " 3"], clearance_m: float
) -> Float[np.ndarray, " 3"]:
    """Up first, then forward, then down, so that a foot clears the edge of a stair."""
    foot = np.empty(3)
    top = max(start[2], landing[2]) + clearance_m
    forward = _ease((progress - LEAVING) / (ARRIVED - LEAVING))
    foot[:2] = start[:2] + forward * (landing[:2] - start[:2])
    if progress < FALLING:
        foot[2] = start[2] + _ease(progress / RISEN) * (top - start[2])
    else:
        foot[2] = top + _ease((progress - FALLING) / (LANDING - FALLING)) * (landing[2] - top)
    foot[2] -= PRESS_M * max((progress - LANDING) / (1 - LANDING), 0.0)
    return foot


@compiled
def _hermite(x, begin, end, speed_at_begin, speed_at_end):
    """The cubic from `begin` to `end` with these derivatives, in units of the interval."""
    return begin + _ease(x) * (end - begin) + x * (1 - x) ** 2 * speed_at_begin - x * x * (1 - x) * speed_at_end
