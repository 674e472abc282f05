"""The way of a foot through the air, from where it lifts off to where it shall land."""

import numpy as np
from jaxtyping import Float

from iap._compile import compiled

PEAK, LANDING = 0.45, 0.9  # shares of the swing at which the foot is highest, and at which it should touch
PEAK_SHARE = 0.7  # of the way, that the foot has behind it at its highest
PRESS_M = 0.03  # below the landing point, so that a foot finds ground that is lower than it was thought to be

RISEN, LEAVING, ARRIVED, FALLING = 0.4, 0.18, 0.78, 0.6  # shares of the vertical-first swing


@compiled
def _ease(x):
    """From 0 to 1 with no speed at either end."""
    x = min(max(x, 0.0), 1.0)
    return x * x * (3 - 2 * x)


@compiled
def standard_swing(
    progress: float, start: Float[np.ndarray, " 3"], landing: Float[np.ndarray, " 3"], clearance_m: float
) -> Float[np.ndarray, " 3"]:
    """Up and forward at once; the highest point lies `clearance_m` above the straight way, nearer to the landing.

    The keyframes are lift-off, peak, landing and the press into the ground, at 0, 0.45, 0.9 and 1 of the swing.
    """
    foot = np.empty(3)
    way = landing - start
    peak = start + PEAK_SHARE * way
    peak[2] += clearance_m
    if progress < PEAK:
        share, begin, end = progress / PEAK, start, peak
    else:
        share, begin, end = min((progress - PEAK) / (LANDING - PEAK), 1.0), peak, landing
    for axis in range(2):  # the foot does not stop at the peak on its way forward
        pace = way[axis] * PEAK / LANDING
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
    """The cubic from `begin` to `end` with these speeds, in units of the interval."""
    return begin + _ease(x) * (end - begin) + x * (1 - x) ** 2 * speed_at_begin - x * x * (1 - x) * speed_at_end
