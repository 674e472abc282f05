"""The second theorem, measured: the number of projections for all scores, or low scores, within ε of exact softmax.

r is the exact ranking, r′ that of the library, and a failure is ‖r − r′‖∞ > ε. ω is drawn as in the library unless
stated otherwise. All queries are equal in most tests, so that averaging over them does not reduce the error.
"""

import math

import numpy as np
import pytest

from iap.attention import Softmax, exact_scores, featurise, rank_scores
from iap.attention.bounds import (
    projections_for_low_scores,
    projections_for_ranking,
    projections_for_ranking_as_printed,
)

pytestmark = pytest.mark.slow
D, P = 4, 0.1
EAST, NORTH = np.eye(D, dtype=np.float32)[:2]


def linear_scores(features, m, normalised, queries, keys, trials):
    """r′ for `trials` draws of ω, one a row."""
    kernels = (Softmax(features, m, normalised, seed) for seed in range(trials))
    return np.array([rank_scores(*featurise(kernel, queries, keys)).true() for kernel in kernels])


def exact(normalised, queries, keys):
    return exact_scores(Softmax(normalised=normalised), queries, keys).true()


def failure_rate(scores, truth, epsilon):
    return np.mean(np.max(np.abs(scores - truth), axis=-1) > epsilon)


def in_the_ball(count, radius, seed=0):
    """Points of a ball, half of them on its surface, where the error is largest."""
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(count, D))
    z *= radius / np.linalg.norm(z, axis=1, keepdims=True)
    z[::2] *= rng.uniform(0, 1, (len(z[::2]), 1))
    return z.astype(np.float32)


