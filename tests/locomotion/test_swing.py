import numpy as np
import pytest

from iap.locomotion.swing import PRESS_M, standard_swing, vertical_swing

START, LANDING = np.array([0.1, -0.2, 0.03]), np.array([0.4, -0.1, 0.2])
SWINGS = pytest.mark.parametrize("swing", [standard_swing, vertical_swing])
PROGRESS = np.linspace(0, 1, 2001)


def path(swing, start=START, landing=LANDING, clearance_m=0.08) -> np.ndarray:
    return np.array([swing(progress, start, landing, clearance_m) for progress in PROGRESS])


@SWINGS
def test_a_swing_begins_at_its_start_and_ends_below_its_landing(swing):
    np.testing.assert_allclose(swing(0.0, START, LANDING, 0.08), START)
    np.testing.assert_allclose(swing(0.9, START, LANDING, 0.08), LANDING)
    np.testing.assert_allclose(swing(1.0, START, LANDING, 0.08), LANDING - [0, 0, PRESS_M])


@SWINGS
def test_a_swing_is_smooth(swing):
    speeds = np.diff(path(swing), axis=0) / np.diff(PROGRESS)[:, None]
    assert np.abs(speeds).max() < 2.0
    before_landing = PROGRESS[1:-1] < 0.899
    assert np.abs(np.diff(speeds, axis=0)[before_landing]).max() < 0.02


def test_the_peak_of_the_standard_swing_is_beyond_the_middle_and_above_the_line():
    np.testing.assert_allclose(standard_swing(0.45, START, LANDING, 0.08), 0.3 * START + 0.7 * LANDING + [0, 0, 0.08])
    assert path(standard_swing)[:, 2].max() == pytest.approx(0.3 * START[2] + 0.7 * LANDING[2] + 0.08, abs=1e-6)


def test_the_vertical_swing_moves_forward_only_above_the_landing():
    feet = path(vertical_swing)
    top = LANDING[2] + 0.08
    assert feet[:, 2].max() == pytest.approx(top)
    forward = (feet[:, 0] - START[0]) / (LANDING[0] - START[0])
    is_moving = (forward > 0.2) & (forward < 0.9)
    assert (feet[is_moving, 2] > LANDING[2]).all()
    assert (forward[PROGRESS < 0.18] == 0).all()
    np.testing.assert_allclose(forward[PROGRESS > 0.78], 1)


def test_the_vertical_swing_clears_the_edge_downwards_too():
    feet = path(vertical_swing, start=LANDING, landing=START)
    assert feet[:, 2].max() == pytest.approx(LANDING[2] + 0.08)
