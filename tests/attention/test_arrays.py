"""The three libraries give the same numbers and gradients, and only the library in use is imported."""

import subprocess
import sys

import numpy as np
import pytest

from iap.attention import (
    Positions,
    ReLU,
    Scaled,
    Softmax,
    as_pixels,
    attention_matrix,
    exact_scores,
    extract,
    featurise,
    gather,
    grid_of,
    mask,
    mix,
    place,
    project,
    rank_scores,
    sample,
    top,
)
from iap.attention.arrays import is_concrete, require_count, require_finite, require_floats

jax = pytest.importorskip("jax")
torch = pytest.importorskip("torch")


def normal(*shape, seed=0, scale=1.0):
    return (scale * np.random.default_rng(seed).normal(size=shape)).astype(np.float32)


IMAGES = np.random.default_rng(0).integers(0, 256, (3, 6, 8, 3)).astype(np.uint8)
QUERY, KEY = normal(12, 4, seed=1, scale=0.5), normal(12, 4, seed=2, scale=0.5)
POOLING = np.random.default_rng(3).uniform(0.5, 1.5, 12).astype(np.float32)


def scores_of(kernel, image, query, key, pooling, normalise_rows=False, positions=None):
    """The scores of the patches of an image."""
    tokens = extract(as_pixels(image), 2, 2)
    placed = place(
        tokens, grid_of(*image.shape[-3:-1], patch=2, stride=2), Positions() if positions is None else positions
    )
    features = featurise(kernel, project(placed, query), project(placed, key))
    return rank_scores(*features, pooling=pooling, normalise_rows=normalise_rows)


