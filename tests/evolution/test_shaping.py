import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import rankdata

from iap.evolution.shaping import SHAPINGS, shape

returns_lists = st.lists(st.one_of(st.integers(-3, 3).map(float), st.floats(-1e300, 1e300)), min_size=2, max_size=30)


@given(returns_lists)
def test_centred_ranks_equal_those_of_scipy(returns):
    expected = (rankdata(returns) - 1) / (len(returns) - 1) - 0.5
    np.testing.assert_allclose(shape("ranks", np.array(returns)), expected, atol=1e-6)


def test_centred_ranks_span_minus_a_half_to_a_half():
    assert shape("ranks", np.array([3.0, -7.0, 100.0])).tolist() == [0.0, -0.5, 0.5]


@given(returns_lists)
def test_utilities_have_the_order_of_the_returns_and_sum_to_zero(returns):
    returns = np.array(returns)
    for shaping in SHAPINGS:
        utilities = shape(shaping, returns)
        assert utilities.dtype == np.float32
        assert (np.diff(utilities[np.argsort(returns)]) >= 0).all()
        assert abs(utilities.sum()) < 1e-4


@pytest.mark.parametrize(("offset", "spread"), [(0, 1), (1e6, 1e-3), (-1e9, 10), (0, 1e-200), (0, 1e200)])
def test_standardised_returns_have_mean_0_and_deviation_1_at_any_scale(offset, spread):
    values = np.random.default_rng(0).standard_normal(40)
    expected = (values - values.mean()) / values.std()
    np.testing.assert_allclose(shape("standardised", offset + spread * values), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("shaping", SHAPINGS)
def test_equal_returns_have_utility_zero(shaping):
    for value in (0.0, 0.1, -1e300, np.nan, -np.inf):
        assert not shape(shaping, np.full(7, value)).any(), value


@pytest.mark.parametrize("failed", [np.nan, np.inf, -np.inf])
def test_a_failed_candidate_ranks_strictly_last(failed):
    assert shape("ranks", np.array([-1e300, failed, 5.0])).tolist() == [0.0, -0.5, 0.5]


@pytest.mark.parametrize("failed", [np.nan, np.inf, -np.inf])
def test_a_failed_candidate_is_standardised_as_the_worst_that_finished(failed):
    utilities = shape("standardised", np.array([1.0, failed, 2.0, 7.0]))
    assert utilities.tolist() == shape("standardised", np.array([1.0, 1.0, 2.0, 7.0])).tolist()


def test_only_ranks_distinguish_a_failed_candidate_among_equal_returns():
    returns = np.array([5.0, 5.0, np.nan, 5.0])
    assert shape("ranks", returns)[2] == -0.5
    assert not shape("standardised", returns).any()
