"""The operations that the array API lacks, on every library, against plain NumPy."""

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iap.attention.patches import extract
from iap.attention.primitives import batch_norm, convolve, relu, stop_gradient, top_k_indices, top_k_values

ARRAYS = [(5,), (7, 40), (2, 3, 11)]


def gradient(library, function, *arrays):
    """The gradient of `function`, a number, with respect to each of `arrays`; JAX and PyTorch only."""
    if library.name == "jax":
        import jax

        return [np.asarray(g) for g in jax.grad(function, argnums=tuple(range(len(arrays))))(*arrays)]
    leaves = [x.clone().requires_grad_() for x in arrays]
    function(*leaves).backward()
    return [np.zeros(x.shape) if x.grad is None else x.grad.numpy() for x in leaves]


@pytest.fixture(scope="module", params=["jax", "torch"])
def differentiable(request, open_library):
    """Each library with gradients."""
    return open_library(request.param)


@pytest.mark.parametrize("shape", ARRAYS)
def test_top_k_selects_the_largest_values_with_ties_in_order_of_index(library, shape):
    rng = np.random.default_rng(0)
    for scores in (rng.standard_normal(shape, np.float32), rng.integers(0, 3, shape).astype(np.float32)):
        order = np.argsort(-scores, axis=-1, kind="stable")
        for k in (1, 3, shape[-1]):
            values, indices = top_k_values(library.array(scores), k), top_k_indices(library.array(scores), k)
            np.testing.assert_array_equal(library.numpy(indices), order[..., :k])
            np.testing.assert_array_equal(library.numpy(values), np.take_along_axis(scores, order[..., :k], -1))


def test_the_gradient_of_top_k_values_reaches_the_selected_scores_only(differentiable):
    scores = differentiable.array(np.array([[3, 1, 2, 0], [0, 5, 4, 6]], np.float32))
    (slope,) = gradient(differentiable, lambda x: (top_k_values(x, 2)[..., -1] * 2).sum(), scores)
    np.testing.assert_array_equal(slope, [[0, 0, 2, 0], [0, 2, 0, 0]])


def test_top_k_in_jax_is_not_compiled_to_a_full_sort():
    jax = pytest.importorskip("jax")

    def ends(scores):
        best = top_k_values(scores, 10)
        return best[..., -1] + best[..., 0]

    program = jax.jit(ends).lower(np.zeros((4, 1000), np.float32)).compile().as_text()
    assert "TopK" in program
    assert " sort(" not in program


@given(
    size=st.integers(1, 4),
    stride=st.integers(1, 3),
    channels=st.integers(1, 3),
    filters=st.integers(1, 5),
    seed=st.integers(0, 99),
)
def test_a_convolution_is_the_product_of_patches_and_weights(size, stride, channels, filters, seed):
    rng = np.random.default_rng(seed)
    images = rng.standard_normal((2, 9, 8, channels))
    weights = rng.standard_normal((filters, size * size * channels))
    outputs = convolve(images, weights, stride)
    for i, image in enumerate(images):
        np.testing.assert_allclose(outputs[i].reshape(-1, filters), extract(image, size, stride) @ weights.T)
    windows = images[0, stride : stride + size, :size] if stride + size <= 9 else None
    if windows is not None:
        np.testing.assert_allclose(outputs[0, 1, 0], weights @ windows.ravel())


@pytest.mark.parametrize(("size", "stride", "channels"), [(1, 1, 3), (3, 2, 2), (4, 4, 1)])
def test_convolutions_and_their_gradients_agree_between_libraries(differentiable, size, stride, channels):
    rng = np.random.default_rng(0)
    images = rng.standard_normal((2, 9, 8, channels)).astype(np.float32)
    weights = rng.standard_normal((5, size * size * channels)).astype(np.float32)
    arrays = differentiable.array(images), differentiable.array(weights)
    expected = convolve(images, weights, stride)
    np.testing.assert_allclose(differentiable.numpy(convolve(*arrays, stride)), expected, rtol=1e-4, atol=1e-5)
    directions = rng.standard_normal(expected.shape).astype(np.float32)
    across = differentiable.array(directions)
    of_images, of_weights = gradient(differentiable, lambda x, w: (convolve(x, w, stride) * across).sum(), *arrays)
    patches = extract(images, size, stride)
    rows = directions.reshape(*patches.shape[:2], 5)
    np.testing.assert_allclose(of_weights, np.einsum("nlf,nlc->fc", rows, patches), rtol=1e-4, atol=1e-4)
    step = rng.standard_normal(images.shape).astype(np.float32)  # the convolution is linear in the images
    np.testing.assert_allclose(
        np.sum(of_images * step), np.sum(convolve(step, weights, stride) * directions), rtol=1e-3
    )


