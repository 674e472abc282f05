import math

import numpy as np
import pytest

from iap.locomotion.footholds import follow_feet, inverse_raibert, raibert

HIPS = np.array([(0.2, -0.1), (0.2, 0.1), (-0.2, -0.1), (-0.2, 0.1)])
ALL = np.ones(4, bool)


def test_at_the_wanted_velocity_a_foot_lands_where_the_body_passes_in_the_middle_of_its_stance():
    velocity = np.array([0.4, -0.1])
    feet = raibert(HIPS, velocity, velocity, lead_s=0.35)
    np.testing.assert_allclose(feet, HIPS + 0.35 * velocity)


def test_whoever_is_too_fast_steps_farther_out():
    fast = raibert(HIPS, np.array([0.5, 0.0]), np.array([0.3, 0.0]), lead_s=0.15)
    np.testing.assert_allclose(fast[:, 0] - HIPS[:, 0], 0.5 * 0.15 + 0.03 * 0.2)


def test_footholds_of_the_present_velocity_call_for_it():
    velocity = np.array([0.3, 0.05])
    wanted = inverse_raibert(np.tile(velocity * 0.1, (4, 1)), ALL, velocity, swing_s=0.2)
    np.testing.assert_allclose(wanted, velocity)


def test_footholds_farther_ahead_call_for_more_speed_by_the_gains():
    velocity = np.array([0.3, 0.0])
    targets = np.tile(velocity * 0.1, (4, 1))
    targets[1] += [0.05, 0.02]
    targets[3] -= 1.0  # stands, and does not count
    swinging = np.array([False, True, False, False])
    np.testing.assert_allclose(inverse_raibert(targets, swinging, velocity, 0.2) - velocity, [0.05 / 0.25, 0.02 / 0.1])
    np.testing.assert_array_equal(inverse_raibert(targets, ~ALL, velocity, 0.2), velocity)


@pytest.mark.parametrize("yaw", [0.0, 0.7, math.pi - 0.02])
def test_the_body_goes_where_its_feet_are(yaw):
    turned = np.array([[math.cos(yaw), math.sin(yaw)], [-math.sin(yaw), math.cos(yaw)]])
    body = np.array([3.0, -2.0])
    left, turning = follow_feet((HIPS + np.array([0.3, 0.02])) @ turned + body, body, yaw)
    assert left == pytest.approx(5 * 0.02)
    assert turning == pytest.approx(0, abs=1e-12)


def test_the_body_turns_along_its_feet_by_the_shorter_way():
    yaw = math.pi - 0.02
    ahead = math.pi + 0.04
    turned = np.array([[math.cos(ahead), math.sin(ahead)], [-math.sin(ahead), math.cos(ahead)]])
    left, turning = follow_feet(HIPS @ turned, np.zeros(2), yaw)
    assert turning == pytest.approx(1.5 * 0.06)
    assert left == pytest.approx(0, abs=1e-9)


def test_it_never_hurries():
    assert follow_feet(HIPS + np.array([0.0, 1.0]), np.zeros(2), 0.0) == (0.2, 0.0)
    assert follow_feet(HIPS, np.zeros(2), 1.0)[1] == -0.2
