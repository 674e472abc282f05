"""Queries and keys of one head → scores, compiled, for every feature family."""

import math

import numpy as np

from iap._compile import compiled
from iap.attention.kernels.families import adapt, extreme_sizes, pool, score, times_powers_of_two


@compiled
def rank_head(features, queries, query_norms, keys, key_norms, pooling, normalise_rows, scores):
    """P·A without the constants of φ, optionally with rows that sum to one, which takes two more passes.

    Writes the scores and returns log₂ of their scale. The argument types do not depend on image or patches, so that
    this is compiled once for each feature family.
    """
    adapted = adapt(features, queries, query_norms, keys, key_norms)
    weights, exponents = pooling, np.zeros(1, np.float32)
    if normalise_rows:
        sums = np.empty_like(scores)
        pooled, pooled_exponents = pool(adapted, keys, key_norms, np.empty(0, np.float32), exponents)
        exponents = -score(adapted, queries, query_norms, pooled, pooled_exponents, True, sums)
        for j in range(len(sums)):
            share = np.float32(1) / sums[j] if sums[j] != 0 else np.float32(0)
            sums[j] = share * pooling[j] if len(pooling) > 0 else share
        weights = sums
    pooled, pooled_exponents = pool(adapted, queries, query_norms, weights, exponents)
    return _with_one_exponent(scores, score(adapted, keys, key_norms, pooled, pooled_exponents, False, scores))


@compiled
def _with_one_exponent(values, exponents):
    """Rescale values·2^exponents so that the largest value is ±1 (or all are 0); returns the common exponent."""
    common = exponents.max()
    if len(exponents) > 1:
        times_powers_of_two(values, exponents - common)
    _, largest = extreme_sizes(values)
    if largest == 0:
        return common
    for j in range(len(values)):
        values[j] /= largest
    return common + np.float32(math.log2(np.float64(largest)))
