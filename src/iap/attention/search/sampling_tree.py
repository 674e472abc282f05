"""Sampling tree: patches drawn in proportion to their scores, O(m·log L) a draw."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from jaxtyping import Float, Int

from iap._compile import compiled
from iap.attention.arrays import Scaled, require_count, require_floats
from iap.attention.features import Kernel
from iap.attention.search.scaling import check_features, scale_columns, weigh
from iap.attention.selection import check_samplable


@dataclass(frozen=True, eq=False)
class SamplingTree:
    """Sums of key features in a binary tree (the first theorem).

    At each node the walk goes left with probability equal to the left keys' share of the score, so it ends at patch i
    with probability r_i/Σr. The proof walks with z′ = φ(Σ q), which draws from another distribution: z = Σ φ(q) is
    meant.

    Attributes:
        nodes: summed features: the root in row 1, the children of row i in 2i and 2i + 1, the leaf of patch i in L + i.
        log_scale: the log of the divisor of each feature; −∞ for a feature that is 0 for all keys.
    """

    nodes: Float[np.ndarray, "2*L m"]
    log_scale: Float[np.ndarray, " m"]

    @classmethod
    def build(cls, keys: Scaled, kernel: Kernel) -> Self:
        """The tree of any number of key features of `kernel`, which must not be signed."""
        check_samplable(kernel)
        patches, width = check_features("keys", keys, least=0)
        nodes = np.empty((2 * patches, width), np.float32)
        nodes[0] = 0  # unused
        log_scale = scale_columns(keys, out=nodes[patches:])
        high = patches
        while high > 1:  # both children of the nodes from low to high are at high or above
            low = (high + 1) // 2
            np.add(nodes[2 * low : 2 * high : 2], nodes[2 * low + 1 : 2 * high : 2], out=nodes[low:high])
            high = low
        return cls(nodes, log_scale)

    def draw(self, pooled: Scaled, count: int, uniforms: Float[np.ndarray, " count"]) -> Int[np.ndarray, " count"]:
        """`count` patches in proportion to their scores, with replacement.

        The randomness is an argument: one number in [0, 1) a draw, preferably float64.
        """
        require_count("count", count)
        if require_floats("uniforms", uniforms).shape != (count,):
            raise ValueError(f"uniforms must be one a draw, {count}, not of shape {uniforms.shape}")
        if not ((uniforms >= 0) & (uniforms < 1)).all():
            raise ValueError(f"uniforms must be in [0, 1), but range from {uniforms.min()} to {uniforms.max()}")
        weights, _ = weigh(pooled, self.log_scale, least=0)
        if not weights.any():
            raise ValueError("pooled gives every key the score 0, so that no patch can be drawn")
        return descend(self.nodes, weights, np.asarray(uniforms, np.float64))


@compiled(fastmath={"reassoc", "contract"})
def descend(nodes, weights, uniforms):
    """One walk from root to leaf for each number, which is rescaled to [0, 1) at each node."""
    patches = len(nodes) // 2
    drawn = np.empty(len(uniforms), np.int64)
    for i in range(len(uniforms)):
        uniform, node = uniforms[i], 1
        while node < patches:
            left_sums, right_sums = nodes[2 * node], nodes[2 * node + 1]
            left, right = np.float32(0), np.float32(0)
            for j in range(len(weights)):
                left += left_sums[j] * weights[j]
                right += right_sums[j] * weights[j]
            target = uniform * (np.float64(left) + np.float64(right))
            node *= 2
            if right == 0:  # there is no score on the right, or both sides underflow in float32
                continue
            if target < left:
                uniform = target / left
            else:
                uniform = (target - left) / right
                node += 1
        drawn[i] = node - patches
    return drawn
