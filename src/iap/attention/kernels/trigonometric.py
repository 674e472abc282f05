"""Trigonometric features, compiled."""

from typing import NamedTuple

import numpy as np

from iap._compile import compiled, implements
from iap.attention.kernels.elementary import cosine, sine
from iap.attention.kernels.families import (
    HALF,
    adapt,
    measure,
    measure_softmax,
    measure_stored,
    measure_stored_softmax,
    pool,
    score,
    times_powers_of_two,
    unchanged,
)
from iap.attention.kernels.projection import BLOCK, FAST


class TrigonometricFeatures(NamedTuple):
    """φ = exp(‖x‖²/2)·(sin ω·x, cos ω·x)."""

    radius: np.float32  # of the sphere of a normalised kernel; else 0
    omega: np.ndarray  # (m, D), in turns: ω/(2π·√(log₂ e))


implements(measure, TrigonometricFeatures)(measure_softmax)
implements(measure_stored, TrigonometricFeatures)(measure_stored_softmax)
implements(adapt, TrigonometricFeatures)(unchanged)


@implements(pool, TrigonometricFeatures)
@compiled
def _pool(features, x, half_norms, weights, exponents):
    """Σ weight·φ, sines first."""
    logs = half_norms + exponents
    sizes = np.ones_like(logs)
    if len(weights) > 0:
        lowest = logs.min()
        for j in range(len(logs)):
            sizes[j] = weights[j]
            if weights[j] == 0:  # a patch without weight must not set the scale
                logs[j] = lowest
    peak = np.full(1, logs.max())
    times_powers_of_two(sizes, logs - peak)
    return pool_trigonometric(x, features.omega, sizes).astype(np.float32), peak


@implements(score, TrigonometricFeatures)
@compiled
def _score(features, x, half_norms, pooled, exponents, each, scores):
    score_trigonometric(x, features.omega, pooled, scores)
    return half_norms + exponents


@compiled(fastmath=FAST)
def _turn_block(x, omega, start, turns):
    """ω·x of a block in turns, reduced to [−½, ½]."""
    turns[:] = 0
    for e in range(0, len(x), 4):
        x0, x1, x2, x3 = x[e, start:], x[e + 1, start:], x[e + 2, start:], x[e + 3, start:]
        w0, w1, w2, w3 = omega[e], omega[e + 1], omega[e + 2], omega[e + 3]
        for j in range(len(turns)):
            turns[j] += w0 * x0[j] + w1 * x1[j] + w2 * x2[j] + w3 * x3[j]
    for j in range(len(turns)):
        turns[j] -= np.floor(turns[j] + HALF)


@compiled(fastmath=FAST)
def pool_trigonometric(x, omega, weights):
    """Σ over patches of weight·(sin, cos)(2π·ω·x), sines first."""
    m = len(omega)
    sums = np.zeros(2 * m, np.float64)
    buffer = np.empty(BLOCK, np.float32)
    for start in range(0, len(weights), BLOCK):
        turns = buffer[: min(BLOCK, len(weights) - start)]
        weight = weights[start : start + len(turns)]
        for f in range(m):
            _turn_block(x, omega[f], start, turns)
            sines, cosines = np.float32(0), np.float32(0)
            for j in range(len(turns)):
                sines += weight[j] * sine(turns[j])
                cosines += weight[j] * cosine(turns[j])
            sums[f] += sines
            sums[m + f] += cosines
    return sums


@compiled(fastmath=FAST)
def score_trigonometric(x, omega, pooled, scores):
    """(sin, cos)(2π·ω·x)·pooled of each patch."""
    m = len(omega)
    buffer = np.empty(BLOCK, np.float32)
    for start in range(0, len(scores), BLOCK):
        turns = buffer[: min(BLOCK, len(scores) - start)]
        out = scores[start : start + len(turns)]
        out[:] = 0
        for f in range(m):
            _turn_block(x, omega[f], start, turns)
            for j in range(len(turns)):
                out[j] += pooled[f] * sine(turns[j]) + pooled[m + f] * cosine(turns[j])