def assert_close(found, expected, tolerance=1e-5):
    """Equal to a tolerance relative to the largest expected number."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * np.abs(expected).max())


def test_jit_vmap_and_batches_agree_in_every_library(kernel):
    """The reference is one image at a time in NumPy; JAX runs under jit and vmap, and the others in batches."""

    def scores(image, query, key, pooling):
        return [
            scores_of(kernel, image, query, key, pooling, normalise_rows).true() for normalise_rows in (False, True)
        ]

    weights = QUERY, KEY, POOLING
    one_by_one = zip(*(scores(image, *weights) for image in IMAGES), strict=True)
    in_torch = scores(*map(torch.tensor, (IMAGES, *weights)))
    in_jax = jax.jit(jax.vmap(scores, in_axes=(0, None, None, None)))(IMAGES, *weights)
    for expected, *found in zip(one_by_one, scores(IMAGES, *weights), in_torch, in_jax, strict=True):
        for values in map(np.asarray, found):
            assert values.dtype == np.float32
            assert_close(values, np.stack(expected))


def test_jit_accepts_weights_as_constants():
    """As for a trained policy: under jit, even operations on known arrays have unknown results."""
    query, key, pooling = map(jax.numpy.asarray, (QUERY, KEY, POOLING))
    found = jax.jit(lambda image: scores_of(Softmax(), image, query, key, pooling).true())(IMAGES)
    assert_close(found, scores_of(Softmax(), IMAGES, QUERY, KEY, POOLING).true())
    scores, uniforms = map(jax.numpy.asarray, (POOLING, POOLING / 2))
    best, drawn = jax.jit(lambda: (top(scores, 3), sample(scores, 3, uniforms, Softmax())))()
    np.testing.assert_array_equal(best, top(POOLING, 3))
    np.testing.assert_array_equal(drawn, sample(POOLING, 3, POOLING / 2, Softmax()))


@pytest.mark.parametrize("kernel", [ReLU(), Softmax("favor++", normalised=True)], ids=["relu", "favor++"])
def test_jax_agrees_outside_jit(kernel):
    arrays = map(jax.numpy.asarray, (IMAGES[0], QUERY, KEY, POOLING))
    assert_close(scores_of(kernel, *arrays).true(), scores_of(kernel, IMAGES[0], QUERY, KEY, POOLING).true())


def both_gradients(loss, inputs, compiled=lambda function: function):
    """The gradients in JAX and PyTorch with respect to each input."""
    of_jax = compiled(jax.grad(loss))(tuple(map(jax.numpy.asarray, inputs)))
    tensors = [torch.tensor(x, requires_grad=True) for x in inputs]
    loss(tensors).backward()
    return of_jax, [x.grad.numpy() for x in tensors]


@pytest.mark.parametrize("normalise_rows", [False, True], ids=["as-is", "row-normalised"])
def test_gradients_of_jax_and_pytorch_agree_with_each_other_and_with_finite_differences(kernel, normalise_rows):
    def loss(inputs):
        """A number that depends on every score in a different way."""
        image, query, key, pooling = inputs
        scores = scores_of(kernel, image, query, key, pooling, normalise_rows).true()
        return (scores * scores * pooling).sum()

    inputs = as_pixels(IMAGES[0]), QUERY, KEY, POOLING
    of_jax, of_torch = both_gradients(loss, inputs)
    for ours, theirs in zip(of_jax, of_torch, strict=True):
        assert np.all(np.isfinite(ours))
        assert_close(theirs, ours, 1e-4)
    for index, gradient in enumerate(of_jax):
        direction = normal(*gradient.shape, seed=9).astype(np.float64)
        ahead, behind = ([x.astype(np.float64) for x in inputs] for _ in range(2))
        step = 1e-5
        ahead[index] += step * direction
        behind[index] -= step * direction
        slope = (loss(ahead) - loss(behind)) / (2 * step)
        size = np.linalg.norm(gradient) * np.linalg.norm(direction)
        assert abs(np.sum(gradient * direction) - slope) < 1e-3 * size


@pytest.mark.parametrize("normalise_rows", [False, True], ids=["as-is", "row-normalised"])
def test_gradients_are_finite_where_queries_and_keys_are_zero(kernel, normalise_rows):
    """In a black corner of an image without positions ‖u‖ is 0, and `where` must not propagate the gradient of 0/0."""
    image = as_pixels(IMAGES[0], centre=0).copy()
    image[:4, :4] = 0

    def loss(inputs):
        image, query, key, weights = inputs
        scores = scores_of(kernel, image, query, key, None, normalise_rows, Positions("none"))
        return (scores.true() * weights).sum()

    of_jax, of_torch = both_gradients(loss, (image, QUERY, KEY, POOLING))
    for ours, theirs in zip(of_jax, of_torch, strict=True):
        assert np.all(np.isfinite(ours))
        assert np.any(ours != 0)
        assert_close(theirs, ours, 1e-4)


def test_the_gradient_of_a_pooling_weight_of_zero_is_not_zero(kernel):
    """Scores are linear in P, so the derivative with respect to P(i) is A(i, j)/L for any P(i), including 0."""
    queries, keys = map(torch.tensor, (normal(12, 4), normal(12, 4, seed=1)))
    phi_q, phi_k = featurise(kernel, queries, keys)
    linear = phi_q.true() @ phi_k.true().T
    exact = attention_matrix(kernel, queries, keys).true()
    for matrix, scores_of in (
        (linear, lambda p: rank_scores(phi_q, phi_k, pooling=p)),
        (exact, lambda p: exact_scores(kernel, queries, keys, pooling=p)),
    ):
        pooling = torch.tensor(np.where(np.arange(12) % 3 == 0, 0, POOLING), requires_grad=True)
        (gradient,) = torch.autograd.grad(scores_of(pooling).true()[5], pooling)
        assert_close(gradient.numpy(), matrix[:, 5].numpy() / 12)


@pytest.mark.parametrize(("rows", "width"), [(2, 3), (3, 2)], ids=["from-the-left", "from-the-right"])
def test_gradients_of_mixing_agree(rows, width):
    """JAX runs under jit."""

    def loss(inputs):
        pooling, queries, keys, values = inputs
        mixed = mix(pooling, *featurise(Softmax(), queries, keys), values, normalise_rows=True, residual=True)
        return (mixed * mixed).sum()

    inputs = normal(rows, 12), normal(12, 4, seed=1), normal(12, 4, seed=2), normal(12, width, seed=3)
    of_jax, of_torch = both_gradients(loss, inputs, jax.jit)
    for ours, theirs in zip(of_jax, of_torch, strict=True):
        assert_close(theirs, ours, 1e-4)


def test_selection_works_inside_jit_and_vmap():
    scores = np.random.default_rng(0).exponential(size=(3, 12)).astype(np.float32)
    uniforms = np.random.default_rng(1).uniform(0.01, 0.99, (3, 12)).astype(np.float32)
    values = normal(3, 12, 2)

    def select(scores, uniforms, values):
        best, drawn = top(scores, 4), sample(scores, 4, uniforms, Softmax())
        return best, drawn, gather(values, best), mask(values, drawn)

    found = jax.jit(jax.vmap(select))(scores, uniforms, values)
    for ours, theirs in zip(found, select(scores, uniforms, values), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_vmap_and_grad_of_pytorch_work():
    images, query, key, pooling = map(torch.tensor, (IMAGES, QUERY, KEY, POOLING))
    kernel = Softmax()
    mapped = torch.func.vmap(lambda image: scores_of(kernel, image, query, key, pooling).true())(images)
    assert_close(mapped.numpy(), scores_of(kernel, IMAGES, QUERY, KEY, POOLING).true())
    slopes = torch.func.grad(lambda weights: scores_of(kernel, images, weights, key, pooling).true().sum())(query)
    assert bool(torch.isfinite(slopes).all())


NUMPY_RUN = """
import sys
import numpy as np
import iap.attention
print(*sorted({"jax", "jaxlib", "torch", "numba"} & set(sys.modules)), "after import", sep=",")
from iap.attention import *
image = np.zeros((8, 8, 3), np.uint8)
tokens = place(extract(as_pixels(image), 2, 2), grid_of(8, 8, 2, 2), Positions())
weights = np.ones((12, 4), np.float32)
for kernel in (ReLU(), Softmax("favor++", normalised=True)):
    scores = rank_scores(*featurise(kernel, project(tokens, weights), project(tokens, weights)))
    selected = top(scores.values, 3)
    sample(scores.values, 3, np.full(16, 0.5, np.float32), kernel)
    gather(tokens, selected), mask(tokens, selected)
