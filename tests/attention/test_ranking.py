"""Linear scores equal those of the explicit matrix of the same features: only the order of the products differs."""

import itertools

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from iap.attention import ReLU, Scaled, Softmax, featurise, pool_queries, project, rank_scores, score_keys, sum_heads

# leading axes (images, heads), L, d, m: m need not be a multiple of d
ANY_SHAPE = st.tuples(
    st.sampled_from([(), (1,), (3,), (2, 3)]), st.integers(1, 25), st.integers(1, 9), st.integers(1, 20)
)
FEW_SHAPES = ((), 12, 4, 15), ((2, 3), 5, 3, 15)


def queries_and_keys(leading, patches, d, seed, spread=1.0):
    """Queries and keys around one centre: the smaller the spread, the more similar they are."""
    rng = np.random.default_rng(seed)
    centre = rng.normal(size=d)
    return ((centre + spread * rng.normal(size=(*leading, patches, d))).astype(np.float32) for _ in "qk")


def explicit_scores(queries, keys, pooling=None, normalise_rows=False):
    """(1/L)·P·A in float64 from the explicit matrix A = φ(Q)φ(K)ᵀ, and the same sum of absolute terms."""
    attention, sizes = queries @ np.swapaxes(keys, -1, -2), np.abs(queries) @ np.swapaxes(np.abs(keys), -1, -2)
    if normalise_rows:
        sums = attention.sum(axis=-1, keepdims=True)
        empty = sums == 0
        shares = np.where(empty, 0, 1 / np.where(empty, 1, sums))
        condition = np.where(empty, 1, sizes.sum(axis=-1, keepdims=True) * np.abs(shares))
        attention, sizes = attention * shares, sizes * np.abs(shares) * condition
    pooling = np.ones(attention.shape[-2]) if pooling is None else pooling.astype(np.float64)
    pool = np.einsum("...i,...ij->...j", pooling, attention) / attention.shape[-2]
    return pool, np.einsum("...i,...ij->...j", np.abs(pooling), sizes) / attention.shape[-2]


def true(features):
    """`values · exp(log_scale)` of NumPy arrays in float64."""
    return features.values * np.exp(features.log_scale.astype(np.float64))


def with_projections(kernel, m, seed=0):
    return kernel if isinstance(kernel, ReLU) else Softmax(kernel.features, m, kernel.normalised, seed)


@pytest.mark.parametrize("normalise_rows", [False, True], ids=["as-is", "row-normalised"])
def test_linear_scores_equal_those_of_the_explicit_matrix(library, kernel, normalise_rows):
    """To 1e-5 of the largest score, with and without P: the one test of every kernel on every library.

    Signed features and a signed P cancel: a row of trigonometric attention can sum to nearly 0, and division by that
    sum amplifies rounding without bound. Cases in which cancellation loses more than a factor of 20 are skipped; they
    are rare if queries and keys are drawn around one centre.
    """

    @given(library.cases(ANY_SHAPE, *FEW_SHAPES), st.integers(0, 2**16))
    def check(shape, seed):
        leading, patches, d, m = shape
        queries, keys = queries_and_keys(
            leading, patches, d, seed, spread=0.2 if kernel.signed and normalise_rows else 1.0
        )
        pooling = np.random.default_rng(seed).normal(1, 1, (*leading, patches)).astype(np.float32)
        selected = with_projections(kernel, m, seed)
        features = featurise(selected, library.array(queries), library.array(keys))
        for weights in (None, pooling):
            weighted = None if weights is None else library.array(weights)
            scores = rank_scores(*features, pooling=weighted, normalise_rows=normalise_rows)
            expected, uncancelled = explicit_scores(
                *map(library.true, features), pooling=weights, normalise_rows=normalise_rows
            )
            largest = np.abs(expected).max(axis=-1, keepdims=True)
            assume(np.all(uncancelled.max(axis=-1, keepdims=True) <= 20 * largest))
            assert scores.values.shape == (*leading, patches)
            assert np.all(np.abs(library.true(scores) - expected) <= 1e-5 * largest)

    check()


def test_values_rank_patches_because_all_share_one_scale(library_and_kernel):
    library, kernel = library_and_kernel
    queries, keys = queries_and_keys((2, 3), 5, 3, seed=5)
    scores = rank_scores(*featurise(kernel, library.array(queries), library.array(keys)))
    assert library.numpy(scores.log_scale).shape == (2, 3, 1)
    assert np.all(np.argsort(library.numpy(scores.values)) == np.argsort(library.true(scores)))


