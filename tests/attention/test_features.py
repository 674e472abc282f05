"""Feature maps equal their formulas, and random projections have the stated distribution."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from iap.attention import KERNELS, ReLU, Softmax, draw_projections, featurise, project
from iap.attention.features import softmax_inputs


def normal(*shape, seed=0, scale=1.0):
    return (scale * np.random.default_rng(seed).normal(size=shape)).astype(np.float32)


def formula(kernel, queries, keys):
    """φ(q) and φ(k) in float64, from the formulas of the papers."""
    u, v = queries.astype(np.float64), keys.astype(np.float64)
    if isinstance(kernel, ReLU):
        return np.maximum(u, 0), np.maximum(v, 0)
    d, m = u.shape[-1], kernel.projections
    if kernel.normalised:
        x, y = (d**0.25 * z / np.linalg.norm(z, axis=-1, keepdims=True) for z in (u, v))
    else:
        x, y = d**-0.25 * u, d**-0.25 * v
    omega = draw_projections(m, d, kernel.seed).astype(np.float64)
    s = np.mean(np.sum((x[..., :, None, :] + y[..., None, :, :]) ** 2, axis=-1), axis=(-2, -1))[..., None, None]
    rho = (np.sqrt((2 * s + d) ** 2 + 8 * d * s) - 2 * s - d) / (4 * s)
    a = (1 - 1 / rho) / 8

    def phi(z):
        half = np.sum(z * z, axis=-1, keepdims=True) / 2
        w = z @ omega.T
        match kernel.features:
            case "positive":
                return np.exp(w - half) / np.sqrt(m)
            case "trigonometric":
                return np.exp(half) * np.concatenate([np.sin(w), np.cos(w)], axis=-1) / np.sqrt(m)
            case "hyperbolic":
                return np.sqrt(0.5) * np.concatenate([np.exp(w - half), np.exp(-w - half)], axis=-1) / np.sqrt(m)
            case "favor++":
                squares = np.sum(omega * omega, axis=-1)
                return (1 - 4 * a) ** (d / 4) * np.exp(a * squares + np.sqrt(1 - 4 * a) * w - half) / np.sqrt(m)

    return phi(x), phi(y)


def test_features_equal_the_formulas(library_and_kernel):
    library, kernel = library_and_kernel
    any_case = st.tuples(st.sampled_from([(), (2,)]), st.integers(1, 7), st.integers(2, 6), st.integers(1, 9))

    @given(library.cases(any_case, ((), 12, 4, 15), ((2, 3), 5, 3, 15)), st.integers(0, 99))
    def check(case, seed):
        batch, patches, d, m = case
        selected = kernel if isinstance(kernel, ReLU) else Softmax(kernel.features, m, kernel.normalised, seed)
        queries, keys = normal(*batch, patches, d, seed=seed), normal(*batch, patches, d, seed=seed + 1)
        found = featurise(selected, library.array(queries), library.array(keys))
        for features, expected in zip(found, formula(selected, queries, keys), strict=True):
            np.testing.assert_allclose(library.true(features), expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())

    check()


def test_only_trigonometric_features_can_be_negative(kernel):
    queries, keys = featurise(kernel, normal(50, 4), normal(50, 4, seed=1))
    negative = bool((queries.values < 0).any() or (keys.values < 0).any())
    assert negative == kernel.signed == (isinstance(kernel, Softmax) and kernel.features == "trigonometric")


def test_favor_plus_plus_equals_positive_features_if_queries_and_keys_are_opposite(library):
    """Then s, the mean squared norm of q + k, is 0, and the formula for ρ is 0/0 with the limit 1."""
    queries = np.ones((3, 1), np.float32) * normal(1, 4)
    for scale in (1.0, 3000.0):
        opposite = library.array(scale * queries), library.array(-scale * queries)
        for found, plain in zip(
            *(featurise(Softmax(name), *opposite) for name in ("favor++", "positive")), strict=True
        ):
            np.testing.assert_allclose(library.numpy(found.log_scale), library.numpy(plain.log_scale), rtol=1e-4)


@given(st.integers(1, 8), st.sampled_from([1e-30, 1e-3, 1.0, 1e4, 1e30]), st.integers(0, 99))
def test_normalised_inputs_of_any_magnitude_lie_on_a_sphere(d, scale, seed):
    queries = normal(9, d, seed=seed, scale=scale)
    x = softmax_inputs(Softmax(normalised=True), queries)
    np.testing.assert_allclose(np.linalg.norm(x, axis=-1), d**0.25, rtol=1e-5)
    cosines = np.sum(x * (queries / np.abs(queries).max(axis=-1, keepdims=True)), axis=-1)
    assert np.all(cosines > 0)


def test_a_query_of_zero_stays_zero_when_normalised(library):
    x = library.numpy(softmax_inputs(Softmax(normalised=True), library.array(np.zeros((2, 3), np.float32))))
    np.testing.assert_array_equal(x, 0)


@given(st.integers(1, 40), st.integers(1, 9), st.integers(0, 2**32))
def test_projections_are_orthogonal_within_each_block(m, d, seed):
    omega = draw_projections(m, d, seed)
    assert omega.shape == (m, d)
    assert omega.dtype == np.float32
    for start in range(0, m, d):
        block = omega[start : start + d].astype(np.float64)
        lengths = np.linalg.norm(block, axis=1)
        cosines = block @ block.T / np.outer(lengths, lengths)
        np.testing.assert_allclose(cosines, np.eye(len(block)), atol=1e-5)


def test_blocks_are_independent_of_each_other():
    omega = draw_projections(8, 4, 0)
    assert np.abs(omega[:4] @ omega[4:].T).max() > 0.1


def test_projections_depend_on_the_seed_only_and_are_read_only():
    first = draw_projections(15, 4, 3).copy()
    draw_projections.cache_clear()
    np.testing.assert_array_equal(draw_projections(15, 4, 3), first)
    assert not np.any(draw_projections(15, 4, 4) == first)
    with pytest.raises(ValueError, match="read-only"):
        draw_projections(15, 4, 3)[0, 0] = 1


def test_fewer_projections_are_the_first_of_more_with_the_same_seed():
    np.testing.assert_array_equal(draw_projections(15, 4, 3)[:7], draw_projections(7, 4, 3))


@pytest.mark.parametrize(("m", "d"), [(1, 1), (3, 4), (9, 4), (11, 8)])
def test_each_projection_is_a_standard_normal_vector(m, d):
    draws = np.stack([draw_projections(m, d, seed) for seed in range(1500)]).astype(np.float64)
    error = 5 / np.sqrt(len(draws))  # five standard errors of a mean of numbers with variance one
    np.testing.assert_allclose(draws.mean(axis=0), 0, atol=error)
    covariance = np.einsum("nmi,nmj->mij", draws, draws) / len(draws)
    np.testing.assert_allclose(covariance, np.broadcast_to(np.eye(d), covariance.shape), atol=np.sqrt(2) * error)
    for row in (0, m - 1):
        assert stats.kstest(np.sum(draws[:, row] ** 2, axis=-1), stats.chi2(d).cdf).pvalue > 1e-3
        assert stats.kstest(draws[:, row].ravel(), "norm").pvalue > 1e-3


def test_queries_are_products_of_patches_and_weights(library):
    tokens, weights, bias = normal(2, 7, 5), normal(5, 3, seed=1), normal(1, 3, seed=2)
    found = project(*map(library.array, (tokens, weights, bias)))
    np.testing.assert_allclose(library.numpy(found), tokens @ weights + bias, atol=1e-5)
    np.testing.assert_allclose(
        library.numpy(project(*map(library.array, (tokens, weights)))), tokens @ weights, atol=1e-5
    )


def test_each_head_has_its_own_weights(library):
    tokens, weights, bias = normal(2, 7, 5), normal(3, 5, 4, seed=1), normal(3, 1, 4, seed=2)
    found = library.numpy(project(*map(library.array, (tokens, weights, bias))))
    assert found.shape == (2, 3, 7, 4)
    for image in range(2):
        for head in range(3):
            expected = tokens[image] @ weights[head] + bias[head]
            np.testing.assert_allclose(found[image, head], expected, atol=1e-5)


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        ({"features": "cosine"}, ValueError, "features .*'cosine'"),
        ({"projections": 0}, ValueError, "projections .* not 0"),
        ({"projections": -3}, ValueError, "projections .* not -3"),
        ({"projections": 1.5}, TypeError, "projections .* not 1.5"),
        ({"seed": -1}, ValueError, "seed .* not -1"),
        ({"seed": "0"}, TypeError, "seed .* not '0'"),
    ],
)
def test_invalid_options_of_a_kernel_are_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        Softmax(**arguments)


@pytest.mark.parametrize(
    ("m", "d", "message"), [(0, 4, "projections .* not 0"), (-1, 4, "projections .* not -1"), (4, 0, "d .* not 0")]
)
def test_invalid_numbers_of_projections_are_refused(m, d, message):
    with pytest.raises(ValueError, match=message):
        draw_projections(m, d, 0)


@pytest.mark.parametrize(
    ("tokens", "weights", "bias", "error", "message"),
    [
        (normal(4, 3), normal(2, 2), None, ValueError, r"weights take 2 .*\(2, 2\).* 3"),
        (normal(4, 3), np.full((3, 2), np.nan, np.float32), None, ValueError, "weights .* NaN"),
        (normal(4, 3), np.full((3, 2), np.inf, np.float32), None, ValueError, "weights .* infinity"),
        (normal(4, 3), normal(3, 2), np.full((1, 2), np.inf, np.float32), ValueError, "bias .* infinity"),
        (normal(4, 3), normal(3), None, ValueError, r"weights .* shape \(3,\)"),
        (normal(3), normal(3, 2), None, ValueError, r"tokens .* shape \(3,\)"),
        (normal(4, 3), np.ones((3, 2), np.int64), None, TypeError, "weights .*int64"),
        (normal(4, 3).astype(np.float16), normal(3, 2), None, TypeError, "tokens .*float16"),
        (np.ones((4, 3), np.uint8), normal(3, 2), None, TypeError, "tokens .*uint8"),
        ([[1.0]], normal(1, 1), None, TypeError, "tokens must be .* not list"),
        (normal(1, 1), [[1.0]], None, TypeError, "weights must be .* not list"),
    ],
)
def test_arrays_that_cannot_be_projected_are_refused(tokens, weights, bias, error, message):
    with pytest.raises(error, match=message):
        project(tokens, weights, bias)


def test_features_of_queries_and_keys_that_do_not_match_are_refused():
    with pytest.raises(ValueError, match="queries have 3 dimensions, but keys have 4"):
        featurise(ReLU(), normal(5, 3), normal(5, 4))
    with pytest.raises(ValueError, match=r"keys .* shape \(3,\)"):
        featurise(ReLU(), normal(5, 3), normal(3))


def test_every_registered_kernel_has_its_name_and_features():
    for name, kernel in KERNELS.items():
        assert KERNELS.name_of(kernel) == name
        assert (name == "relu") == isinstance(kernel, ReLU)
        assert isinstance(kernel, ReLU) or kernel.features == name
        queries, keys = featurise(kernel, normal(5, 3), normal(5, 3))
        assert queries.true().shape == keys.true().shape
    with pytest.raises(ValueError, match="there is no kernel 'reli'; did you mean 'relu'"):
        KERNELS["reli"]