print(*sorted({"jax", "jaxlib", "torch", "numba"} & set(sys.modules)), "after a run", sep=",")
"""


def test_numpy_arrays_import_no_other_library():
    done = subprocess.run([sys.executable, "-c", NUMPY_RUN], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["after import", "after a run"]


FEATURES = featurise(ReLU(), normal(5, 4), normal(5, 4, seed=1))
MIXTURES = {
    "project": (lambda x: project(normal(5, 3), x), normal(3, 4), ("tokens", "weights")),
    "project with bias": (lambda x: project(normal(5, 3), normal(3, 4), x), normal(1, 4), ("bias",)),
    "featurise": (lambda x: featurise(ReLU(), normal(5, 4), x), normal(5, 4), ("queries", "keys")),
    "rank_scores": (lambda x: rank_scores(*FEATURES, pooling=x), normal(5), ("pool",)),
    "mix values": (lambda x: mix(normal(2, 5), *FEATURES, x), normal(5, 3), ("values",)),
    "mix pooling": (lambda x: mix(x, *FEATURES, normal(5, 3)), normal(2, 5), ("pooling",)),
    "exact_scores": (lambda x: exact_scores(Softmax(), normal(5, 4), x), normal(5, 4), ("queries", "keys")),
    "exact_scores pooling": (
        lambda x: exact_scores(Softmax(), normal(5, 4), normal(5, 4), pooling=x),
        normal(5),
        ("pool",),
    ),
    "attention_matrix": (lambda x: attention_matrix(Softmax(), x, normal(5, 4)), normal(5, 4), ("queries", "keys")),
    "sample": (lambda x: sample(np.ones(5, np.float32), 1, x, ReLU()), np.full(5, 0.5, np.float32), ("uniforms",)),
    "gather": (lambda x: gather(normal(5, 4), x), np.array([0, 2]), ("values", "selected")),
    "mask": (lambda x: mask(normal(5, 4), x), np.array([0, 2]), ("values", "selected")),
}


@pytest.mark.parametrize("other", ["jax", "torch"])
@pytest.mark.parametrize("name", MIXTURES)
def test_arrays_of_two_libraries_cannot_be_mixed(name, other, open_library):
    function, array, arguments = MIXTURES[name]
    function(array)
    with pytest.raises(TypeError) as caught:
        function(open_library(other).array(array))
    assert all(argument in str(caught.value) for argument in arguments)


@pytest.mark.parametrize("name", [name for name in MIXTURES if name not in ("sample", "gather", "mask")])
def test_float32_and_float64_cannot_be_mixed(name):
    """Only functions that return floats are tested; indices do not depend on the dtype."""
    function, array, arguments = MIXTURES[name]
    with pytest.raises(TypeError, match="float64") as caught:
        function(array.astype(np.float64))
    assert all(argument in str(caught.value) for argument in arguments)


def test_a_scaled_array_is_its_values_times_exp_of_its_scale(library):
    scaled = Scaled(library.array(normal(3, 2)), library.array(np.array([[0], [1], [-2]], np.float32)))
    np.testing.assert_allclose(library.numpy(scaled.true()), normal(3, 2) * np.exp([[0], [1], [-2]]), rtol=1e-6)


def test_values_are_unknown_only_while_they_are_traced(library):
    concrete = []

    def record(x):
        concrete.append(is_concrete(x))
        return x.sum()

    x = library.array(np.array([1, np.nan], np.float32))
    assert is_concrete(x)
    with pytest.raises(ValueError, match="x must be finite, but holds NaN"):
        require_finite("x", x)
    transforms = {"jax": [jax.jit, jax.grad], "torch": [torch.func.grad]}.get(library.name, [])
    for transform in transforms:
        transform(record)(x)
    assert concrete == [False] * len(transforms)


@pytest.mark.parametrize(
    ("value", "error", "message"),
    [
        (0, ValueError, "n must be between 1 and 3 .why., not 0"),
        (4, ValueError, "n must be between 1 and 3 .why., not 4"),
        (2.0, TypeError, "n must be a whole number, not 2.0"),
        ("2", TypeError, "n must be a whole number, not '2'"),
        (True, TypeError, "n must be a whole number, not True"),
        (None, TypeError, "n must be a whole number, not None"),
    ],
)
def test_a_count_must_be_an_integer_in_range(value, error, message):
    with pytest.raises(error, match=message):
        require_count("n", value, most=3, why=" (why)")
    assert require_count("n", np.int64(3), most=3) == 3


@pytest.mark.parametrize("dtype", [np.float16, np.int32, np.uint8, np.bool_])
def test_only_float32_and_float64_are_accepted_as_floats(dtype):
    with pytest.raises(TypeError, match=f"x must be float32 .*{np.dtype(dtype).name}"):
        require_floats("x", np.ones(3, dtype))
    assert require_floats("x", np.ones(3, np.float32), rank=1) is not None
