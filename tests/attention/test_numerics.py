"""Results of finite inputs are finite and float32, and rank patches like a reference in float64 logarithms."""

from contextlib import nullcontext
from typing import NamedTuple

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import logsumexp

from iap.attention import (
    Grid,
    Positions,
    ReLU,
    Softmax,
    as_pixels,
    attention_matrix,
    draw_projections,
    exact_scores,
    extract,
    featurise,
    gather,
    layer_norm,
    mask,
    mix,
    place,
    project,
    rank_scores,
    sum_heads,
    top,
)

ROUNDING = 1e-5  # relative error of an exponent or an angle in float32, after all sums
REACH = 80  # scores whose log is this much below the largest may be 0 under the common scale


class Logs(NamedTuple):
    """Signed numbers outside the range of floats: sign·exp(log)."""

    log: np.ndarray
    sign: np.ndarray


class Reference(NamedTuple):
    """Scores up to a common factor; the logs of the sums of their absolute terms; the largest exponent."""

    scores: Logs
    uncancelled: np.ndarray
    largest: float


def total(log, sign, axis):
    """The sum along an axis, which may be 0."""
    with np.errstate(divide="ignore"):
        log, sign = logsumexp(log, axis=axis, b=sign, return_sign=True, keepdims=True)
    return Logs(np.asarray(log), np.asarray(sign))


def log_features(kernel, queries, keys):
    """φ(q), φ(k), and the largest magnitude of their exponents and angles."""
    u, v = queries.astype(np.float64), keys.astype(np.float64)
    if isinstance(kernel, ReLU):
        with np.errstate(divide="ignore"):
            return *(Logs(np.log(np.maximum(z, 0)), np.where(z > 0, 1.0, 0.0)) for z in (u, v)), 1.0
    d = u.shape[-1]
    if kernel.normalised:
        u, v = (np.sqrt(d) * z / np.maximum(np.linalg.norm(z, axis=-1, keepdims=True), 1e-300) for z in (u, v))
    x, y = u / d**0.25, v / d**0.25
    omega = draw_projections(kernel.projections, d, kernel.seed).astype(np.float64)
    squares = np.sum(omega * omega, axis=-1)
    a = 0.0
    if kernel.features == "favor++":
        s = max(1e-6, np.mean(np.sum((x[:, None] + y[None]) ** 2, axis=-1)))
        a = (1 - 4 * s / (np.sqrt((2 * s + d) ** 2 + 8 * d * s) - 2 * s - d)) / 8

    def phi(z):
        angles, half = z @ omega.T, np.sum(z * z, axis=-1, keepdims=True) / 2
        if kernel.features == "trigonometric":
            waves = np.concatenate([np.sin(angles), np.cos(angles)], axis=-1)
            return Logs(half + np.log(np.abs(waves) + 1e-300), np.sign(waves))
        logs = a * squares + np.sqrt(1 - 4 * a) * angles - half
        if kernel.features == "hyperbolic":
            logs = np.concatenate([logs, -angles - half], axis=-1)
        return Logs(logs, np.ones_like(logs))

    sizes = [np.abs(np.sqrt(1 - 4 * a) * z @ omega.T).max() + np.sum(z * z, axis=-1).max() for z in (x, y)]
    return phi(x), phi(y), max(sizes) - a * squares.max()


def reference_scores(kernel, queries, keys, pooling=None, normalise_rows=False):
    """P·A in float64 logarithms, without overflow or underflow."""
    q, k, largest = log_features(kernel, queries, keys)
    sizes = q.log
    if normalise_rows:
        every_key = total(*k, axis=0)
        rows = total(q.log + every_key.log, q.sign * every_key.sign, axis=1)
        uncancelled_rows = total(q.log + total(k.log, np.abs(k.sign), axis=0).log, np.abs(q.sign), axis=1)
        divisor = np.where(rows.sign == 0, 0, rows.log)
        condition = np.where(rows.sign == 0, 0, uncancelled_rows.log - divisor)
        q = Logs(q.log - divisor, q.sign * rows.sign)
        sizes = q.log + condition
    weights = np.ones((len(queries), 1)) if pooling is None else pooling[:, None].astype(np.float64)
    pooled = total(q.log, q.sign * weights, axis=0)
    scores = total(k.log + pooled.log, k.sign * pooled.sign, axis=1)
    pooled_sizes = total(sizes, np.abs(q.sign * weights), axis=0)
    uncancelled = total(k.log + pooled_sizes.log, np.abs(k.sign), axis=1)
    return Reference(Logs(*(part[:, 0] for part in scores)), uncancelled.log[:, 0], largest)


