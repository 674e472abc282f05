"""IAP-trans equals the explicit P·A·V in both orders of evaluation."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from iap.attention import ReLU, Scaled, Softmax, featurise, layer_norm, merge_heads, mix, project

# leading axes (images, heads), L, d, m, and the sizes l and v of the output
ANY_SHAPE = st.tuples(
    st.sampled_from([(), (2,), (2, 3)]),
    st.integers(1, 20),
    st.integers(1, 6),
    st.integers(1, 12),
    st.integers(1, 6),
    st.integers(1, 6),
)
FROM_THE_LEFT, FROM_THE_RIGHT = ((), 12, 4, 15, 2, 3), ((2, 3), 5, 3, 15, 3, 2)


def normal(*shape, seed=0, scale=1.0):
    return (scale * np.random.default_rng(seed).normal(size=shape)).astype(np.float32)


def explicit_mix(pooling, queries, keys, values, normalise_rows=False, residual=False):
    """P·A·V in float64 from the explicit matrix, and the same product of absolute terms."""
    pooling, values = pooling.astype(np.float64), values.astype(np.float64)
    attention, sizes = queries @ np.swapaxes(keys, -1, -2), np.abs(queries) @ np.swapaxes(np.abs(keys), -1, -2)
    if normalise_rows:
        sums = attention.sum(axis=-1, keepdims=True)
        empty = sums == 0
        shares = np.where(empty, 0, 1 / np.where(empty, 1, sums))
        condition = np.where(empty, 1, sizes.sum(axis=-1, keepdims=True) * np.abs(shares))
        attention, sizes = attention * shares, sizes * np.abs(shares) * condition
    if residual:
        attention, sizes = attention + np.eye(attention.shape[-1]), sizes + np.eye(attention.shape[-1])
    return pooling @ attention @ values, np.abs(pooling) @ sizes @ np.abs(values)


@pytest.mark.parametrize("normalise_rows", [False, True], ids=["as-is", "row-normalised"])
def test_both_orders_of_the_products_equal_the_explicit_product(library_and_kernel, normalise_rows):
    """With and without the residual, to 1e-5 of the largest entry.

    As for scores, cases in which cancellation loses more than a factor of 20 are skipped.
    """
    library, kernel = library_and_kernel

    @given(library.cases(ANY_SHAPE, FROM_THE_LEFT, FROM_THE_RIGHT), st.integers(0, 2**16))
    def check(shape, seed):
        leading, patches, d, m, rows, width = shape
        rng = np.random.default_rng(seed)
        queries, keys = (rng.normal(1, 0.3, (*leading, patches, d)).astype(np.float32) for _ in "qk")
        values = normal(*leading, patches, width, seed=seed)
        pooling = normal(*leading, rows, patches, seed=seed + 1)
        selected = kernel if isinstance(kernel, ReLU) else Softmax(kernel.features, m, kernel.normalised, seed)
        features = featurise(selected, library.array(queries), library.array(keys))
        for residual in (False, True):
            found = mix(
                library.array(pooling),
                *features,
                library.array(values),
                normalise_rows=normalise_rows,
                residual=residual,
            )
            phi_q, phi_k = map(library.true, features)
            expected, uncancelled = explicit_mix(pooling, phi_q, phi_k, values, normalise_rows, residual)
            largest = np.abs(expected).max(axis=(-2, -1), keepdims=True)
            assume(np.all(uncancelled.max(axis=(-2, -1), keepdims=True) <= 20 * largest))
            assert library.numpy(found).shape == (*leading, rows, width)
            assert np.all(np.abs(library.numpy(found) - expected) <= 1e-5 * largest)

    check()


@pytest.mark.parametrize(("rows", "width"), [(5, 5), (5, 1)])
def test_the_result_does_not_depend_on_the_order_of_products(library_and_kernel, rows, width):
    """These sizes are evaluated from the right; padded with columns of zeros, from the left."""
    library, kernel = library_and_kernel
    queries, keys, values = normal(12, 4), normal(12, 4, seed=1), normal(12, width, seed=2)
    pooling = np.abs(normal(rows, 12, seed=3))
    features = featurise(kernel, library.array(queries), library.array(keys))
    padded = np.concatenate([values, np.zeros((12, rows + 1 - width), np.float32)], axis=-1)
    narrow, wide = (library.numpy(mix(library.array(pooling), *features, library.array(v))) for v in (values, padded))
    np.testing.assert_allclose(wide[:, :width], narrow, atol=1e-5 * np.abs(narrow).max())


def test_row_normalised_mixing_of_equal_values_returns_them(library_and_kernel):
    """Each row of attention is a weighted mean."""
    library, kernel = library_and_kernel
    queries, keys = (np.abs(normal(12, 4, seed=seed)) for seed in (0, 1))
    pooling = np.eye(12, dtype=np.float32)[:2]
    values = np.full((12, 3), 7, np.float32)
    features = featurise(kernel, library.array(queries), library.array(keys))
    found = mix(library.array(pooling), *features, library.array(values), normalise_rows=True)
    np.testing.assert_allclose(library.numpy(found), 7, rtol=1e-4)


def test_row_normalised_mixing_is_finite_for_exponents_that_overflow(library):
    queries, keys = normal(12, 4, scale=300), normal(12, 4, seed=1, scale=300)
    features = featurise(Softmax(), library.array(queries), library.array(keys))
    for rows, width in ((2, 3), (3, 2)):
        arrays = normal(rows, 12, seed=2), normal(12, width, seed=3)
        pooling, values = map(library.array, arrays)
        found = library.numpy(mix(pooling, *features, values, normalise_rows=True))
        assert np.all(np.isfinite(found))
        assert np.all(np.abs(found) <= np.abs(arrays[0]).sum(axis=-1, keepdims=True) * np.abs(arrays[1]).max())
        assert np.all(found != 0)


def test_heads_are_mixed_separately_and_concatenated(library):
    tokens, weights = normal(2, 5, 6), normal(3, 3, 6, 3, seed=1, scale=0.4)
    pooling = normal(4, 5, seed=2)
    queries, keys, values = (project(library.array(tokens), library.array(w)) for w in weights)
    phi = featurise(Softmax(), queries, keys)
    merged = library.numpy(merge_heads(mix(library.array(pooling), *phi, values)))
    assert merged.shape == (2, 4, 9)
    for image in range(2):
        for head in range(3):
            own = (tokens[image] @ w[head] for w in weights)
            q, k, v = own
            alone = mix(pooling, *featurise(Softmax(), q, k), v)
            found = merged[image, :, 3 * head : 3 * head + 3]
            np.testing.assert_allclose(found, alone, atol=1e-5 * np.abs(alone).max())


@given(st.sampled_from([(), (2,)]), st.integers(1, 4), st.integers(1, 4), st.integers(1, 4))
def test_merged_heads_are_concatenated_along_columns(batch, heads, rows, width):
    x = normal(*batch, heads, rows, width)
    merged = merge_heads(x)
    assert merged.shape == (*batch, rows, heads * width)
    for head in range(heads):
        np.testing.assert_array_equal(merged[..., head * width : (head + 1) * width], x[..., head, :, :])


def test_layer_norm_gives_rows_of_mean_0_and_variance_1(library):
    x = normal(2, 3, 8, scale=5) + 11
    found = library.numpy(layer_norm(library.array(x)))
    np.testing.assert_allclose(found.mean(axis=-1), 0, atol=1e-5)
    np.testing.assert_allclose(found.std(axis=-1), 1, atol=1e-4)
    expected = (x - x.mean(axis=-1, keepdims=True)) / np.sqrt(x.var(axis=-1, keepdims=True) + 1e-5)
    gain, offset = normal(8, seed=1), normal(8, seed=2)
    found = library.numpy(layer_norm(*map(library.array, (x, gain, offset))))
    np.testing.assert_allclose(found, expected * gain + offset, atol=1e-5)


def test_layer_norm_of_a_constant_row_is_zero(library):
    np.testing.assert_array_equal(library.numpy(layer_norm(library.array(np.full((2, 8), 3, np.float32)))), 0)


@pytest.mark.parametrize(
    ("pooling", "values", "error", "message"),
    [
        (normal(2, 6), normal(5, 3), ValueError, r"pooling has 6 weights .*\(2, 6\).* 5 queries"),
        (normal(5), normal(5, 3), ValueError, r"pooling .* shape \(5,\)"),
        (normal(2, 5), normal(5), ValueError, r"values .* shape \(5,\)"),
        (normal(2, 5), np.ones((5, 3), np.uint8), TypeError, "values .*uint8"),
        (np.full((2, 5), np.inf, np.float32), normal(5, 3), ValueError, "pooling .* infinity"),
        (normal(2, 5), np.ones((5, 3)), TypeError, "pooling float32, values float64"),
        (normal(2, 5), [[1.0]] * 5, TypeError, "values .* list"),
    ],
)
def test_arrays_of_wrong_shape_or_type_are_refused(pooling, values, error, message):
    with pytest.raises(error, match=message):
        mix(pooling, *featurise(ReLU(), normal(5, 3), normal(5, 3)), values)


def test_an_array_without_heads_cannot_be_merged():
    with pytest.raises(ValueError, match=r"x must be .* shape \(2, 3\)"):
        merge_heads(normal(2, 3))


def test_the_result_does_not_depend_on_how_features_are_split_into_value_and_scale(library):
    """Scaled(v, s) and Scaled(v/4, s + log 4) are the same array."""
    values = normal(5, 3)
    features = featurise(ReLU(), library.array(np.abs(normal(5, 3))), library.array(np.abs(normal(5, 3, seed=1))))
    moved = [Scaled(phi.values / 4, phi.log_scale + float(np.log(4))) for phi in features]
    pooling = library.array(normal(2, 5))
    whole, split = (
        library.numpy(mix(pooling, queries, keys, library.array(values))) for queries, keys in (features, moved)
    )
    np.testing.assert_allclose(split, whole, rtol=1e-4, atol=1e-5)
