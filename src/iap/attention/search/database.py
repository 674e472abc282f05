"""The key database of cross-attention: keys are stored at each refresh, and a step only asks which patches matter.

For keys that change less often than queries. `ExactLookup` ranks in O(L·m), `HashLookup` in O(L·m′) operations on
single bits, and `SamplingTree` draws in O(m·log L); each is asked with the pooled queries, `pool_queries(φ(Q))`.
"""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
from jaxtyping import Float, Int, UInt64

from iap.attention.arrays import Scaled, require_count, require_floats
from iap.attention.features import Kernel, Softmax
from iap.attention.ranking import per_feature
from iap.attention.search.loops import GROUP, descend, differing_bits, smallest, weighted_sum
from iap.attention.selection import check_samplable, top

BLOCK = 2048  # patches hashed at a time, so that they stay in the cache
LENGTH_TOLERANCE = 1e-3  # of log ‖φ(k)‖: float32 moves it by 1e-6, a key that is 0 by √d/2


@dataclass(frozen=True, eq=False)
class ExactLookup:
    """Every key's features in one matrix: a step is one matrix-vector product, O(L·m).

    Attributes:
        matrix: φ(K), one feature a row, divided by its largest size; rows of 0 fill up the last group.
        log_scale: the log of what each feature was divided by; −∞ for one that all keys lack.
    """

    matrix: Float[np.ndarray, "rows L"]
    log_scale: Float[np.ndarray, " m"]

    @classmethod
    def build(cls, keys: Scaled) -> Self:
        """The database of these key features, of any kernel."""
        patches, width = _check("keys", keys)
        matrix = np.zeros((width + -width % GROUP, patches), np.float32)
        return cls(matrix, _scale_columns(keys, out=matrix[:width].T))

    def scores(self, pooled: Scaled) -> Scaled:
        """R, as `rank_scores` gives it: one score a patch, one scale for all."""
        weights, peak = _weigh(pooled, self.log_scale)
        padded = np.zeros(len(self.matrix), np.float32)
        padded[: len(weights)] = weights
        return Scaled(weighted_sum(padded, self.matrix), np.full(1, peak, np.float32))

    def top(self, pooled: Scaled, top_k: int) -> Int[np.ndarray, " l"]:
        """The `top_k` patches with the largest scores, best first; of equal scores, the patch that comes first."""
        return top(self.scores(pooled).values, top_k)


