"""Positive and hyperbolic features, compiled.

A pass first uses an upper bound of its exponents, which is known without a pass over the patches. If the sums are then
so small that terms may have been lost, the true maxima are computed and the pass runs again.
"""

import math
from typing import NamedTuple

import numpy as np

from iap._compile import compiled, implements
from iap.attention.kernels.elementary import exp2
from iap.attention.kernels.families import (
    adapt,
    extreme_sizes,
    measure,
    measure_softmax,
    measure_stored,
    measure_stored_softmax,
    pool,
    score,
    unchanged,
)
from iap.attention.kernels.projection import BLOCK, FAST

TOO_SMALL = 2.0**-60
FAR = np.float32(1e30)


class PositiveFeatures(NamedTuple):
    """φ = exp(ω·x + bias − ‖x‖²/2)."""

    radius: np.float32  # of the sphere of a normalised kernel; else 0
    omega: np.ndarray  # (m, D), times √(log₂ e)
    bias: np.ndarray  # (m,), base 2
    ceilings: np.ndarray  # (m,), an upper bound of the exponent for any x: ‖ω‖²/2 + bias


implements(measure, PositiveFeatures)(measure_softmax)
implements(measure_stored, PositiveFeatures)(measure_stored_softmax)
implements(adapt, PositiveFeatures)(unchanged)


@implements(pool, PositiveFeatures)
@compiled
def _pool(features, x, half_norms, weights, exponents):
    """Σ weight·φ as signs and exponents, so that features of very different sizes keep their precision."""
    omega, bias, peaks = features.omega, features.bias, features.ceilings
    if len(exponents) > 1:
        half_norms = half_norms - exponents
    sums = pool_positive(x, half_norms, omega, bias - peaks, weights)
    signs, sizes, smallest = to_signs_and_exponents(sums, peaks)
    if smallest < TOO_SMALL or len(exponents) > 1:
        if len(weights) > 0:
            half_norms = np.where(weights == 0, FAR, half_norms)  # a patch without weight must not set the scale
        peaks, _ = peak_exponents(x, half_norms, omega, bias)
        sums = pool_positive(x, half_norms, omega, bias - peaks, weights)
        signs, sizes, _ = to_signs_and_exponents(sums, peaks)
    if len(exponents) == 1:
        sizes += exponents[0]
    return signs, sizes


@implements(score, PositiveFeatures)
@compiled
def _score(features, x, half_norms, pooled, exponents, each, scores):
    bias = features.bias + exponents
    peak = np.full(1, (features.ceilings + exponents).max())
    score_positive(x, half_norms, features.omega, bias - peak, pooled, scores)
    smallest, largest = extreme_sizes(scores)
    if (smallest if each else largest) < TOO_SMALL:
        _, peak = peak_exponents(x, half_norms, features.omega, bias)
        score_positive(x, half_norms + peak, features.omega, bias, pooled, scores)
    return peak


@compiled(fastmath=FAST)
def _gather_rest(x, half_norms, omega, start, rest):
    """The negative exponents without the bias and without the first four dimensions, which the callers add."""
    rest[:] = half_norms[start : start + len(rest)]
    for e in range(4, len(x), 4):
        x0, x1, x2, x3 = x[e, start:], x[e + 1, start:], x[e + 2, start:], x[e + 3, start:]
        w0, w1, w2, w3 = omega[e], omega[e + 1], omega[e + 2], omega[e + 3]
        for j in range(len(rest)):
            rest[j] -= w0 * x0[j] + w1 * x1[j] + w2 * x2[j] + w3 * x3[j]


