"""The overlap of the top patches by linear scores and by exact softmax attention, for Gaussian queries and keys."""

import numpy as np
import pytest

from iap.attention import Softmax, draw_projections, exact_scores, featurise, rank_scores, top

pytestmark = pytest.mark.slow
PATCHES, D, TOP_K, SEEDS = 2500, 4, 10, 24


def queries_and_keys(seed, mean_scale=1.0):
    """Normal with different random means, so that some directions receive more attention than others."""
    rng = np.random.default_rng(seed)
    return [(mean_scale * rng.normal(size=D) + rng.normal(size=(PATCHES, D))).astype(np.float32) for _ in "qk"]


def mean_overlap(features, m, normalised=True, mean_scale=1.0):
    """The mean share of the exact top ten that is in the linear top ten, over draws of queries, keys and ω."""
    shares = []
    for seed in range(SEEDS):
        kernel = Softmax(features, m, normalised, seed)
        queries, keys = queries_and_keys(seed, mean_scale)
        exact = top(exact_scores(kernel, queries, keys).values, TOP_K)
        linear = top(rank_scores(*featurise(kernel, queries, keys)).values, TOP_K)
        shares.append(len(set(exact.tolist()) & set(linear.tolist())) / TOP_K)
    return np.mean(shares)


def test_more_normalised_trigonometric_features_find_more_of_the_exact_top_ten():
    overlaps = [mean_overlap("trigonometric", m) for m in (4, 15, 64, 512)]
    assert overlaps == sorted(overlaps)
    assert overlaps[1] >= 0.65
    assert overlaps[2] >= 0.85
    assert overlaps[3] >= 0.95


@pytest.mark.parametrize("normalised", [False, True], ids=["plain", "normalised"])
def test_fifteen_positive_projections_find_little_of_the_exact_top_ten(normalised):
    assert mean_overlap("positive", 15, normalised) <= 0.15


def test_fifteen_positive_projections_are_effectively_another_kernel():
    """Their variance increases with the score, so the highest scores depend on the draw of ω, not on the attention.

    A key ranks high because it is parallel to one of the 15 ω, whose term is then more than half of its score. This is
    a different kernel, with which a policy can learn, but not an approximation of softmax.
    """
    shares, cosines = [], []
    for seed in range(SEEDS):
        queries, keys = queries_and_keys(seed)
        phi_q, phi_k = featurise(Softmax("positive", 15, normalised=True, seed=seed), queries, keys)
        terms = phi_q.true().mean(axis=0) * phi_k.true()
        best = np.argsort(-terms.sum(axis=1))[:TOP_K]
        shares.append(terms[best].max(axis=1) / terms[best].sum(axis=1))
        omega = draw_projections(15, D, seed)[terms[best].argmax(axis=1)]
        lengths = np.linalg.norm(omega, axis=1) * np.linalg.norm(keys[best], axis=1)
        cosines.append(np.sum(omega * keys[best], axis=1) / lengths)
    assert np.mean(shares) > 0.5
    assert np.mean(cosines) > 0.8


def test_queries_without_a_mean_have_no_top_that_features_can_find():
    """Without a mean, every normalised key receives the same attention, up to the sampling noise of 2,500 queries.

    The exact top ten is then determined by that noise, which 64 projections do not resolve: fidelity depends on data
    as well as on features.
    """
    queries, keys = queries_and_keys(0, mean_scale=0.0)
    exact = exact_scores(Softmax(normalised=True), queries, keys).true()
    assert exact.std() / exact.mean() < 0.05
    assert mean_overlap("trigonometric", 64, mean_scale=0.0) < 0.2
