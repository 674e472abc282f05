"""The numbers of projections and bits equal independent evaluations of the theorems, and are monotonic."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iap.attention.bounds import (
    bits_for_hashing,
    hashing_error,
    projections_for_low_scores,
    projections_for_ranking,
    projections_for_ranking_as_printed,
)

RANKING = {"d": 4, "radius": 1.5, "epsilon": 0.3, "p": 0.1}
LOW_SCORES = {"d": 4, "alpha": 1.2, "epsilon": 0.1, "p": 0.1, "tokens": 3, "steps": 20}
HASHING = {"patches": 1000, "epsilon": 0.1, "p": 0.1, "steps": 20}


@pytest.mark.parametrize(
    ("found", "by_hand"),
    [
        # d = 4, R² = 2: 4·6·(10 + ln(2·2/(0.1·0.25)) + 1)/0.25 = 96·(11 + ln 160) = 96·16.0751738
        (projections_for_ranking_as_printed(4, math.sqrt(2), 0.5, 0.1), 1544),
        # as above with ε/τ = 0.5/e: 24·(10 + ln(160·e²) + 1)·e²/0.25 = 96·7.3890561·18.0751738
        (projections_for_ranking(4, math.sqrt(2), 0.5, 0.1), 12822),
        # d = 1, α = π/2, sin²(π/4) = 1/2: e^(4 − 2)·(1 − e^(−2))/(0.1·0.04) = (e² − 1)/0.004
        (projections_for_low_scores(1, math.pi / 2, 0.2, 0.1), 1598),
        # nine times as many for three tokens, twice as many for two steps: 18·6.3890561/0.004
        (projections_for_low_scores(1, math.pi / 2, 0.2, 0.1, tokens=3, steps=2), 28751),
        # 2/0.01·(ln 1000 + ln 20): 200·(6.9077553 + 2.9957323 + 2.9957323)
        (bits_for_hashing(1000, 0.1, 0.1, steps=20), 2580),
    ],
)
def test_values_equal_those_computed_by_hand(found, by_hand):
    assert found == by_hand


def test_the_error_of_hashing_is_exp_root_d_times_half_pi_times_epsilon():
    assert hashing_error(4, 0.1) == pytest.approx(7.3890561 * 1.5707963 * 0.1)
    assert hashing_error(9, 0.2) == pytest.approx(20.0855369 * 1.5707963 * 0.2)


@given(st.integers(1, 16), st.floats(0.1, 2), st.floats(0.05, 1), st.floats(0.01, 0.5))
def test_the_corrected_bound_is_the_printed_one_for_a_smaller_error(d, radius, epsilon, p):
    """The factor τ of the proof multiplies the error, not the probability: about τ² times as many as printed."""
    tau = math.exp(radius**2 / math.sqrt(d))
    printed, corrected = (
        f(d, radius, epsilon, p) for f in (projections_for_ranking_as_printed, projections_for_ranking)
    )
    inside = 10 + math.log(radius**2 * math.sqrt(d) * tau**2 / (p * epsilon**2)) + radius**2 / math.sqrt(d)
    assert corrected == pytest.approx(4 * (d + 2) * inside * (tau / epsilon) ** 2, rel=1e-9, abs=1)
    assert corrected >= printed


@given(st.integers(1, 16), st.floats(0.1, 3), st.floats(0.05, 1), st.floats(0.01, 0.5), st.integers(1, 9))
def test_the_bound_for_low_scores_is_chebyshevs_with_the_variance_of_positive_features(d, alpha, epsilon, p, tokens):
    """Var φ(x)·φ(y) = SM²·(exp‖x + y‖² − 1)/m, here with vectors instead of angles."""
    length = d**0.25
    x, y = (length, 0.0), (length * math.cos(math.pi - alpha), length * math.sin(math.pi - alpha))
    kernel = math.exp(x[0] * y[0] + x[1] * y[1])
    variance = kernel**2 * math.expm1((x[0] + y[0]) ** 2 + (x[1] + y[1]) ** 2)
    found = projections_for_low_scores(d, alpha, epsilon, p, tokens=tokens)
    assert found == pytest.approx(tokens**2 * variance / (p * epsilon**2), rel=1e-6, abs=1)


@pytest.mark.parametrize(
    ("function", "arguments", "stricter"),
    [
        *(
            (projections_for_ranking, RANKING, stricter)
            for stricter in ({"radius": 1.6}, {"epsilon": 0.29}, {"p": 0.09})
        ),
        *(
            (projections_for_ranking_as_printed, RANKING, stricter)
            for stricter in ({"radius": 1.6}, {"epsilon": 0.29}, {"p": 0.09})
        ),
        *(
            (projections_for_low_scores, LOW_SCORES, stricter)
            for stricter in ({"alpha": 1.3}, {"epsilon": 0.09}, {"p": 0.09}, {"tokens": 4}, {"steps": 21})
        ),
        *(
            (bits_for_hashing, HASHING, stricter)
            for stricter in ({"patches": 1100}, {"epsilon": 0.09}, {"p": 0.09}, {"steps": 22})
        ),
        (hashing_error, {"d": 4, "epsilon": 0.1}, {"d": 5}),
        (hashing_error, {"d": 4, "epsilon": 0.1}, {"epsilon": 0.11}),
    ],
)
def test_stricter_requirements_need_more(function, arguments, stricter):
    """More patches or steps, a larger ball or angle, a smaller error or a smaller probability of failure."""
    assert function(**{**arguments, **stricter}) > function(**arguments)


def test_more_dimensions_need_more_projections_at_a_fixed_temperature():
    """At a fixed R²/√d m increases with d."""
    counts = [projections_for_ranking(d, d**0.25, 0.3, 0.1) for d in (1, 2, 4, 8, 16, 64)]
    assert counts == sorted(set(counts))


def test_patches_opposite_to_every_query_need_one_projection():
    assert projections_for_low_scores(4, 0.0, 0.01, 0.01, tokens=1000, steps=1000) == 1


@pytest.mark.parametrize("function", [projections_for_ranking, projections_for_ranking_as_printed])
@pytest.mark.parametrize(
    ("name", "value", "error"),
    [
        ("d", 0, ValueError),
        ("d", 2.5, TypeError),
        ("radius", 0, ValueError),
        ("radius", -1.5, ValueError),
        ("radius", math.inf, ValueError),
        ("epsilon", 0, ValueError),
        ("epsilon", math.nan, ValueError),
        ("p", 0, ValueError),
        ("p", 1, ValueError),
        ("p", -0.5, ValueError),
    ],
)
def test_invalid_arguments_of_ranking_bounds_are_refused(function, name, value, error):
    with pytest.raises(error, match=f"{name} must be .* not {value}"):
        function(**{**RANKING, name: value})


@pytest.mark.parametrize(
    ("function", "arguments", "name", "value", "error"),
    [
        (projections_for_low_scores, LOW_SCORES, "d", 0, ValueError),
        (projections_for_low_scores, LOW_SCORES, "alpha", -0.1, ValueError),
        (projections_for_low_scores, LOW_SCORES, "alpha", 3.2, ValueError),
        (projections_for_low_scores, LOW_SCORES, "epsilon", 0, ValueError),
        (projections_for_low_scores, LOW_SCORES, "p", 1.5, ValueError),
        (projections_for_low_scores, LOW_SCORES, "tokens", 0, ValueError),
        (projections_for_low_scores, LOW_SCORES, "steps", 0, ValueError),
        (bits_for_hashing, HASHING, "patches", 0, ValueError),
        (bits_for_hashing, HASHING, "patches", 10.5, TypeError),
        (bits_for_hashing, HASHING, "epsilon", -1, ValueError),
        (bits_for_hashing, HASHING, "p", 0, ValueError),
        (bits_for_hashing, HASHING, "steps", 0, ValueError),
        (hashing_error, {"d": 4, "epsilon": 0.1}, "d", 0, ValueError),
        (hashing_error, {"d": 4, "epsilon": 0.1}, "epsilon", -1, ValueError),
    ],
)
def test_invalid_arguments_of_other_bounds_are_refused(function, arguments, name, value, error):
    with pytest.raises(error, match=f"{name} must be .* not {value}"):
        function(**{**arguments, name: value})
