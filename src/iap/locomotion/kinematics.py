"""Kinematics of three-joint legs: toe positions, Jacobians, and inverse kinematics.

All coordinates are in the body's frame: x forward, y left, z up. A leg rotates about x (abduction: positive moves the
toe to the left), then thigh and shank rotate about y. The order of legs is that of `LEGS`: front right, front left,
rear right, rear left.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from jaxtyping import Float

from iap._compile import compiled

LEGS = ("FR", "FL", "RR", "RL")


@dataclass(frozen=True, eq=False)
class Legs:
    """The four legs of a robot.

    Attributes:
        hips: positions of the abduction joints relative to the base, in metres.
        lateral_m: distance of the leg's plane from the abduction axis, positive to the left.
        thigh_m: length of the thigh.
        shank_m: length of the shank.
        thigh_angle: of the thigh behind the vertical when its motor angle is zero.
        shank_angle: of the shank behind the vertical when both motor angles are zero.
    """

    hips: Float[np.ndarray, "4 3"]
    lateral_m: Float[np.ndarray, " 4"]
    thigh_m: float
    shank_m: float
    thigh_angle: float = 0.0
    shank_angle: float = 0.0

    @cached_property
    def geometry(self) -> tuple[Any, Any, Any]:
        """The geometry for compiled functions."""
        bones = (self.thigh_m, self.shank_m, self.thigh_angle, self.shank_angle)
        return self.hips, self.lateral_m, bones

    def toes(self, angles: Float[np.ndarray, "4 3"]) -> Float[np.ndarray, "4 3"]:
        """The toe positions at these angles of abduction, thigh and knee."""
        return find_toes(*self.geometry, angles)

    def jacobians(self, angles: Float[np.ndarray, "4 3"]) -> Float[np.ndarray, "4 3 3"]:
        """The derivative of each toe's position with respect to its leg's angles."""
        return find_jacobians(*self.geometry, angles)

    def angles(self, toes: Float[np.ndarray, "4 3"]) -> Float[np.ndarray, "4 3"]:
        """The angles for these toe positions, with knees backwards; a leg is stretched towards a toe out of reach."""
        return find_angles(*self.geometry, toes)


@compiled
def find_toes(hips, lateral, bones, angles):
    """Toe positions from angles."""
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
    """Derivatives of toe positions with respect to angles."""
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
    """Angles from toe positions."""
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
