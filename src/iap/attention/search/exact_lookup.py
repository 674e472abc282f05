"""Exact lookup: scores of all stored keys by one matrix-vector product, O(L·m)."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from jaxtyping import Float, Int

from iap._compile import compiled
from iap.attention.arrays import Scaled
from iap.attention.search.scaling import check_features, scale_columns, weigh
from iap.attention.selection import top

GROUP = 4  # features that one pass over the patches adds up
BLOCK = 2048  # patches in a block, so that their sums stay in the cache


@dataclass(frozen=True, eq=False)
class ExactLookup:
    """The features of all keys in one matrix.

    Attributes:
        matrix: φ(K), one feature a row, divided by its largest magnitude; rows of 0 complete the last group.
        log_scale: the log of the divisor of each feature; −∞ for a feature that is 0 for all keys.
    """

    matrix: Float[np.ndarray, "rows L"]
    log_scale: Float[np.ndarray, " m"]

    @classmethod
    def build(cls, keys: Scaled) -> Self:
        """The database of these key features, of any kernel."""
        patches, width = check_features("keys", keys)
        matrix = np.zeros((width + -width % GROUP, patches), np.float32)
        return cls(matrix, scale_columns(keys, out=matrix[:width].T))

    def scores(self, pooled: Scaled) -> Scaled:
        """R as in `rank_scores`: one score a patch, one scale for all."""
        weights, peak = weigh(pooled, self.log_scale)
        padded = np.zeros(len(self.matrix), np.float32)
        padded[: len(weights)] = weights
        return Scaled(weighted_sum(padded, self.matrix), np.full(1, peak, np.float32))

    def top(self, pooled: Scaled, top_k: int) -> Int[np.ndarray, " l"]:
        """The `top_k` patches with the largest scores, best first; among equal scores, the lower index first."""
        return top(self.scores(pooled).values, top_k)


@compiled
def weighted_sum(weights, matrix):
    """The sum of weighted rows, in the same order for every column, so that equal keys tie (BLAS would not)."""
    sums = np.zeros(matrix.shape[1], np.float32)
    for start in range(0, len(sums), BLOCK):
        stop = min(start + BLOCK, len(sums))
        part = sums[start:stop]
        for i in range(0, len(weights), GROUP):
            a, b, c, d = weights[i], weights[i + 1], weights[i + 2], weights[i + 3]
            row_a, row_b = matrix[i, start:stop], matrix[i + 1, start:stop]
            row_c, row_d = matrix[i + 2, start:stop], matrix[i + 3, start:stop]
            for j in range(len(part)):
                part[j] += a * row_a[j] + b * row_b[j] + c * row_c[j] + d * row_d[j]
    return sums