def test_pooling_first_and_scoring_keys_later_gives_the_same_scores(library_and_kernel):
    library, kernel = library_and_kernel
    queries, keys = queries_and_keys((2, 3), 5, 3, seed=5)
    phi_q, phi_k = featurise(kernel, library.array(queries), library.array(keys))
    later = score_keys(pool_queries(phi_q), phi_k)
    np.testing.assert_allclose(library.true(later), library.true(rank_scores(phi_q, phi_k)), rtol=1e-5)


@given(st.integers(1, 20), st.integers(1, 20), st.booleans())
def test_queries_of_one_image_can_score_the_keys_of_another(query_count, key_count, normalise_rows):
    queries, _ = queries_and_keys((), query_count, 4, seed=1)
    keys, _ = queries_and_keys((), key_count, 4, seed=2)
    for kernel in (ReLU(), Softmax(), Softmax("favor++")):
        phi = featurise(kernel, queries, keys)
        scores = rank_scores(*phi, normalise_rows=normalise_rows).true()
        expected, _ = explicit_scores(*map(true, phi), normalise_rows=normalise_rows)
        np.testing.assert_allclose(scores, expected, atol=1e-5 * expected.max())


def test_row_normalised_scores_sum_to_one(library_and_kernel):
    library, kernel = library_and_kernel
    queries, keys = map(np.abs, queries_and_keys((2, 3), 5, 3, seed=5, spread=0.2))  # so that no ReLU row is 0
    scores = rank_scores(*featurise(kernel, library.array(queries), library.array(keys)), normalise_rows=True)
    np.testing.assert_allclose(library.true(scores).sum(axis=-1), 1, rtol=1e-4)


def test_a_query_without_attention_does_not_contribute(library):
    queries = np.array([[-1, -1], [1, 0]], np.float32)  # the first is all zero after the ReLU
    keys = np.array([[2, 5], [6, 5]], np.float32)
    phi = featurise(ReLU(), library.array(queries), library.array(keys))
    scores = library.true(rank_scores(*phi, normalise_rows=True))
    np.testing.assert_allclose(scores, [0.125, 0.375], rtol=1e-6)
    nothing = featurise(ReLU(), library.array(queries[:1]), library.array(keys))
    np.testing.assert_array_equal(library.true(rank_scores(*nothing, normalise_rows=True)), 0)


def test_scores_of_heads_add_up(library_and_kernel):
    """The sum over heads equals the scores of the summed matrices, for any scale of each head's scores."""
    library, kernel = library_and_kernel
    rng = np.random.default_rng(0)
    tokens = rng.normal(size=(2, 5, 6)).astype(np.float32)
    weights = (rng.normal(size=(2, 3, 6, 3)) * np.array([0.2, 0.5, 1])[:, None, None]).astype(np.float32)
    queries, keys = (project(library.array(tokens), library.array(w)) for w in weights)
    scores = rank_scores(*featurise(kernel, queries, keys))
    assert library.numpy(scores.values).shape == (2, 3, 5)
    expected = np.zeros((2, 5))
    for image, head in itertools.product(range(2), range(3)):
        alone = featurise(kernel, *(tokens[image] @ w[head] for w in weights))
        expected[image] += explicit_scores(*map(true, alone))[0]
    total = sum_heads(scores)
    np.testing.assert_allclose(library.true(total), expected, atol=2e-5 * np.abs(expected).max())


def test_a_head_that_is_far_larger_does_not_overflow_the_sum():
    scores = Scaled(np.ones((2, 3), np.float32), np.array([[0.0], [500.0]], np.float32))
    total = sum_heads(scores)
    np.testing.assert_allclose(total.values, 1)
    np.testing.assert_allclose(total.log_scale, [500])


@pytest.mark.parametrize(
    ("pooling", "error", "message"),
    [
        (np.ones(6, np.float32), ValueError, r"pooling has 6 weights .*\(6,\).* 12 queries"),
        (np.ones((), np.float32), ValueError, r"pooling .* shape \(\)"),
        (np.full(12, np.nan, np.float32), ValueError, "pooling .* NaN"),
        (np.ones(12, np.int32), TypeError, "pooling .*int32"),
        (np.ones(12), TypeError, "pooling float64"),
        ([1.0] * 12, TypeError, "pooling .* list"),
    ],
)
def test_a_pooling_that_does_not_match_the_queries_is_refused(pooling, error, message):
    queries, keys = queries_and_keys((), 12, 4, seed=0)
    with pytest.raises(error, match=message):
        rank_scores(*featurise(Softmax(), queries, keys), pooling=pooling)
