"""ReLU features, compiled."""

from typing import NamedTuple

import numpy as np

from iap._compile import compiled, implements
from iap.attention.kernels.families import adapt, measure, measure_stored, pool, score, unchanged
from iap.attention.kernels.projection import BLOCK, FAST


class ReLUFeatures(NamedTuple):
    """φ = relu(x)."""


@compiled(fastmath=FAST)
def pool_relu(x, weights):
    """Σ over patches of weight·relu(x), one sum a dimension; empty `weights` stand for ones."""
    sums = np.zeros(len(x), np.float64)
    for e in range(len(x)):
        for start in range(0, x.shape[1], BLOCK):
            row = x[e, start : start + BLOCK]
            total = np.float32(0)
            if len(weights) > 0:
                weight = weights[start:]
                for j in range(len(row)):
                    total += weight[j] * max(row[j], np.float32(0))
            else:
                for j in range(len(row)):
                    total += max(row[j], np.float32(0))
            sums[e] += total
    return sums


@compiled(fastmath=FAST)
def score_relu(x, pooled, scores):
    """relu(x)·pooled of each patch."""
    for start in range(0, len(scores), BLOCK):
        out = scores[start : start + BLOCK]
        out[:] = 0
        for e in range(len(x)):
            row, weight = x[e, start:], pooled[e]
            for j in range(len(out)):
                out[j] += weight * max(row[j], np.float32(0))


@implements(measure, ReLUFeatures)
@implements(measure_stored, ReLUFeatures)
@compiled
def _measure(features, x, half_norms):
    """Nothing: ReLU features do not use norms."""


implements(adapt, ReLUFeatures)(unchanged)


@implements(pool, ReLUFeatures)
@compiled
def _pool(features, x, half_norms, weights, exponents):
    return pool_relu(x, weights).astype(np.float32), exponents


@implements(score, ReLUFeatures)
@compiled
def _score(features, x, half_norms, pooled, exponents, each, scores):
    score_relu(x, pooled, scores)
    return exponents
