"""The compiled ranker gives the scores of the array-API functions, from Python and inside other compiled code."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iap._compile import compiled
from iap.attention import (
    KERNELS,
    Positions,
    ReLU,
    Softmax,
    as_pixels,
    extract,
    featurise,
    grid_of,
    place,
    project,
    rank_scores,
    top,
)
from iap.attention.kernels.elementary import cosine, exp2, sine
from iap.attention.kernels.folding import Layer
from iap.attention.kernels.ranker import compile_ranker, image_keys, score_image, score_image_with_keys
from iap.attention.patches import Grid

# (stride, channels): each pair and dtype is compiled separately. (7, 3) is too far apart for unrolled reads.
STEPS = [(2, 3), (7, 3), (1, 1), (1, 3), (4, 2)]


def generic_scores(kernel, queries, keys, image, *, patch, stride, positions, pooling, normalise_rows):
    height, width, _ = image.shape
    placed = place(extract(as_pixels(image), patch, stride), grid_of(height, width, patch, stride), positions)
    features = featurise(kernel, project(placed, *queries), project(placed, *keys))
    return rank_scores(*features, pooling=pooling, normalise_rows=normalise_rows)


def relative(scores):
    return scores.values / np.abs(scores.values).max(axis=-1, keepdims=True)


def layers(rng, width, d, heads=None, size=1.0, bias=True):
    shape = (width, d) if heads is None else (heads, width, d)
    return [
        Layer(
            (size * rng.standard_normal(shape) / np.sqrt(width)).astype(np.float32),
            rng.standard_normal((1, d)).astype(np.float32) if bias else None,
        )
        for _ in range(2)
    ]


@settings(max_examples=25)
@given(
    height=st.integers(7, 40),
    width=st.integers(7, 40),
    step=st.integers(0, len(STEPS) - 1),
    patch=st.integers(1, 7),
    d=st.integers(1, 9),
    heads=st.sampled_from([None, 1, 3]),
    mode=st.sampled_from(["add", "concat", "none"]),
    kind=st.sampled_from([np.uint8, np.float32, np.float64]),
    learnt_pooling=st.booleans(),
    normalise_rows=st.booleans(),
    seed=st.integers(0, 10_000),
)
def test_compiled_scores_equal_the_generic_scores(
    kernel, height, width, step, patch, d, heads, mode, kind, learnt_pooling, normalise_rows, seed
):
    # The projection is the same code for all kernels: ReLU, which compiles fastest, tests all its variants.
    stride, channels = STEPS[step if kernel == ReLU() else step % 2]
    rng = np.random.default_rng(seed)
    if kernel != ReLU() and kernel.signed and normalise_rows:
        normalise_rows = False  # sums of signed rows can be near 0, and then neither result is precise
    positions = Positions(mode, scale=0.3)
    count = grid_of(height, width, patch, stride).patches
    queries, keys = layers(rng, positions.width(patch * patch * channels), d, heads)
    pooling = rng.uniform(0.1, 1, count).astype(np.float32) if learnt_pooling else None
    image = rng.integers(0, 256, (height, width, channels), dtype=np.uint8)
    if kind is not np.uint8:
        image = (image / 255).astype(kind)
    options = {"patch": patch, "stride": stride, "positions": positions, "pooling": pooling}
    ranker = compile_ranker(kernel, queries, keys, image.shape, **options, normalise_rows=normalise_rows)
    found = ranker(image)
    generic = generic_scores(
        kernel,
        queries,
        keys,
        image.astype(np.float32) if kind is np.float64 else image,
        **options,
        normalise_rows=normalise_rows,
    )
    assert found.values.dtype == found.log_scale.dtype == np.float32
    if not generic.values.any():  # all ReLU features may be 0
        assert not found.values.any()
        return
    # the direction of a near-zero query is imprecise
    tolerance = 2e-4 if kernel != ReLU() and kernel.normalised else 3e-5
    np.testing.assert_allclose(found.true(), generic.true(), rtol=0, atol=tolerance * np.abs(generic.true()).max())


def test_scores_do_not_depend_on_earlier_images():
    rng = np.random.default_rng(0)
    queries, keys = layers(rng, 12, 4)
    ranker = compile_ranker(Softmax(), queries, keys, (24, 32, 3), patch=2, stride=2)
    first, second = rng.integers(0, 256, (2, 24, 32, 3), dtype=np.uint8)
    before = ranker(first)
    ranker(second)
    np.testing.assert_array_equal(ranker(first).values, before.values)


@pytest.mark.parametrize(("heads", "normalise_rows"), [(None, False), (None, True), (3, True)])
def test_keys_of_one_image_are_scored_by_the_queries_of_another(kernel, heads, normalise_rows):
    rng = np.random.default_rng(0)
    queries, keys = layers(rng, 12, 5, heads)
    ranker = compile_ranker(kernel, queries, keys, (24, 32, 3), patch=2, stride=2, normalise_rows=normalise_rows)
    before, now = rng.integers(0, 256, (2, 24, 32, 3), dtype=np.uint8)
    grid = grid_of(24, 32, 2, 2)
    placed = [place(extract(as_pixels(image), 2, 2), grid, Positions()) for image in (now, before)]
    features = featurise(kernel, project(placed[0], *queries), project(placed[1], *keys))
    wanted = relative(rank_scores(*features, normalise_rows=normalise_rows))
    stored = ranker.keys_of(before)
    ranker(now)
    np.testing.assert_allclose(relative(ranker(now, stored)), wanted, atol=2e-3)
    np.testing.assert_array_equal(ranker(now, ranker.keys_of(now)).values, ranker(now).values)
    np.testing.assert_array_equal(ranker.values(now, stored), ranker(now, stored).values)


def test_an_image_need_not_be_contiguous():
    rng = np.random.default_rng(0)
    queries, keys = layers(rng, 12, 4)
    ranker = compile_ranker(Softmax(), queries, keys, (24, 32, 3), patch=2, stride=2)
    image = rng.integers(0, 256, (24, 64, 3), dtype=np.uint8)[:, ::-2]
    np.testing.assert_array_equal(ranker(image).values, ranker(image.copy()).values)


@pytest.mark.parametrize("normalise_rows", [False, True])
def test_unscaled_images_and_large_weights_do_not_overflow_and_are_ranked(kernel, normalise_rows):
    rng = np.random.default_rng(3)
    queries, keys = layers(rng, 12, 4, size=10 * np.sqrt(12), bias=False)
    image = rng.integers(0, 256, (24, 32, 3)).astype(np.float32)
    scores = compile_ranker(kernel, queries, keys, image.shape, patch=2, stride=2, normalise_rows=normalise_rows)(image)
    assert np.isfinite(scores.values).all()
    assert np.isfinite(scores.log_scale).all()
    assert len(np.unique(scores.values)) > 1


@pytest.mark.parametrize("features", ["positive", "hyperbolic", "favor++"])
def test_queries_and_keys_with_different_large_features_rank_as_in_double_precision(features):
    rng = np.random.default_rng(1)
    kernel = Softmax(features)
    queries, keys = layers(rng, 12, 4, size=3, bias=False)
    image = rng.uniform(20, 25, (24, 32, 3)).astype(np.float32)
    options = {"patch": 2, "stride": 2, "positions": Positions(), "pooling": None, "normalise_rows": False}
    found = compile_ranker(kernel, queries, keys, image.shape, **options)(image)
    wide = [Layer(layer.weights.astype(np.float64)) for layer in (queries, keys)]
    reference = generic_scores(kernel, wide[0], wide[1], image.astype(np.float64), **options)
    assert np.count_nonzero(reference.values) > 3
    np.testing.assert_array_equal(top(found.values, 3), top(reference.values, 3))


def test_images_with_long_rows_and_with_many_rows_span_several_blocks():
    rng = np.random.default_rng(0)
    for shape in ((3, 1500, 3), (1500, 3, 3), (70, 41, 3)):
        queries, keys = layers(rng, shape[2], 4)
        image = rng.integers(0, 256, shape, dtype=np.uint8)
        options = {"patch": 1, "stride": 1, "positions": Positions(), "pooling": None, "normalise_rows": True}
        found = compile_ranker(Softmax(), queries, keys, shape, **options)(image)
        generic = generic_scores(Softmax(), queries, keys, image, **options)
        np.testing.assert_allclose(relative(found), relative(generic), rtol=0, atol=1e-5)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_rankers_work_inside_compiled_code(kernel):
    rng = np.random.default_rng(0)
    queries, keys = layers(rng, 12, 4)
    ranker = compile_ranker(kernel, queries, keys, (24, 32, 3), patch=2, stride=2)
    first, second = rng.integers(0, 256, (2, 24, 32, 3), dtype=np.uint8)
    scores, with_keys, stored = score_twice(ranker.arrays(np.uint8), first, second)
    np.testing.assert_array_equal(scores, ranker.values(first))
    np.testing.assert_array_equal(stored, ranker.keys_of(second))
    np.testing.assert_array_equal(with_keys, ranker.values(first, stored))
    assert np.abs(scores).max() == 1


@compiled
def score_twice(ranker, first, second):
    """The scores of an image with its own keys and with those of another image, and these keys."""
    keys = image_keys(ranker, second)
    return score_image(ranker, first), score_image_with_keys(ranker, first, keys), keys


def test_arrays_are_for_bytes_or_single_precision():
    ranker = compile_ranker(**good())
    assert ranker.arrays(np.float32).projection.x is ranker.arrays("uint8").projection.x
    with pytest.raises(TypeError, match="dtype must be uint8 or float32, not float64"):
        ranker.arrays(np.float64)


def test_exp2_sine_and_cosine_match_double_precision():
    exponents = np.linspace(-120, 20, 20_001).astype(np.float32)
    powers = np.array([exp2(y) for y in exponents])
    np.testing.assert_allclose(powers, np.exp2(exponents.astype(np.float64)), rtol=4e-7)
    turns = np.linspace(-0.5, 0.5, 20_001).astype(np.float32)
    angles = 2 * np.pi * turns.astype(np.float64)
    np.testing.assert_allclose([sine(t) for t in turns], np.sin(angles), atol=3e-7)
    np.testing.assert_allclose([cosine(t) for t in turns], np.cos(angles), atol=3e-7)


def good():
    rng = np.random.default_rng(0)
    queries, keys = layers(rng, 12, 4)
    return {"kernel": Softmax(), "queries": queries, "keys": keys, "image_shape": (24, 32, 3), "patch": 2, "stride": 2}


NAN_LAYER = Layer(np.full((12, 4), np.nan, np.float32))


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"stride": 0}, ValueError, "stride must be at least 1, not 0"),
        ({"patch": 25}, ValueError, "patch must be between 1 and 24"),
        ({"patch": 2.0}, TypeError, "patch must be a whole number, not 2.0"),
        ({"image_shape": (24, 32)}, ValueError, "image_shape must be"),
        ({"image_shape": (24, 32, 0)}, ValueError, "image_shape must be at least 1, not 0"),
        ({"queries": NAN_LAYER}, ValueError, "queries.weights must be finite"),
        ({"keys": Layer(np.ones((11, 4), np.float32))}, ValueError, "keys.weights must be"),
        ({"keys": Layer(np.ones((12, 5), np.float32))}, ValueError, "differ in shape"),
        ({"keys": Layer(np.ones((12, 4), np.int64))}, TypeError, "keys.weights must be float32"),
        ({"queries": Layer(np.full((12, 4), 1e30, np.float32))}, ValueError, "too large for float32"),
        ({"pooling": np.ones(7, np.float32)}, ValueError, "pooling has 7 weights"),
        ({"pooling": np.full(192, np.inf, np.float32)}, ValueError, "pooling must be finite"),
    ],
)
def test_invalid_arguments_are_refused(change, error, message):
    with pytest.raises(error, match=message):
        compile_ranker(**(good() | change))


@pytest.mark.parametrize(
    ("image", "error", "message"),
    [
        (np.zeros((24, 32, 4), np.uint8), ValueError, r"image must be of shape \(24, 32, 3\), not \(24, 32, 4\)"),
        (np.zeros((24, 32), np.uint8), ValueError, "image must be of shape"),
        (np.zeros((24, 32, 3), np.int32), TypeError, "image must be uint8, float32 or float64, not int32"),
        ([[[0]]], TypeError, "image must be a NumPy array, not list"),
        (np.full((24, 32, 3), np.nan, np.float32), ValueError, "image must be finite"),
        (np.full((24, 32, 3), 1e25, np.float32), ValueError, "values too large for float32"),
    ],
)
def test_invalid_images_are_refused(image, error, message):
    with pytest.raises(error, match=message):
        compile_ranker(**good())(image)


def test_keys_of_another_ranker_are_refound():
    with pytest.raises(ValueError, match=r"keys must be of shape \(1, 4, 192\), as keys_of gives them, not \(4, 192\)"):
        compile_ranker(**good())(np.zeros((24, 32, 3), np.uint8), np.zeros((4, 192), np.float32))


def test_the_grid_of_the_ranker_matches_its_patches():
    assert compile_ranker(**good()).grid == Grid(12, 16)
