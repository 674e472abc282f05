import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iap.locomotion.kinematics import LEGS
from iap.locomotion.trajectory_generator import TROT, WALK, StrideParameters, TrajectoryGenerator

POSE = np.tile([0.0, 0.9, -1.8], 4)
STEP_S = 0.02

shares = st.floats(0, 1, exclude_max=True)


def generator(stride: StrideParameters = TROT, phase: float = 0.0) -> TrajectoryGenerator:
    made = TrajectoryGenerator(stride, POSE, STEP_S)
    made.reset(phase)
    return made


def mirrored(angles: np.ndarray) -> np.ndarray:
    """The angles of the mirror image: legs change sides, and abduction its sign."""
    return (angles.reshape(4, 3)[[1, 0, 3, 2]] * [-1, 1, 1]).ravel()


@given(shares, st.floats(0, 5), st.floats(0, 0.75), st.floats(0, 1.35), st.floats(-0.5, 1), st.floats(-1, 1))
def test_angles_are_those_of_the_equations(turn, frequency, amplitude, lift, height, steering):
    angles = generator(TROT, turn).advance(frequency, amplitude, lift, height, steering).reshape(4, 3)
    phases = 2 * np.pi * ((turn + frequency * STEP_S + np.array(TROT.phases)) % 1)
    sides, ends = np.array([1, -1, 1, -1]), np.array([1, 1, -1, -1])  # right and left, front and rear
    extend = height + np.sin(phases) * np.where(np.sin(phases) < 0, lift, -0.04 * amplitude)
    swing = amplitude * (1 + 0.2 * steering * sides) * np.cos(phases)
    expected = np.stack([0.12 * steering * ends * np.cos(phases), 0.9 - swing - extend / 2, -1.8 + extend], axis=1)
    np.testing.assert_allclose(angles, expected, atol=1e-9)


def test_a_trot_moves_diagonal_legs_alike_and_a_walk_has_legs_a_quarter_apart():
    FR, FL, RR, RL = generator(TROT, 0.1).advance().reshape(4, 3)
    np.testing.assert_array_equal(FR, RL)
    np.testing.assert_array_equal(FL, RR)
    assert (FR != FL).any()
    assert sorted(WALK.phases) == [0, 0.25, 0.5, 0.75]


@given(st.floats(0.2, 5), shares)
def test_phases_advance_at_the_speeds_of_stance_and_swing(ratio, turn):
    stride = StrideParameters((0, 0, 0, 0), 1.0, 0.3, 0.3, swing_speed_ratio=ratio)
    advancing = generator(stride, turn)
    before = advancing.leg_phases()[0]
    advancing.advance(frequency_hz=1e-5 / STEP_S)
    after = advancing.leg_phases()[0]
    speed = (after - before) / (2 * math.pi * 1e-5)
    if after < math.pi:
        assert speed == pytest.approx((ratio + 1) / (2 * ratio), rel=1e-4)
    elif math.pi <= before < after:
        assert speed == pytest.approx((ratio + 1) / 2, rel=1e-4)


def test_angles_are_periodic():
    walking = generator(WALK)
    angles = [walking.advance(frequency_hz=2.5) for _ in range(40)]
    np.testing.assert_allclose(angles[0], angles[20], atol=1e-9)
    assert np.ptp(angles, axis=0)[1] > 0.3


@given(shares, st.floats(-1, 1))
def test_opposite_steering_half_a_cycle_later_is_the_mirror_image(turn, steering):
    ours = generator(TROT, turn).advance(steering=steering)
    theirs = generator(TROT, turn + 0.5).advance(steering=-steering)
    np.testing.assert_allclose(ours, mirrored(theirs), atol=1e-9)


@given(shares)
def test_the_observed_phase_is_on_a_circle_around_one_half(turn):
    across, up = generator(TROT, turn).observe()
    assert math.hypot(across - 0.5, up - 0.5) == pytest.approx(0.5)
    assert math.atan2(up - 0.5, across - 0.5) % (2 * math.pi) == pytest.approx(2 * math.pi * turn, abs=1e-6)


@pytest.mark.parametrize("ratio", [0.1, 6, math.nan])
def test_an_invalid_swing_speed_ratio_is_refused(ratio):
    with pytest.raises(ValueError, match=f"swing_speed_ratio must be between 0.2 and 5, not {ratio}"):
        StrideParameters((0, 0, 0, 0), 1, 0.3, 0.3, swing_speed_ratio=ratio)


def test_phases_of_all_legs_are_required():
    with pytest.raises(ValueError, match=f"phases must have an entry for each of {', '.join(LEGS)}"):
        StrideParameters((0.0, 0.5), 1, 0.3, 0.3)  # pyright: ignore[reportArgumentType]
