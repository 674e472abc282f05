"""The explicit attention matrix and its scores equal loops in float64, in blocks of any size and in little memory."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iap.attention import ReLU, Softmax, attention_matrix, exact_scores

EXACT_KERNELS = [ReLU(), Softmax(), Softmax(normalised=True)]
each_kernel = pytest.mark.parametrize("kernel", EXACT_KERNELS, ids=["relu", "softmax", "softmax-normalised"])


def normal(*shape, seed=0, scale=1.0):
    return (scale * np.random.default_rng(seed).normal(size=shape)).astype(np.float32)


def matrix_by_hand(kernel, queries, keys, normalise_rows=False):
    """A(i, j) entry by entry in float64."""
    d = queries.shape[-1]

    def entry(u, v):
        u, v = u.astype(np.float64), v.astype(np.float64)
        if isinstance(kernel, ReLU):
            return np.maximum(u, 0) @ np.maximum(v, 0)
        if kernel.normalised:
            return np.exp(np.sqrt(d) * (u @ v) / np.linalg.norm(u) / np.linalg.norm(v))
        return np.exp(u @ v / np.sqrt(d))

    matrix = np.array([[entry(q, k) for k in keys] for q in queries])
    if normalise_rows:
        sums = matrix.sum(axis=1, keepdims=True)
        matrix = np.where(sums == 0, 0, matrix / np.where(sums == 0, 1, sums))
    return matrix


@each_kernel
@pytest.mark.parametrize("normalise_rows", [False, True], ids=["as-is", "row-normalised"])
def test_matrix_and_scores_equal_a_loop_over_entries(library, kernel, normalise_rows):
    shapes = st.tuples(st.integers(1, 12), st.integers(1, 12), st.integers(1, 6))

    @given(library.cases(shapes, (12, 7, 4)), st.integers(0, 2**16))
    def check(shape, seed):
        query_count, key_count, d = shape
        queries, keys = normal(query_count, d, seed=seed), normal(key_count, d, seed=seed + 1)
        pooling = normal(query_count, seed=seed + 2)
        q, k, p = map(library.array, (queries, keys, pooling))
        expected = matrix_by_hand(kernel, queries, keys, normalise_rows)
        found = library.true(attention_matrix(kernel, q, k, normalise_rows=normalise_rows))
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5 * expected.max())
        for weights, by_hand in ((None, np.ones(query_count)), (p, pooling)):
            scores = library.true(exact_scores(kernel, q, k, pooling=weights, normalise_rows=normalise_rows))
            tolerance = 1e-5 * (np.abs(by_hand) @ expected).max() / query_count
            np.testing.assert_allclose(scores, by_hand @ expected / query_count, atol=tolerance, rtol=0)

    check()


@each_kernel
@given(st.integers(1, 25), st.booleans(), st.booleans())
def test_scores_do_not_depend_on_the_block_size(kernel, block, pooled, normalise_rows):
    queries, keys = normal(17, 4, scale=3), normal(13, 4, seed=1, scale=3)
    options = {"pooling": normal(17, seed=2) if pooled else None, "normalise_rows": normalise_rows}
    whole = exact_scores(kernel, queries, keys, block=17, **options)
    parts = exact_scores(kernel, queries, keys, block=block, **options)
    expected = whole.true()
    np.testing.assert_allclose(parts.true(), expected, atol=1e-5 * np.abs(expected).max(), rtol=0)


@each_kernel
def test_a_batch_of_matrices_equals_single_matrices(library, kernel):
    queries, keys = normal(2, 3, 5, 4), normal(2, 3, 5, 4, seed=1)
    found = library.true(attention_matrix(kernel, library.array(queries), library.array(keys)))
    for index in np.ndindex(2, 3):
        expected = matrix_by_hand(kernel, queries[index], keys[index])
        np.testing.assert_allclose(found[index], expected, rtol=1e-5, atol=1e-5 * expected.max())


@each_kernel
def test_rows_of_a_normalised_matrix_sum_to_one(kernel):
    rows = attention_matrix(kernel, np.abs(normal(9, 4)), np.abs(normal(7, 4, seed=1)), normalise_rows=True)
    np.testing.assert_allclose(rows.true().sum(axis=-1), 1, rtol=1e-5)


def test_scores_that_overflow_float32_are_ranked():
    queries, keys = normal(20, 4, scale=100), normal(20, 4, seed=1, scale=100)
    exponents = queries.astype(np.float64) @ keys.astype(np.float64).T / 2
    logs = np.logaddexp.reduce(exponents, axis=0) - np.log(20)
    scores = exact_scores(Softmax(), queries, keys, block=3)
    assert np.all(np.isfinite(scores.values))
    assert logs.max() > 1000
    assert np.argmax(scores.values) == np.argmax(logs)
    np.testing.assert_allclose(np.log(scores.values.max()) + scores.log_scale[0], logs.max(), rtol=1e-5)


@each_kernel
def test_the_whole_matrix_is_never_in_memory(kernel):
    """For L = 8,000 it would have 256 MB in float32; four arrays of a million entries, as for one block, have 17 MB."""
    patches = 8000
    queries, keys = normal(patches, 4), normal(patches, 4, seed=1)
    tracemalloc.start()
    exact_scores(kernel, queries, keys)
    by_default = tracemalloc.get_traced_memory()[1]
    tracemalloc.reset_peak()
    exact_scores(kernel, queries, keys, block=16)
    in_small_blocks = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert by_default < patches**2 / 3
    assert in_small_blocks < patches**2 / 20


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"block": 0}, ValueError, "block .* not 0"),
        ({"block": 2.0}, TypeError, "block .* not 2.0"),
        ({"pooling": np.ones(5, np.float32)}, ValueError, r"pooling has 5 weights .*\(5,\).* 6 queries"),
        ({"pooling": [1.0] * 6}, TypeError, "pooling .* list"),
        ({"pooling": np.ones(6)}, TypeError, "pooling float64"),
        ({"keys": normal(6, 3)}, ValueError, "queries have 4 dimensions, but keys have 3"),
        ({"keys": normal(6, 4).astype(np.float64)}, TypeError, "queries float32, keys float64"),
        ({"keys": [[1.0]]}, TypeError, "keys .* list"),
        ({"queries": normal(2, 6, 4)}, ValueError, r"queries .* shape \(2, 6, 4\)"),
        ({"queries": np.ones((6, 4), np.int64)}, TypeError, "queries .* int64"),
    ],
)
def test_invalid_arguments_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        exact_scores(**{"kernel": Softmax(), "queries": normal(6, 4), "keys": normal(6, 4), **arguments})
