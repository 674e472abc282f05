import math

import numpy as np
import pytest

from iap.locomotion.footholds import feedback_velocity, inverse_raibert, raibert

HIPS = np.array([(0.2, -0.1), (0.2, 0.1), (-0.2, -0.1), (-0.2, 0.1)])
ALL = np.ones(4, bool)


def test_at_the_wanted_velocity_the_foothold_is_below_the_hip_in_the_middle_of_the_stance():
    velocity = np.array([0.4, -0.1])
    feet = raibert(HIPS, velocity, velocity, lead_s=0.35)
    np.testing.assert_allclose(feet, HIPS + 0.35 * velocity)


def test_a_body_that_is_too_fast_steps_farther():
    fast = raibert(HIPS, np.array([0.5, 0.0]), np.array([0.3, 0.0]), lead_s=0.15)
    np.testing.assert_allclose(fast[:, 0] - HIPS[:, 0], 0.5 * 0.15 + 0.03 * 0.2)


def test_the_inverse_of_footholds_for_a_velocity_is_that_velocity():
    velocity = np.array([0.3, 0.05])
    wanted = inverse_raibert(np.tile(velocity * 0.1, (4, 1)), ALL, velocity, swing_s=0.2)
    np.testing.assert_allclose(wanted, velocity)


def test_footholds_farther_ahead_increase_the_velocity_by_the_gains():
    velocity = np.array([0.3, 0.0])
    targets = np.tile(velocity * 0.1, (4, 1))
    targets[1] += [0.05, 0.02]
    targets[3] -= 1.0  # not in swing, so it is ignored
    swinging = np.array([False, True, False, False])
    np.testing.assert_allclose(inverse_raibert(targets, swinging, velocity, 0.2) - velocity, [0.05 / 0.25, 0.02 / 0.1])
    np.testing.assert_array_equal(inverse_raibert(targets, ~ALL, velocity, 0.2), velocity)


@pytest.mark.parametrize("yaw", [0.0, 0.7, math.pi - 0.02])
def test_feedback_moves_the_body_over_its_feet(yaw):
    turned = np.array([[math.cos(yaw), math.sin(yaw)], [-math.sin(yaw), math.cos(yaw)]])
    body = np.array([3.0, -2.0])
    left, turning = feedback_velocity((HIPS + np.array([0.3, 0.02])) @ turned + body, body, yaw)
    assert left == pytest.approx(5 * 0.02)
    assert turning == pytest.approx(0, abs=1e-12)


def test_feedback_turns_the_body_by_the_smaller_angle():
    yaw = math.pi - 0.02
    ahead = math.pi + 0.04
    turned = np.array([[math.cos(ahead), math.sin(ahead)], [-math.sin(ahead), math.cos(ahead)]])
    left, turning = feedback_velocity(HIPS @ turned, np.zeros(2), yaw)
    assert turning == pytest.approx(1.5 * 0.06)
    assert left == pytest.approx(0, abs=1e-9)


def test_feedback_is_limited():
    assert feedback_velocity(HIPS + np.array([0.0, 1.0]), np.zeros(2), 0.0) == (0.2, 0.0)
    assert feedback_velocity(HIPS, np.zeros(2), 1.0)[1] == -0.2