def test_trigonometric_features_rank_within_epsilon_with_the_required_projections():
    """A hundredth of them suffices as well, since the bound is loose.

    It covers all pairs of points of the ball, by a net and a Lipschitz constant, while a ranking has a few hundred
    pairs: the factor 4(d + 2)(10 + log …) ≈ 380 would be 1.4 for a single pair.
    """
    radius, epsilon = 1.0, 0.5
    m = projections_for_ranking(D, radius, epsilon, P)
    queries, keys = np.tile(radius * EAST, (20, 1)), in_the_ball(200, radius)
    truth = exact(False, queries, keys)
    scores = linear_scores("trigonometric", m, False, queries, keys, trials=40)
    assert failure_rate(scores, truth, epsilon) <= P
    assert failure_rate(scores, truth, epsilon / 5) <= P
    fewer = linear_scores("trigonometric", m // 100, False, queries, keys, trials=200)
    assert failure_rate(fewer, truth, epsilon) <= P
    very_few = linear_scores("trigonometric", 4, False, queries, keys, trials=200)
    assert failure_rate(very_few, truth, epsilon) > P


@pytest.mark.parametrize("key", [NORTH, -EAST, (NORTH - EAST) / math.sqrt(2)], ids=["at 90°", "opposite", "at 135°"])
def test_the_printed_bound_fails_in_a_large_ball_and_the_corrected_one_holds(key):
    """Points at R² = 4√d, so that τ = exp(R²/√d) = e⁴, and scores are up to 55, here about 0 or 1; ε is 5.

    A trigonometric estimate is τ times a mean of m cosines, with standard deviation τ/√(2m). τ multiplies the error,
    not its probability, so m must be proportional to τ²; as printed it increases with log τ only.
    """
    radius, epsilon = math.sqrt(4 * math.sqrt(D)), 5.0
    tau = math.exp(4)
    queries, keys = np.tile(radius * EAST, (3, 1)), (radius * key)[None]
    truth = exact(False, queries, keys)

    printed = projections_for_ranking_as_printed(D, radius, epsilon, P)
    scores = linear_scores("trigonometric", printed, False, queries, keys, trials=500)
    assert failure_rate(scores, truth, epsilon) > 5 * P
    np.testing.assert_allclose(scores.std(), tau / math.sqrt(2 * printed), rtol=0.15)

    # The block-orthogonal draw of so many ω is slow to repeat: this uses independent ω, as in the proof.
    rng = np.random.default_rng(0)
    difference = (queries[0] - keys[0]) / D**0.25

    def failures_of_independent_projections(m, trials):
        estimates = [tau * np.cos(rng.standard_normal((m, D), np.float32) @ difference).mean() for _ in range(trials)]
        return np.mean(np.abs(np.array(estimates) - truth) > epsilon)

    corrected = projections_for_ranking(D, radius, epsilon, P)
    assert failures_of_independent_projections(printed, trials=500) > 5 * P
    assert failures_of_independent_projections(corrected, trials=40) == 0
    assert tau**2 / (2 * corrected) / epsilon**2 < P  # by Chebyshev's inequality, for any draw


def at_angle(theta, count=1):
    """Keys at this angle to the query, in different directions."""
    around = np.concatenate([np.eye(D)[1:], -np.eye(D)[1:]])[:count]
    return (math.cos(theta) * EAST + math.sin(theta) * around).astype(np.float32)


ALPHA, EPSILON = math.pi / 4, 0.1
QUERIES = np.tile(EAST, (5, 1))


def test_positive_features_estimate_a_low_score_within_epsilon_and_a_tenth_of_them_do_not():
    """At the angle π − α, the worst case of the theorem. Chebyshev's inequality is loose by less than ten times."""
    m = projections_for_low_scores(D, ALPHA, EPSILON, P)
    keys = at_angle(math.pi - ALPHA)
    truth = exact(True, QUERIES, keys)
    np.testing.assert_allclose(truth, math.exp(-math.sqrt(D) * math.cos(ALPHA)), rtol=1e-5)
    assert failure_rate(linear_scores("positive", m, True, QUERIES, keys, 400), truth, EPSILON) <= P
    assert failure_rate(linear_scores("positive", m // 10, True, QUERIES, keys, 400), truth, EPSILON) > P


def test_low_scores_may_exceed_epsilon_but_their_errors_do_not():
    """The theorem states that the scores "are at most ε"; its proof, and this test, that their errors are."""
    m = projections_for_low_scores(D, ALPHA, EPSILON, P)
    keys = at_angle(math.pi - ALPHA)
    scores = linear_scores("positive", m, True, QUERIES, keys, 100)
    assert np.mean(scores > EPSILON) > 0.9
    assert failure_rate(scores, exact(True, QUERIES, keys), EPSILON) <= P


def test_the_square_of_the_number_of_low_tokens_suffices_and_the_square_of_all_patches_is_not_needed():
    """The theorem has |P|², its proof L². With four low tokens among 60 patches |P|² suffices, and so does |P|.

    Each score is a mean of estimates, whose error has at most the variance of the worst of them; so Chebyshev's
    inequality with a union bound over |P| scores suffices for any L. L² would be 225 times as many projections.
    """
    low = at_angle(math.pi - ALPHA, count=4)
    others = np.random.default_rng(0).normal(size=(56, D)).astype(np.float32)
    keys = np.concatenate([low, others])
    truth = exact(True, QUERIES, keys)[: len(low)]

    def rate(m, trials):
        return failure_rate(linear_scores("positive", m, True, QUERIES, keys, trials)[:, : len(low)], truth, EPSILON)

    single = projections_for_low_scores(D, ALPHA, EPSILON, P)
    squared = projections_for_low_scores(D, ALPHA, EPSILON, P, tokens=len(low))
    assert squared == pytest.approx(len(low) ** 2 * single, rel=0.01)
    assert rate(squared, trials=50) <= P
    assert rate(len(low) * single, trials=150) <= P
    assert rate(single // 10, trials=300) > P


def test_different_queries_reduce_the_error():
    """Queries at angles of at least π − α to the low key, as the theorem requires."""
    rng = np.random.default_rng(1)
    key = at_angle(math.pi - ALPHA)
    z = rng.normal(size=(4000, D))
    cosines = z @ key[0] / np.linalg.norm(z, axis=1)
    queries = z[cosines <= math.cos(math.pi - ALPHA)].astype(np.float32)
    assert len(queries) > 100
    m = projections_for_low_scores(D, ALPHA, EPSILON, P)
    spread = linear_scores("positive", m, True, queries, key, 200)
    alike = linear_scores("positive", m, True, QUERIES, key, 200)
    assert failure_rate(spread, exact(True, queries, key), EPSILON) <= P
    assert spread.std() < alike.std()


def test_patches_opposite_to_every_query_are_scored_exactly():
    """For α = 0 the bound is a single projection, which suffices."""
    keys = -EAST[None]
    assert projections_for_low_scores(D, 0.0, 1e-4, P) == 1
    scores = linear_scores("positive", 1, True, QUERIES, keys, 50)
    assert failure_rate(scores, exact(True, QUERIES, keys), 1e-4) == 0
