"""Three-joint legs: where the toes are, how fast they move with the joints, and which angles bring them somewhere.

Everything is in the body's frame: x forward, y left, z up. A leg turns about x (abduction: positive puts the toe to the
left), then its thigh and its shank turn about y. The order of legs is front right, front left, rear right, rear left.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from iap._compile import compiled


@dataclass(frozen=True, eq=False)
class Legs:
    """The four legs of a robot.

    Attributes:
        hips: the abduction joints, in metres from the base.
        lateral_m: how far the leg's plane lies from the abduction axis, positive to the left.
        thigh_m: length of the thigh.
        shank_m: length of the shank.
        thigh_angle: of the thigh behind the vertical when its motor is at zero.
        shank_angle: of the shank behind the vertical when both motors are at zero.
    """

    hips: Float[np.ndarray, "4 3"]
    lateral_m: Float[np.ndarray, " 4"]
    thigh_m: float
    shank_m: float
    thigh_angle: float = 0.0
    shank_angle: float = 0.0

    @cached_property
    def geometry(self) -> tuple[Any, Any, Any]:
        """What compiled loops take."""
        bones = (self.thigh_m, self.shank_m, self.thigh_angle, self.shank_angle)
        return self.hips, self.lateral_m, bones

    def toes(self, angles: Float[np.ndarray, "4 3"]) -> Float[np.ndarray, "4 3"]:
        """Where the toes are at these angles of abduction, thigh and knee."""
        return find_toes(*self.geometry, angles)

    def jacobians(self, angles: Float[np.ndarray, "4 3"]) -> Float[np.ndarray, "4 3 3"]:
        """The derivative of each toe's position by its leg's angles: velocities are J·q̇, and torques Jᵀ·force."""
        return find_jacobians(*self.geometry, angles)

    def angles(self, toes: Float[np.ndarray, "4 3"]) -> Float[np.ndarray, "4 3"]:
        """The angles that bring the toes there, knees backwards; a toe out of reach stretches its leg towards it."""
        return find_angles(*self.geometry, toes)


@compiled
def find_toes(hips, lateral, bones, angles):
    """Where the toes are."""
    thigh, shank, thigh_zero, shank_zero = bones
    toes = np.empty((4, 3))
    for leg in range(4):
        a = angles[leg, 1] + thigh_zero
        b = angles[leg, 1] + angles[leg, 2] + shank_zero
        height = -thigh * math.cos(a) - shank * math.cos(b)
        s, c = math.sin(angles[leg, 0]), math.cos(angles[leg, 0])
        toes[leg, 0] = hips[leg, 0] - thigh * math.sin(a) - shank * math.sin(b)
        toes[leg, 1] = hips[leg, 1] + c * lateral[leg] - s * height
        toes[leg, 2] = hips[leg, 2] + s * lateral[leg] + c * height
    return toes


@compiled
def find_jacobians(hips, lateral, bones, angles):
    """The derivatives of toes by angles."""
    thigh, shank, thigh_zero, shank_zero = bones
    jacobians = np.empty((4, 3, 3))
    toes = find_toes(hips, lateral, bones, angles)
    for leg in range(4):
        a = angles[leg, 1] + thigh_zero
        b = angles[leg, 1] + angles[leg, 2] + shank_zero
        s, c = math.sin(angles[leg, 0]), math.cos(angles[leg, 0])
        jacobians[leg, 0, 0] = 0.0
        jacobians[leg, 1, 0] = hips[leg, 2] - toes[leg, 2]
        jacobians[leg, 2, 0] = toes[leg, 1] - hips[leg, 1]
        forward = -shank * math.cos(b)
        upward = shank * math.sin(b)
        jacobians[leg, 0, 2], jacobians[leg, 1, 2], jacobians[leg, 2, 2] = forward, -s * upward, c * upward
        forward -= thigh * math.cos(a)
        upward += thigh * math.sin(a)
        jacobians[leg, 0, 1], jacobians[leg, 1, 1], jacobians[leg, 2, 1] = forward, -s * upward, c * upward
    return jacobians


@compiled
def find_angles(hips, lateral, bones, toes):
    """The angles for toes."""
    thigh, shank, thigh_zero, shank_zero = bones
    angles = np.empty((4, 3))
    for leg in range(4):
        x, y, z = toes[leg, 0] - hips[leg, 0], toes[leg, 1] - hips[leg, 1], toes[leg, 2] - hips[leg, 2]
        height = -math.sqrt(max(y * y + z * z - lateral[leg] ** 2, 1e-12))  # in the leg's plane
        turn = math.atan2(z, y) - math.atan2(height, lateral[leg])
        turn = math.atan2(math.sin(turn), math.cos(turn))
        cosine = (x * x + height * height - thigh**2 - shank**2) / (2 * thigh * shank)
        knee = -math.acos(min(max(cosine, -1.0), 1.0))
        a = math.atan2(-x, -height) - math.atan2(shank * math.sin(knee), thigh + shank * math.cos(knee))
        angles[leg, 0] = turn
        angles[leg, 1] = a - thigh_zero
        angles[leg, 2] = knee - shank_zero + thigh_zero
    return angles
