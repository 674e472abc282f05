"""Where to put the feet for a velocity, which velocity fits the feet, and how the body keeps above them."""

import math

import numpy as np
from jaxtyping import Bool, Float

from iap._compile import compiled

RAIBERT_GAIN_S = 0.03
INVERSE_GAINS_S = (-0.25, -0.1)
SIDEWAYS_GAIN, MOST_SIDEWAYS = 5.0, 0.2  # 1/s, m/s
TURNING_GAIN, MOST_TURNING = 1.5, 0.2  # 1/s, rad/s


@compiled
def raibert(
    hips: Float[np.ndarray, "4 2"],
    velocity: Float[np.ndarray, " 2"],
    wanted: Float[np.ndarray, " 2"],
    lead_s: float,
) -> Float[np.ndarray, "4 2"]:
    """Where feet shall land below `hips` so that the body goes on with its velocity, or comes nearer the wanted one.

    Args:
        hips: where the feet are when the body stands still.
        velocity: of the body, in the frame of `hips`.
        wanted: velocity, in the same frame.
        lead_s: the time from now to the middle of the coming stance: half a stance for a foot that lands now, and a
            whole swing more for one that lifts off now.
    """
    return hips + velocity * lead_s - RAIBERT_GAIN_S * (wanted - velocity)


def inverse_raibert(
    targets: Float[np.ndarray, "4 2"],
    swinging: Bool[np.ndarray, " 4"],
    velocity: Float[np.ndarray, " 2"],
    swing_s: float,
) -> Float[np.ndarray, " 2"]:
    """The velocity for which the chosen footholds are the right ones; the present one if no leg swings.

    Args:
        targets: the footholds from where the feet are when the body stands still.
        swinging: which of them count.
        velocity: of the body, in the same frame.
        swing_s: how long a swing takes.
    """
    if not swinging.any():
        return velocity
    return np.mean((velocity * swing_s / 2 - targets[swinging]) / np.array(INVERSE_GAINS_S), axis=0) + velocity


@compiled
def follow_feet(feet: Float[np.ndarray, "4 2"], body: Float[np.ndarray, " 2"], yaw: float) -> tuple[float, float]:
    """The velocity to the left and the yaw rate that keep the body above its feet, and along them."""
    ahead = (feet[0] + feet[1] - feet[2] - feet[3]) / 2
    turn = math.atan2(ahead[1], ahead[0]) - yaw
    turn = math.atan2(math.sin(turn), math.cos(turn))
    aside = (feet[0] + feet[1] + feet[2] + feet[3]) / 4 - body
    left = math.cos(yaw) * aside[1] - math.sin(yaw) * aside[0]
    return _clip(SIDEWAYS_GAIN * left, MOST_SIDEWAYS), _clip(TURNING_GAIN * turn, MOST_TURNING)


@compiled
def _clip(x: float, most: float) -> float:
    return min(max(x, -most), most)