@compiled(fastmath=FAST)
def pool_positive(x, half_norms, omega, bias, weights):
    """Σ over patches of weight·2^(ω·x + bias − half_norm), one sum a feature; empty `weights` stand for ones."""
    sums = np.zeros(len(omega), np.float64)
    buffer = np.empty(BLOCK, np.float32)
    for start in range(0, len(half_norms), BLOCK):
        n = min(BLOCK, len(half_norms) - start)
        x0, x1, x2, x3 = x[0, start:], x[1, start:], x[2, start:], x[3, start:]
        for f in range(len(omega)):
            w0, w1, w2, w3, c = omega[f, 0], omega[f, 1], omega[f, 2], omega[f, 3], bias[f]
            rest = half_norms[start : start + n]
            if len(x) > 4:  # noqa: PLR2004
                rest = buffer[:n]
                _gather_rest(x, half_norms, omega[f], start, rest)
            total = np.float32(0)
            if len(weights) > 0:
                weight = weights[start:]
                for j in range(n):
                    total += weight[j] * exp2(c - rest[j] + w0 * x0[j] + w1 * x1[j] + w2 * x2[j] + w3 * x3[j])
            else:
                for j in range(n):
                    total += exp2(c - rest[j] + w0 * x0[j] + w1 * x1[j] + w2 * x2[j] + w3 * x3[j])
            sums[f] += total
    return sums


@compiled
def to_signs_and_exponents(sums, exponents):
    """sums·2^exponents as signs and exponents, and the smallest |sum|, by which the caller judges the precision."""
    signs, sizes, smallest = np.empty(len(sums), np.float32), np.empty(len(sums), np.float32), np.inf
    for f in range(len(sums)):
        signs[f] = np.sign(sums[f])
        size = abs(sums[f])
        smallest = min(smallest, size)
        sizes[f] = exponents[f] + (math.log2(size) if size > 0 else 0.0)
    return signs, sizes, smallest


@compiled(fastmath=FAST)
def score_positive(x, half_norms, omega, bias, signs, scores):
    """Σ over features of sign·2^(ω·x + bias − half_norm), one sum a patch."""
    buffer = np.empty(BLOCK, np.float32)
    for start in range(0, len(half_norms), BLOCK):
        n = min(BLOCK, len(half_norms) - start)
        x0, x1, x2, x3 = x[0, start:], x[1, start:], x[2, start:], x[3, start:]
        out = scores[start : start + n]
        out[:] = 0
        for f in range(len(omega)):
            w0, w1, w2, w3, c, sign = omega[f, 0], omega[f, 1], omega[f, 2], omega[f, 3], bias[f], signs[f]
            rest = half_norms[start : start + n]
            if len(x) > 4:  # noqa: PLR2004
                rest = buffer[:n]
                _gather_rest(x, half_norms, omega[f], start, rest)
            for j in range(n):
                out[j] += sign * exp2(c - rest[j] + w0 * x0[j] + w1 * x1[j] + w2 * x2[j] + w3 * x3[j])


@compiled(fastmath=FAST)
def peak_exponents(x, half_norms, omega, bias):
    """The largest exponent of each feature over patches, and of each patch over features."""
    per_feature = np.full(len(omega), np.float32(-3e38))
    per_patch = np.full(len(half_norms), np.float32(-3e38))
    buffer = np.empty(BLOCK, np.float32)
    for start in range(0, len(half_norms), BLOCK):
        n = min(BLOCK, len(half_norms) - start)
        x0, x1, x2, x3 = x[0, start:], x[1, start:], x[2, start:], x[3, start:]
        rest, peak = buffer[:n], per_patch[start : start + n]
        for f in range(len(omega)):
            w0, w1, w2, w3, c = omega[f, 0], omega[f, 1], omega[f, 2], omega[f, 3], bias[f]
            _gather_rest(x, half_norms, omega[f], start, rest)
            largest = per_feature[f]
            for j in range(n):
                exponent = c - rest[j] + w0 * x0[j] + w1 * x1[j] + w2 * x2[j] + w3 * x3[j]
                peak[j] = max(peak[j], exponent)
                largest = max(largest, exponent)
            per_feature[f] = largest
    return per_feature, per_patch
