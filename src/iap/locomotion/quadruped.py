"""What a controller has to know of a robot."""

import math
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float

from iap.locomotion.kinematics import Legs
from iap.locomotion.mpc import MPCSpec


@dataclass(frozen=True, eq=False)
class Quadruped:
    """A robot with four legs of three motors each.

    Attributes:
        legs: their geometry.
        stance_m: where the toes are below the body when it stands, forward and to the left of the base.
        pose_rad: the angles of a leg's motors in the standing pose.
        toe_radius_m: of the ball at the end of a shank, whose centre is called the toe.
        com_m: the centre of mass, from the base, in the standing pose.
        mpc: mass, inertia and weights of the stance control.
    """

    legs: Legs
    stance_m: Float[np.ndarray, "4 2"]
    pose_rad: tuple[float, float, float]
    toe_radius_m: float
    com_m: Float[np.ndarray, " 3"]
    mpc: MPCSpec = field(repr=False)


def _laikago() -> Quadruped:
    front_m, rear_m, side_m, below_m = 0.199095, -0.238195, 0.081714, -0.03
    right_m, left_m = -0.053565 + 0.02069, 0.055855 - 0.02069  # of the legs' planes, from the abduction axes
    thigh, shank = (0.1422, 0.20833), (0.022, 0.25)  # back and down, as drawn
    hip_zero, knee_zero = -0.6, 0.66  # of the motors, from how the legs are drawn
    legs = Legs(
        hips=np.array([(x, y, below_m) for x in (front_m, rear_m) for y in (-side_m, side_m)]),
        lateral_m=np.array([right_m, left_m, right_m, left_m]),
        thigh_m=math.hypot(*thigh),
        shank_m=math.hypot(*shank),
        thigh_angle=math.atan2(*thigh) + hip_zero,
        shank_angle=math.atan2(*shank) + hip_zero + knee_zero,
    )
    return Quadruped(
        legs=legs,
        stance_m=np.array([(x, y) for x in (0.199, -0.238) for y in (-0.117, 0.117)]),
        pose_rad=(0.0, 0.67, -1.25),
        toe_radius_m=0.03,
        com_m=np.array([-0.022, 0.0, -0.041]),
        mpc=MPCSpec(mass_kg=25.567, inertia=(0.603, 1.276, 1.345)),
    )


LAIKAGO = _laikago()
