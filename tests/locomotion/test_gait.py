import numpy as np
import pytest

from iap.locomotion.gait import TROT, WALK, FootState, Gait, foot_states

LOST, STANCE, SWING, EARLY = FootState.LOST, FootState.STANCE, FootState.SWING, FootState.EARLY


def lift_offs(gait: Gait, leg: int, until_s: float, step_s: float = 0.0005) -> list[float]:
    stance = [bool(gait.in_stance(i * step_s)[leg]) for i in range(round(until_s / step_s))]
    return [i * step_s for i in range(1, len(stance)) if stance[i - 1] and not stance[i]]


@pytest.mark.parametrize(
    ("gait", "period_s", "swing_s", "first_lift_offs_s"),
    [
        (TROT, 0.5, 0.2, (0.3, 0.05, 0.05, 0.3)),
        (WALK, 0.9375, 0.1875, (0.515625, 0.046875, 0.28125, 0.75)),
    ],
    ids=["trot", "walk"],
)
def test_legs_lift_off_at_the_scheduled_times(gait, period_s, swing_s, first_lift_offs_s):
    assert gait.period_s == pytest.approx(period_s)
    assert gait.swing_s == pytest.approx(swing_s)
    for leg in range(4):
        times = lift_offs(gait, leg, 2.5)
        assert times[0] == pytest.approx(first_lift_offs_s[leg], abs=6e-4)
        np.testing.assert_allclose(np.diff(times), period_s, atol=1.1e-3)


def test_a_trot_moves_diagonal_pairs_with_one_pair_always_in_stance():
    for time_s in np.linspace(0, 2, 401):
        front_right, front_left, rear_right, rear_left = TROT.in_stance(time_s)
        assert front_right == rear_left
        assert front_left == rear_right
        assert front_right or front_left


def test_a_walk_lifts_one_leg_at_a_time_rear_before_front_of_the_same_side():
    assert min(WALK.in_stance(time_s).sum() for time_s in np.linspace(0, 2, 2001)) == 3
    first = sorted(range(4), key=lambda leg: lift_offs(WALK, leg, 1.0)[0])
    assert first == [1, 2, 0, 3]  # front left, rear right, front right, rear left


def test_lift_off_does_not_depend_on_rounding_errors_of_the_time():
    added = 0.0
    for i in range(4000):
        np.testing.assert_array_equal(TROT.in_stance(added), TROT.in_stance(i * 0.005))
        added += 0.005


def test_swing_progress_goes_from_zero_to_one():
    np.testing.assert_allclose(TROT.swing_progress(0.05)[1], 0, atol=1e-9)
    np.testing.assert_allclose(TROT.swing_progress(0.15)[1], 0.5)
    np.testing.assert_allclose(TROT.swing_progress(0.2499)[1], 1, atol=1e-3)
    assert TROT.swing_progress(0.2501)[1] < 0


def test_scheduled_contacts_are_those_in_the_middle_of_each_step():
    contacts = TROT.contacts(0.11, 10, 0.025)
    expected = [TROT.in_stance(0.11 + 0.025 * (i + 0.5)) for i in range(10)]
    np.testing.assert_array_equal(contacts, expected)


@pytest.mark.parametrize(
    ("progress", "touches", "before", "after"),
    [
        (-0.2, True, STANCE, STANCE),
        (-0.2, False, STANCE, LOST),
        (-0.2, True, LOST, STANCE),
        (-0.2, True, EARLY, STANCE),
        (0.1, True, STANCE, SWING),
        (0.1, False, LOST, SWING),
        (0.49, True, SWING, SWING),
        (0.6, False, SWING, SWING),
        (0.6, True, SWING, EARLY),
        (0.8, False, EARLY, EARLY),
    ],
)
def test_foot_states_include_early_and_lost_contacts(progress, touches, before, after):
    states = foot_states(np.full(4, progress), np.full(4, touches), np.full(4, before))
    assert states.tolist() == [after] * 4


@pytest.mark.parametrize(
    ("stance_s", "duty", "named"), [(0.0, 0.5, "stance_s"), (0.3, 1.0, "duty"), (0.3, 0.0, "duty")]
)
def test_an_invalid_gait_is_refused(stance_s, duty, named):
    with pytest.raises(ValueError, match=named):
        Gait(stance_s, duty, (0, 0, 0, 0))