def compare(values, reference):
    """Compare values with the reference to the precision of float32, and return which comparison was possible.

    Exponents, and therefore logarithms, have an error of up to `slack`; a sum with signs, of up to `slack` times the
    sum of its absolute terms. If the best score exceeds all others by more than that, it must be the best value.
    """
    (log, sign), uncancelled, largest = reference
    assert np.all(np.isfinite(values))
    if not sign.any():
        np.testing.assert_array_equal(values, 0)
        return "all zero"
    assert np.any(values != 0)
    slack = ROUNDING * largest + 1e-3
    cancels = bool(np.any(uncancelled[sign != 0] > log[sign != 0] + 1e-6))
    if cancels and slack > 0.05:
        return "imprecise"
    blur = uncancelled + np.log(slack) if cancels else np.full_like(log, -np.inf)
    known = (sign != 0) & (log > blur)
    visible = known & (log > uncancelled.max() - REACH)
    positive = visible & (sign > 0)
    if not positive.any():
        return "none positive"
    best = np.argmax(np.where(positive, log, -np.inf))
    rivals = np.where(known & (sign < 0), -np.inf, np.maximum(log, blur))
    rivals[best] = -np.inf
    if rivals.max() + slack >= log[best] - slack:
        return "too close"
    assert values[best] > np.delete(values, best).max(initial=-np.inf)
    return "ranked"


def bytes_as_floats(rng):
    return rng.integers(0, 256, (6, 8, 3))


def one_bright_pixel(rng):
    image = np.zeros((6, 8, 3))
    image[rng.integers(6), rng.integers(8)] = 255
    return image


def a_ramp(rng):
    return np.linspace(0, 255, 48).reshape(6, 8, 1) * rng.uniform(0, 1, 3)


def one_colour(rng):
    return np.ones((6, 8, 1)) * rng.uniform(0, 255, 3)


def black(rng):
    return np.zeros((6, 8, 3))


SCENES = st.sampled_from([bytes_as_floats, one_bright_pixel, a_ramp, one_colour, black])
WEIGHTS = st.sampled_from([1e-3, 1e-2, 0.1, 1.0, 10.0])
GRID, MODES = Grid(3, 4), st.sampled_from([Positions(), Positions("none")])


def queries_and_keys(library, scene, scale, positions, seed):
    """Queries and keys of an unscaled image 0..255, with weights up to `scale`, computed by the library."""
    rng = np.random.default_rng(seed)
    image = scene(rng).astype(np.float32)
    tokens = place(extract(as_pixels(library.array(image)), 2, 2), GRID, positions)
    weights = (rng.uniform(-scale, scale, (12, 4)).astype(np.float32) for _ in "qk")
    return [project(tokens, library.array(w)) for w in weights]


@pytest.mark.parametrize("normalise_rows", [False, True], ids=["as-is", "row-normalised"])
def test_scores_of_unscaled_images_rank_like_the_reference(library_and_kernel, normalise_rows):
    library, kernel = library_and_kernel
    outcomes = []

    @settings(max_examples=30)
    @given(SCENES, WEIGHTS, MODES, st.integers(0, 2**16))
    def check(scene, scale, positions, seed):
        queries, keys = queries_and_keys(library, scene, scale, positions, seed)
        scores = rank_scores(*featurise(kernel, queries, keys), normalise_rows=normalise_rows)
        assert library.numpy(scores.values).dtype == np.float32
        assert np.all(np.isfinite(library.numpy(scores.log_scale)))
        reference = reference_scores(kernel, *map(library.numpy, (queries, keys)), normalise_rows=normalise_rows)
        outcomes.append(compare(library.numpy(scores.values), reference))

    check()
    assert outcomes.count("ranked") >= 3, outcomes


