"""Raibert's rule for footholds, its inverse, and the velocity that keeps the body above its feet."""

import math

import numpy as np
from jaxtyping import Bool, Float

from iap._compile import compiled

RAIBERT_GAIN_S = 0.03
INVERSE_GAINS_S = (-0.25, -0.1)
SIDEWAYS_GAIN, MAX_SIDEWAYS = 5.0, 0.2  # 1/s, m/s
TURNING_GAIN, MAX_TURNING = 1.5, 0.2  # 1/s, rad/s


@compiled
def raibert(
    hips: Float[np.ndarray, "4 2"],
    velocity: Float[np.ndarray, " 2"],
    wanted: Float[np.ndarray, " 2"],
    lead_s: float,
) -> Float[np.ndarray, "4 2"]:
    """Footholds that keep the body's velocity, or change it towards the wanted one.

    Args:
        hips: positions of the feet when the body stands still.
        velocity: of the body, in the frame of `hips`.
        wanted: velocity, in the same frame.
        lead_s: time from now to the middle of the next stance: half a stance for a foot that lands now, plus a swing
            for a foot that lifts off now.
    """
    return hips + velocity * lead_s - RAIBERT_GAIN_S * (wanted - velocity)


def inverse_raibert(
    targets: Float[np.ndarray, "4 2"],
    swinging: Bool[np.ndarray, " 4"],
    velocity: Float[np.ndarray, " 2"],
    swing_s: float,
) -> Float[np.ndarray, " 2"]:
    """The velocity for which Raibert's rule gives the chosen footholds; the current one if no leg swings.

    Args:
        targets: footholds relative to the positions of the feet when the body stands still.
        swinging: which of them to use.
        velocity: of the body, in the same frame.
        swing_s: duration of a swing.
    """
    if not swinging.any():
        return velocity
    return np.mean((velocity * swing_s / 2 - targets[swinging]) / np.array(INVERSE_GAINS_S), axis=0) + velocity


@compiled
def feedback_velocity(feet: Float[np.ndarray, "4 2"], body: Float[np.ndarray, " 2"], yaw: float) -> tuple[float, float]:
    """The velocity to the left and the yaw rate that move the body over the centre and the direction of its feet."""
    direction = (feet[0] + feet[1] - feet[2] - feet[3]) / 2
    turn = math.atan2(direction[1], direction[0]) - yaw
    turn = math.atan2(math.sin(turn), math.cos(turn))
    offset = (feet[0] + feet[1] + feet[2] + feet[3]) / 4 - body
    left = math.cos(yaw) * offset[1] - math.sin(yaw) * offset[0]
    return _clip(SIDEWAYS_GAIN * left, MAX_SIDEWAYS), _clip(TURNING_GAIN * turn, MAX_TURNING)


@compiled
def _clip(x: float, most: float) -> float:
    return min(max(x, -most), most)