@pytest.mark.parametrize(
    ("size", "stride", "dilation", "padding"), [(3, 1, 2, 2), (5, 2, 1, 2), (3, 3, 2, 0), (1, 2, 3, 1)]
)
def test_convolutions_with_padding_and_dilation_are_products_with_spread_out_weights(
    library, size: int, stride: int, dilation: int, padding: int
):
    rng = np.random.default_rng(0)
    images = rng.standard_normal((2, 9, 8, 3)).astype(np.float32)
    weights = rng.standard_normal((4, size, size, 3)).astype(np.float32)
    side = dilation * (size - 1) + 1
    spread = np.zeros((4, side, side, 3), np.float32)
    spread[:, ::dilation, ::dilation] = weights
    padded = np.pad(images, ((0, 0), (padding, padding), (padding, padding), (0, 0)))
    wanted = convolve(padded, spread.reshape(4, -1), stride)
    arrays = library.array(images), library.array(weights.reshape(4, -1))
    outputs = convolve(*arrays, stride, dilation=dilation, padding=padding)
    np.testing.assert_allclose(library.numpy(outputs), wanted, rtol=1e-4, atol=1e-5)


def test_batch_norm_is_the_same_in_every_library_with_statistics_of_the_batch_or_given_ones(library):
    rng = np.random.default_rng(0)
    x, bias = rng.standard_normal((3, 4, 5, 2)).astype(np.float32) * 3 + 1, rng.standard_normal(2).astype(np.float32)
    outputs, used = batch_norm(library.array(x), library.array(bias))
    outputs, mean, variance = map(library.numpy, (outputs, *used))
    np.testing.assert_allclose(mean, x.mean(axis=(0, 1, 2)), atol=1e-5)
    np.testing.assert_allclose(variance, x.var(axis=(0, 1, 2)), rtol=1e-5)
    np.testing.assert_allclose(outputs, (x - mean) / np.sqrt(variance + 1e-5) + bias, atol=1e-5)
    given = np.array([0.5, -1], np.float32), np.array([2, 0.1], np.float32)
    outputs, used = batch_norm(library.array(x), library.array(bias), tuple(map(library.array, given)))
    outputs, mean, variance = map(library.numpy, (outputs, *used))
    np.testing.assert_allclose(outputs, (x - given[0]) / np.sqrt(given[1] + 1e-5) + bias, rtol=1e-5, atol=1e-5)
    np.testing.assert_array_equal(mean, given[0])
    np.testing.assert_array_equal(variance, given[1])


def test_relu_has_gradient_zero_at_zero_and_propagates_nan(library):
    x = np.array([-2, -0.0, 0, 3, np.nan, np.inf], np.float32)
    np.testing.assert_array_equal(library.numpy(relu(library.array(x))), [0, 0, 0, 3, np.nan, np.inf])
    if library.name != "numpy":
        (slope,) = gradient(library, lambda x: relu(x).sum(), library.array(x[:4]))
        np.testing.assert_array_equal(slope, [0, 0, 0, 1])


def test_no_gradient_flows_through_a_stopped_array(library):
    x = np.array([1, 2, 3], np.float32)
    np.testing.assert_array_equal(library.numpy(stop_gradient(library.array(x))), x)
    if library.name != "numpy":
        (slope,) = gradient(library, lambda x: (x * stop_gradient(x)).sum(), library.array(x))
        np.testing.assert_array_equal(slope, x)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: top_k_values(np.ones(3, np.float32), 4), ValueError, "k must be between 1 and 3 .* not 4"),
        (lambda: top_k_indices(np.ones(3, np.float32), 0), ValueError, "k must be between 1 and 3 .* not 0"),
        (lambda: top_k_values(np.ones(3, np.int64), 1), TypeError, "scores must be float32"),
        (lambda: convolve(np.ones((5, 5, 2)), np.ones((1, 8)), 1), ValueError, "images must have 4 axes"),
        (lambda: convolve(np.ones((1, 5, 5, 2)), np.ones((1, 9)), 1), ValueError, "weights must have size²·2 columns"),
        (lambda: convolve(np.ones((1, 5, 5, 2)), np.ones((1, 72)), 1), ValueError, "patch must be between 1 and 5"),
        (lambda: convolve(np.ones((1, 5, 5, 2)), np.ones((1, 8)), 0), ValueError, "stride must be at least 1"),
        (lambda: convolve(np.ones((1, 5, 5, 2)), np.ones((1, 8), np.float32), 1), TypeError, "share one dtype"),
    ],
)
def test_wrong_arguments_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_numpy_arrays_load_neither_jax_nor_torch():
    program = (
        "import sys, numpy as np; from iap.attention.primitives import *; x = np.ones((1, 4, 4, 1));"
        "convolve(x, np.ones((2, 4)), 1), top_k_values(x, 1), top_k_indices(x, 1), relu(x), stop_gradient(x);"
        "assert not {'jax', 'torch'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