@pytest.mark.parametrize("normalise_rows", [False, True], ids=["as-is", "row-normalised"])
def test_exact_scores_of_unscaled_images_rank_like_logarithms(library, normalise_rows):
    ranked = 0

    @given(SCENES, WEIGHTS, st.integers(0, 2**16))
    def check(scene, scale, seed):
        nonlocal ranked
        queries, keys = queries_and_keys(library, scene, scale, Positions(), seed)
        scores = library.numpy(exact_scores(Softmax(), queries, keys, normalise_rows=normalise_rows).values)
        assert np.all(np.isfinite(scores))
        q, k = (library.numpy(x).astype(np.float64) for x in (queries, keys))
        exponents = q @ k.T / 2
        slack = ROUNDING * np.abs(exponents).max() + 1e-3
        if normalise_rows:
            exponents -= logsumexp(exponents, axis=1, keepdims=True)
        logs = np.asarray(logsumexp(exponents, axis=0))
        second, best = np.sort(logs)[-2:]
        if best - second > 2 * slack:
            assert np.argmax(scores) == np.argmax(logs)
            ranked += 1

    check()
    assert ranked >= 3


def one_long_query(used):
    """Queries of which one dominates all others, keys, and a P that uses the `used` shortest queries only."""
    rng = np.random.default_rng(0)
    queries, keys = (rng.normal(size=(12, 4)).astype(np.float32) * 10 for _ in "qk")
    order = np.argsort(np.linalg.norm(queries, axis=1))
    queries[order[-1]] *= 20
    pooling = np.zeros(12, np.float32)
    pooling[order[:used]] = 1
    return queries, keys, pooling


@pytest.mark.parametrize("used", [1, 11])
def test_a_pooling_that_ignores_the_longest_queries_ranks_by_the_others(kernel, used):
    """P is learnt, and may be 0 for a query that would dominate all others."""
    queries, keys, pooling = one_long_query(used)
    scores = rank_scores(*featurise(kernel, queries, keys), pooling=pooling)
    assert compare(scores.values, reference_scores(kernel, queries, keys, pooling)) != "all zero"


@pytest.mark.parametrize("used", [1, 11])
def test_an_exact_pooling_that_ignores_the_longest_queries_ranks_by_the_others(used):
    queries, keys, pooling = one_long_query(used)
    weighted = queries[pooling > 0].astype(np.float64)
    logs = np.asarray(logsumexp(weighted @ keys.T.astype(np.float64) / 2, axis=0))
    for block in (1, 12):
        scores = exact_scores(Softmax(), queries, keys, pooling=pooling, block=block)
        assert np.count_nonzero(scores.values) > 0
        assert np.argmax(scores.values) == np.argmax(logs)


@pytest.mark.parametrize("dtype", ["uint8", "float32", "float64"])
def test_float32_stays_float32_and_float64_stays_float64(library_and_kernel, dtype):
    """From the image to the scores and the mixed values; uint8 becomes float32."""
    library, kernel = library_and_kernel
    precise = dtype == "float64"
    if library.name == "jax" and precise:
        import jax

        context = jax.enable_x64(True)
    else:
        context = nullcontext()
    rng = np.random.default_rng(0)
    floats = np.float64 if precise else np.float32
    pixels = rng.integers(0, 256, (6, 8, 3)) if dtype == "uint8" else rng.uniform(0, 1, (6, 8, 3))
    with context:
        weights = [library.array(rng.uniform(-1, 1, (12, 4)).astype(floats)) for _ in "qkv"]
        pooling = library.array(rng.uniform(0, 1, (2, 12)).astype(floats))
        tokens = extract(as_pixels(library.array(pixels.astype(dtype))), 2, 2)
        placed = [place(tokens, GRID, Positions(mode)) for mode in ("add", "concat", "none")]
        queries, keys, values = (project(placed[0], w) for w in weights)
        features = featurise(kernel, queries, keys)
        results = [tokens, *placed, queries]
        for rows in (False, True):
            mixed = mix(pooling, *features, values, normalise_rows=rows, residual=True)
            scaled = [
                rank_scores(*features, normalise_rows=rows),
                rank_scores(*features, pooling=pooling[0], normalise_rows=rows),
                attention_matrix(kernel, queries, keys, normalise_rows=rows),
                exact_scores(kernel, queries, keys, pooling=pooling[0], normalise_rows=rows),
            ]
            results += [x for pair in scaled for x in (*pair, pair.true())]
            results += [mixed, layer_norm(mixed), *sum_heads(scaled[2])]
        selected = top(results[-1], 1)
        results += [*features[0], gather(values, selected), mask(values, selected)]
    assert {str(library.numpy(x).dtype) for x in results} == {np.dtype(floats).name}
