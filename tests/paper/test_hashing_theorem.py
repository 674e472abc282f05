"""The paper's lemma and first theorem (hashing), with the errata: 1/√m′, and log(2/p) in the number of bits."""

import numpy as np
import pytest

from iap.attention import Softmax, featurise, pool_queries, rank_scores, top
from iap.attention.bounds import bits_for_hashing, hashing_error
from iap.attention.search import HashLookup

PATCHES, D, EPSILON, P = 200, 4, 0.2, 0.1
DRAWS = 300  # of G: the standard error of a failure rate of 0.1 is 0.017


def features_of(kernel, *, patches=PATCHES, seed=0, dtype: type[np.floating] = np.float64):
    queries, keys = np.random.default_rng(seed).standard_normal((2, patches, D)).astype(dtype)
    return featurise(kernel, queries, keys)


def true_angles(pooled, keys):
    """θ between each φ(k) and z, by the arctangent, which is precise for small angles too."""
    z, k = (x / np.linalg.norm(x, axis=-1, keepdims=True) for x in (pooled.values, keys.values))
    return 2 * np.arctan2(np.linalg.norm(k - z, axis=-1), np.linalg.norm(k + z, axis=-1))


def sets_that_agree(kernel, top_k):
    """In how many of 20 draws the patches with the largest scores are those with the smallest angles."""
    agree = 0
    for seed in range(20):
        queries, keys = features_of(kernel, seed=seed)
        by_score = top(rank_scores(queries, keys).values, top_k)
        by_angle = top(-true_angles(pool_queries(queries), keys), top_k)
        agree += set(by_score.tolist()) == set(by_angle.tolist())
    return agree


@pytest.mark.parametrize("projections", [1, 15, 64])
@pytest.mark.parametrize("top_k", [1, 10, 100])
def test_lemma_the_largest_scores_belong_to_the_smallest_angles(projections, top_k):
    assert sets_that_agree(Softmax("trigonometric", projections, normalised=True), top_k) == 20


def test_lemma_needs_keys_of_one_length():
    assert sets_that_agree(Softmax("trigonometric", 15), 10) < 10


def test_lemma_key_features_have_length_exp_of_half_root_d():
    _, keys = features_of(Softmax("trigonometric", 15, normalised=True))
    np.testing.assert_allclose(np.linalg.norm(keys.true(), axis=-1), np.exp(np.sqrt(D) / 2), rtol=1e-12)


def worst_errors(bits, draws, *, seed=1):
    """The largest errors of an angle and of a score, for each of `draws` random hashes."""
    kernel = Softmax("trigonometric", 15, normalised=True)
    queries, keys = features_of(kernel, seed=seed, dtype=np.float32)
    pooled, scores = pool_queries(queries), rank_scores(queries, keys).true()
    angles = true_angles(pooled, keys)
    of_angles, of_scores = [], []
    for draw in range(draws):
        database = HashLookup.build(keys, kernel, bits, seed=draw)
        of_angles.append(np.abs(database.angles(pooled) - angles).max())
        of_scores.append(np.abs(database.scores(pooled).true() - scores).max())
    return np.array(of_angles), np.array(of_scores)


@pytest.mark.slow
def test_theorem_angles_and_scores_are_within_the_bound_with_enough_bits_and_not_with_a_tenth():
    bits = bits_for_hashing(PATCHES, EPSILON, P)
    of_angles, of_scores = worst_errors(bits, DRAWS)
    failed = of_angles > EPSILON * np.pi / 2
    assert failed.mean() <= P
    assert (of_scores[~failed] <= hashing_error(D, EPSILON)).all()
    assert (of_scores > hashing_error(D, EPSILON)).mean() <= P
    of_angles, of_scores = worst_errors(bits // 10, DRAWS)
    assert (of_angles > EPSILON * np.pi / 2).mean() > P
    assert (of_scores > hashing_error(D, EPSILON)).mean() > P


@pytest.mark.slow
def test_theorem_the_number_of_bits_suffices_for_many_steps_together():
    kernel = Softmax("trigonometric", 15, normalised=True)
    steps, draws = 20, 40
    _, keys = features_of(kernel, dtype=np.float32)
    pooled_queries = [pool_queries(features_of(kernel, seed=2 + step, dtype=np.float32)[0]) for step in range(steps)]
    angles = [true_angles(pooled, keys) for pooled in pooled_queries]

    def failure_rate(bits):
        failed = 0
        for draw in range(draws):
            database = HashLookup.build(keys, kernel, bits, seed=draw)
            errors = [
                np.abs(database.angles(pooled) - true) for pooled, true in zip(pooled_queries, angles, strict=True)
            ]
            failed += np.max(errors) > EPSILON * np.pi / 2
        return failed / draws

    bits = bits_for_hashing(PATCHES, EPSILON, P, steps=steps)
    assert failure_rate(bits) <= P
    assert failure_rate(bits // 10) > P


@pytest.mark.slow
def test_theorem_the_selected_set_is_approximately_the_top():
    kernel, epsilon = Softmax("trigonometric", 15, normalised=True), 0.05
    rng = np.random.default_rng(1)
    queries, keys = rng.standard_normal((2, PATCHES, D)).astype(np.float32)
    query_features, key_features = featurise(kernel, queries + 2, keys)  # with a mean, so that scores differ enough
    pooled, scores = pool_queries(query_features), rank_scores(query_features, key_features).true()

    def is_approximate(selected):
        """Whether no patch that was not selected is better by more than twice the error."""
        return np.delete(scores, selected).max() - scores[selected].min() <= 2 * hashing_error(D, epsilon)

    bits = bits_for_hashing(PATCHES, epsilon, P)
    selected = [HashLookup.build(key_features, kernel, bits, seed=draw).top(pooled, 10) for draw in range(50)]
    assert np.mean([is_approximate(patches) for patches in selected]) >= 1 - P
    assert not any(is_approximate(rng.choice(PATCHES, 10, replace=False)) for _ in range(50))


@pytest.mark.slow
def test_hashed_products_are_unbiased_with_one_over_root_bits():
    kernel = Softmax("trigonometric", 15, normalised=True)
    queries, keys = features_of(kernel, patches=20, dtype=np.float32)
    pooled = pool_queries(queries)
    bits, draws = 64, 400
    estimates = [HashLookup.build(keys, kernel, bits, seed=draw).distances(pooled) / bits for draw in range(draws)]
    products = 1 - 2 * np.mean(estimates, axis=0)  # ψ(z)·ψ(φ(k)); 1/√m would make them m′/m times as large
    expected = 1 - 2 * true_angles(pooled, keys) / np.pi
    assert np.abs(products - expected).max() < 5 / np.sqrt(bits * draws)