@dataclass(frozen=True, eq=False)
class HashLookup:
    """Every key's signs in m′ random directions: a step counts differing bits, 64 at a time (the first theorem).

    ψ(x) = sign(G·x)/√m′ (the proof prints 1/√m), so that ψ(x)·ψ(y) = 1 − 2·(share of differing bits) estimates
    1 − 2θ/π. The smallest angles θ are the largest scores if all φ(k) have the same length (the Lemma).

    Attributes:
        words: the signs of each key, 64 a word; spare bits are 0.
        directions: G.
        log_length: log ‖φ(k)‖.
    """

    words: UInt64[np.ndarray, "L words"]
    directions: Float[np.ndarray, "bits m"]
    log_length: float

    @classmethod
    def build(cls, keys: Scaled, kernel: Kernel, bits: int, *, seed: int = 0) -> Self:
        """The database of key features of `kernel`, trigonometric and normalised, each hashed to `bits` signs."""
        if not (isinstance(kernel, Softmax) and kernel.features == "trigonometric" and kernel.normalised):
            raise ValueError(
                f'kernel must be Softmax(features="trigonometric", normalised=True), not {kernel}: '
                "only then do all keys have one length, and the smallest angle the largest score"
            )
        patches, width = _check("keys", keys, width=2 * kernel.projections)
        require_count("bits", bits)
        require_count("seed", seed, least=0)
        rows, log_lengths = _directions_of(keys)
        least, most = float(log_lengths.min()), float(log_lengths.max())
        if not most - least <= LENGTH_TOLERANCE:
            raise ValueError(
                f"keys must have one length, but its log runs from {least:.4g} to {most:.4g} (a key of 0 has none)"
            )
        directions = _draw_directions(bits, width, seed)
        words = [_pack_signs(rows[start : start + BLOCK], directions) for start in range(0, patches, BLOCK)]
        return cls(np.concatenate(words), directions, most)

    def distances(self, pooled: Scaled) -> Int[np.ndarray, " L"]:
        """How many of each key's m′ signs differ from those of the pooled queries."""
        rows, _ = self._ask(pooled)
        return differing_bits(self.words, _pack_signs(rows, self.directions)[0])

    def angles(self, pooled: Scaled) -> Float[np.ndarray, " L"]:
        """The estimated angle θ between each key and the pooled queries, in radians."""
        return self.distances(pooled).astype(np.float32) * np.float32(math.pi / len(self.directions))

    def scores(self, pooled: Scaled) -> Scaled:
        """R as the angles tell it, ‖z‖·‖φ(k)‖·cos θ: one score a patch, one scale for all."""
        _, log_lengths = self._ask(pooled)
        return Scaled(np.cos(self.angles(pooled)), (log_lengths + self.log_length).astype(np.float32))

    def top(self, pooled: Scaled, top_k: int) -> Int[np.ndarray, " l"]:
        """The `top_k` patches at the smallest distances, nearest first; of equal ones, the patch that comes first."""
        require_count("top_k", top_k, most=len(self.words), why=" (the number of patches)")
        return smallest(self.distances(pooled), top_k, len(self.directions))

    def _ask(self, pooled: Scaled) -> tuple[np.ndarray, np.ndarray]:
        _check("pooled", pooled, width=self.directions.shape[1], rows=1)
        if not pooled.values.any():
            raise ValueError("pooled must not be 0, which has no direction")
        return _directions_of(pooled)


@dataclass(frozen=True, eq=False)
class SamplingTree:
    """Sums of key features in a binary tree: a patch is drawn by its score in O(m·log L) (the first theorem).

    At each node the walk goes left with the left keys' share of the score, and so ends at patch i with probability
    r_i/Σr. The proof walks with z′ = φ(Σ q), which draws from another distribution: z = Σ φ(q) is meant.

    Attributes:
        nodes: summed features: the root in row 1, the children of row i in 2i and 2i + 1, the leaf of patch i in L + i.
        log_scale: the log of what each feature was divided by; −∞ for one that all keys lack.
    """

    nodes: Float[np.ndarray, "2*L m"]
    log_scale: Float[np.ndarray, " m"]

    @classmethod
    def build(cls, keys: Scaled, kernel: Kernel) -> Self:
        """The tree of any number of key features of `kernel`, which must not be signed."""
        check_samplable(kernel)
        patches, width = _check("keys", keys, least=0)
        nodes = np.empty((2 * patches, width), np.float32)
        nodes[0] = 0  # no node
        log_scale = _scale_columns(keys, out=nodes[patches:])
        high = patches
        while high > 1:  # nodes from low to high have both children at high or above
            low = (high + 1) // 2
            np.add(nodes[2 * low : 2 * high : 2], nodes[2 * low + 1 : 2 * high : 2], out=nodes[low:high])
            high = low
        return cls(nodes, log_scale)

    def draw(self, pooled: Scaled, count: int, uniforms: Float[np.ndarray, " count"]) -> Int[np.ndarray, " count"]:
        """`count` patches in proportion to their scores, with replacement.

        The randomness is passed in: one number of [0, 1) a draw, best in float64.
        """
        require_count("count", count)
        if require_floats("uniforms", uniforms).shape != (count,):
            raise ValueError(f"uniforms must be one a draw, {count}, not of shape {uniforms.shape}")
        if not ((uniforms >= 0) & (uniforms < 1)).all():
            raise ValueError(f"uniforms must lie in [0, 1), but run from {uniforms.min()} to {uniforms.max()}")
        weights, _ = _weigh(pooled, self.log_scale, least=0)
        if not weights.any():
            raise ValueError("pooled gives every key the score 0: there is nothing to draw by")
        return descend(self.nodes, weights, np.asarray(uniforms, np.float64))


