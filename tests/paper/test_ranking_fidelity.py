"""How well linear scores find the patches that exact softmax attention finds, on Gaussian queries and keys."""

import numpy as np
import pytest

from iap.attention import Softmax, draw_projections, exact_scores, featurise, rank_scores, top

PATCHES, D, KEEP, SEEDS = 2500, 4, 10, 24


def queries_and_keys(seed, lean=1.0):
    """Standard normal about means of their own, so that some directions are attended to more than others."""
    rng = np.random.default_rng(seed)
    return [(lean * rng.normal(size=D) + rng.normal(size=(PATCHES, D))).astype(np.float32) for _ in "qk"]


def mean_overlap(features, m, normalised=True, lean=1.0):
    """The mean share of the exact top ten that is in the linear top ten, over draws of queries, keys and ω."""
    shares = []
    for seed in range(SEEDS):
        kernel = Softmax(features, m, normalised, seed)
        queries, keys = queries_and_keys(seed, lean)
        exact = top(exact_scores(kernel, queries, keys).values, KEEP)
        linear = top(rank_scores(*featurise(kernel, queries, keys)).values, KEEP)
        shares.append(len(set(exact.tolist()) & set(linear.tolist())) / KEEP)
    return np.mean(shares)


def test_normalised_trigonometric_features_find_the_exact_top_ten_the_better_the_more():
    overlaps = [mean_overlap("trigonometric", m) for m in (4, 15, 64, 512)]
    assert overlaps == sorted(overlaps)
    assert overlaps[1] >= 0.65
    assert overlaps[2] >= 0.85
    assert overlaps[3] >= 0.95


@pytest.mark.parametrize("normalised", [False, True], ids=["plain", "normalised"])
def test_fifteen_positive_projections_find_hardly_any_of_it(normalised):
    assert mean_overlap("positive", 15, normalised) <= 0.15


def test_fifteen_positive_projections_are_in_effect_another_kernel():
    """Their variance grows with the score, so the highest scores are luck rather than attention.

    A key ranks high because it lies along one of the 15 ω, whose term alone is then more than half of its score. That
    is a kernel of its own, "near this ω", and a policy can learn with it; it does not see what softmax sees.
    """
    shares, cosines = [], []
    for seed in range(SEEDS):
        queries, keys = queries_and_keys(seed)
        phi_q, phi_k = featurise(Softmax("positive", 15, normalised=True, seed=seed), queries, keys)
        terms = phi_q.true().mean(axis=0) * phi_k.true()
        best = np.argsort(-terms.sum(axis=1))[:KEEP]
        shares.append(terms[best].max(axis=1) / terms[best].sum(axis=1))
        omega = draw_projections(15, D, seed)[terms[best].argmax(axis=1)]
        lengths = np.linalg.norm(omega, axis=1) * np.linalg.norm(keys[best], axis=1)
        cosines.append(np.sum(omega * keys[best], axis=1) / lengths)
    assert np.mean(shares) > 0.5
    assert np.mean(cosines) > 0.8


def test_queries_spread_evenly_have_no_favourites_to_be_found():
    """Without a mean, every normalised key is attended to alike, up to the sampling noise of 2,500 queries.

    The exact top ten is then the top ten of that noise, which no 64 projections can see: high fidelity is a property
    of the data as well as of the features.
    """
    queries, keys = queries_and_keys(0, lean=0.0)
    exact = exact_scores(Softmax(normalised=True), queries, keys).true()
    assert exact.std() / exact.mean() < 0.05
    assert mean_overlap("trigonometric", 64, lean=0.0) < 0.2
