import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iap.locomotion.kinematics import Legs
from iap.locomotion.robots import LAIKAGO

A1 = Legs(
    hips=np.array([(x, y, 0.0) for x in (0.183, -0.183) for y in (-0.047, 0.047)]),
    lateral_m=np.array([-0.08505, 0.08505, -0.08505, 0.08505]),
    thigh_m=0.2,
    shank_m=0.2,
)
ROBOTS = pytest.mark.parametrize("legs", [LAIKAGO.legs, A1], ids=["laikago", "a1"])
JOINTS = st.tuples(st.floats(-0.8, 0.8), st.floats(-0.4, 1.6), st.floats(-2.4, -0.4))
ANGLES = st.tuples(JOINTS, JOINTS, JOINTS, JOINTS).map(np.array)


def turn(axis: int, angle: float) -> np.ndarray:
    """The homogeneous matrix of a rotation about an axis, from the exponential of its generator."""
    generator = np.cross(np.eye(3)[axis], np.eye(3)).T
    matrix = np.eye(4)
    matrix[:3, :3] += math.sin(angle) * generator + (1 - math.cos(angle)) * generator @ generator
    return matrix


def shift(*by: float) -> np.ndarray:
    matrix = np.eye(4)
    matrix[:3, 3] = by
    return matrix


@ROBOTS
@given(angles=ANGLES)
def test_toes_are_those_of_the_kinematic_chain(legs, angles):
    for leg, (abduction, hip, knee) in enumerate(angles):
        chain = shift(*legs.hips[leg]) @ turn(0, abduction) @ shift(0, legs.lateral_m[leg], 0)
        chain = chain @ turn(1, hip + legs.thigh_angle) @ shift(0, 0, -legs.thigh_m)
        chain = chain @ turn(1, knee + legs.shank_angle - legs.thigh_angle) @ shift(0, 0, -legs.shank_m)
        np.testing.assert_allclose(legs.toes(angles)[leg], chain[:3, 3], atol=1e-12)


@ROBOTS
@given(angles=ANGLES)
def test_jacobians_are_finite_differences_of_toes(legs, angles):
    step = 1e-6
    for joint in range(3):
        nudge = step * np.eye(3)[joint]
        slopes = (legs.toes(angles + nudge) - legs.toes(angles - nudge)) / (2 * step)
        np.testing.assert_allclose(legs.jacobians(angles)[:, :, joint], slopes, atol=1e-8)


@ROBOTS
@given(angles=ANGLES)
def test_inverse_kinematics_returns_to_the_same_toes(legs, angles):
    toes = legs.toes(angles)
    np.testing.assert_allclose(legs.toes(legs.angles(toes)), toes, atol=1e-9)


@ROBOTS
def test_knees_bend_backwards(legs):
    standing = legs.hips + np.stack([np.zeros(4), legs.lateral_m, np.full(4, -0.3)], axis=1)
    abduction, hip, knee = legs.angles(standing).T
    np.testing.assert_allclose(abduction, 0, atol=1e-12)
    assert (hip > 0).all()
    assert (knee < 0).all()


@ROBOTS
def test_a_leg_stretches_towards_a_position_out_of_reach(legs):
    far = legs.hips + np.stack([np.full(4, 0.3), legs.lateral_m, np.full(4, -0.9)], axis=1)
    hips = legs.hips + np.stack([np.zeros(4), legs.lateral_m, np.zeros(4)], axis=1)
    reached = legs.toes(legs.angles(far)) - hips
    np.testing.assert_allclose(np.linalg.norm(reached, axis=1), legs.thigh_m + legs.shank_m, rtol=1e-9)
    np.testing.assert_allclose(reached[:, 0] / reached[:, 2], -0.3 / 0.9, rtol=1e-9)


def test_the_toes_of_the_standing_laikago_are_below_its_hips():
    toes = LAIKAGO.legs.toes(np.tile(LAIKAGO.pose_rad, (4, 1)))
    np.testing.assert_allclose(toes[:, 2], -0.4556, atol=1e-3)
    np.testing.assert_allclose(toes[:, 1], LAIKAGO.stance_m[:, 1], atol=3e-3)