def _check(
    name: str, features: Scaled, *, width: int | None = None, rows: int | None = None, least: float = -math.inf
) -> tuple[int, int]:
    """How many rows and features there are, all finite and as asked for."""
    for x in features:
        if not isinstance(x, np.ndarray) or x.dtype not in (np.float32, np.float64):
            raise TypeError(f"{name} must be float32 (or float64) NumPy arrays, not {getattr(x, 'dtype', type(x))}")
        if not np.isfinite(x).all():
            raise ValueError(f"{name} must be finite, but holds NaN or infinity")
    shape = np.broadcast(features.values, features.log_scale).shape
    if len(shape) != 2 or 0 in shape or shape != (rows or shape[0], width or shape[1]):  # noqa: PLR2004
        raise ValueError(f"{name} must be of shape ({rows or 'L'}, {width or 'm'}), not {shape}")
    if features.values.min() < least:
        raise ValueError(f"{name} must not be negative to draw by scores, but one is {features.values.min()}")
    return shape[0], shape[1]


def _scale_columns(keys: Scaled, out: Float[np.ndarray, "L m"]) -> Float[np.ndarray, " m"]:
    """Write each feature, divided by its largest size over all keys, into `out`; return the logs of those sizes."""
    values, peak = per_feature(keys)
    sizes = np.max(np.abs(values), axis=0)
    dead = sizes == 0
    sizes[dead] = 1
    np.divide(values, sizes, out=out, casting="same_kind")
    return np.where(dead, -np.inf, np.log(sizes, dtype=np.float64) + peak[0])


def _weigh(
    pooled: Scaled, log_scale: Float[np.ndarray, " m"], least: float = -math.inf
) -> tuple[Float[np.ndarray, " m"], float]:
    """What each scaled feature of a key counts for, the largest 1, and the log of what they were divided by.

    The scales of keys and queries may be far beyond float32 and meet only here, as logs; in float64, since an error
    of a log is a relative error of the weight.
    """
    _check("pooled", pooled, width=len(log_scale), rows=1, least=least)
    values = np.broadcast_to(pooled.values[0], log_scale.shape).astype(np.float64)
    live = (values != 0) & np.isfinite(log_scale)
    if not live.any():
        return np.zeros(len(values), np.float32), 0.0
    logs = np.log(np.abs(values), out=np.full(len(values), -np.inf), where=live) + pooled.log_scale[0] + log_scale
    peak = float(logs.max())
    return (np.sign(values) * np.exp(logs - peak)).astype(np.float32), peak


def _directions_of(features: Scaled) -> tuple[Float[np.ndarray, "L m"], Float[np.ndarray, " L"]]:
    """A vector along each row, and the log of the row's own length."""
    peak = features.log_scale.max(axis=-1, keepdims=True)
    rows = (features.values * np.exp(features.log_scale - peak)).astype(np.float32, copy=False)
    squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)  # which would vanish in float32 if pooling is small
    return rows, 0.5 * np.log(squares) + peak[:, 0]


@lru_cache(maxsize=8)
def _draw_directions(bits: int, width: int, seed: int) -> Float[np.ndarray, "bits m"]:
    """G: independent rows of N(0, I)."""
    directions = np.random.default_rng(seed).standard_normal((bits, width), dtype=np.float32)
    directions.flags.writeable = False
    return directions


def _pack_signs(x: Float[np.ndarray, "L m"], directions: Float[np.ndarray, "bits m"]) -> UInt64[np.ndarray, "L words"]:
    packed = np.packbits(x @ directions.T > 0, axis=-1)
    words = np.zeros((len(x), math.ceil(len(directions) / 64)), np.uint64)
    words.view(np.uint8)[:, : packed.shape[1]] = packed
    return words
