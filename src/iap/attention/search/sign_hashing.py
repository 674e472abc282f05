"""Sign hashing: approximate angles between stored keys and the pooled queries, O(L·m′) operations on single bits."""

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Self

import numpy as np
from jaxtyping import Float, Int, UInt64
from numba.extending import intrinsic

from iap._compile import compiled
from iap.attention.arrays import Scaled, require_count
from iap.attention.features import Kernel, Softmax
from iap.attention.search.scaling import check_features

BLOCK = 2048  # patches hashed at a time, so that they stay in the cache
LENGTH_TOLERANCE = 1e-3  # of log ‖φ(k)‖: rounding to float32 changes it by 1e-6, a key of 0 by √d/2


@dataclass(frozen=True, eq=False)
class HashLookup:
    """The signs of each key in m′ random directions: a step counts differing bits, 64 at a time (the first theorem).

    ψ(x) = sign(G·x)/√m′ (the proof prints 1/√m), so that ψ(x)·ψ(y) = 1 − 2·(share of differing bits) estimates
    1 − 2θ/π. The smallest angles θ are the largest scores if all φ(k) have the same length (the Lemma).

    Attributes:
        words: the signs of each key, 64 a word; unused bits are 0.
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
                "otherwise keys differ in length, and the smallest angle need not be the largest score"
            )
        patches, width = check_features("keys", keys, width=2 * kernel.projections)
        require_count("bits", bits)
        require_count("seed", seed, least=0)
        rows, log_lengths = _directions_of(keys)
        least, most = float(log_lengths.min()), float(log_lengths.max())
        if not most - least <= LENGTH_TOLERANCE:
            raise ValueError(
                f"keys must have one length, but its log ranges from {least:.4g} to {most:.4g} (a key of 0 has none)"
            )
        directions = _draw_directions(bits, width, seed)
        words = [_pack_signs(rows[start : start + BLOCK], directions) for start in range(0, patches, BLOCK)]
        return cls(np.concatenate(words), directions, most)

    def distances(self, pooled: Scaled) -> Int[np.ndarray, " L"]:
        """How many of each key's m′ signs differ from those of the pooled queries."""
        rows, _ = self._query(pooled)
        return differing_bits(self.words, _pack_signs(rows, self.directions)[0])

    def angles(self, pooled: Scaled) -> Float[np.ndarray, " L"]:
        """The estimated angle θ between each key and the pooled queries, in radians."""
        return self.distances(pooled).astype(np.float32) * np.float32(math.pi / len(self.directions))

    def scores(self, pooled: Scaled) -> Scaled:
        """R estimated from the angles, ‖z‖·‖φ(k)‖·cos θ: one score a patch, one scale for all."""
        _, log_lengths = self._query(pooled)
        return Scaled(np.cos(self.angles(pooled)), (log_lengths + self.log_length).astype(np.float32))

    def top(self, pooled: Scaled, top_k: int) -> Int[np.ndarray, " l"]:
        """The `top_k` patches at the smallest distances, nearest first; among equal ones, the lower index first."""
        require_count("top_k", top_k, most=len(self.words), why=" (the number of patches)")
        return smallest(self.distances(pooled), top_k, len(self.directions))

    def _query(self, pooled: Scaled) -> tuple[np.ndarray, np.ndarray]:
        check_features("pooled", pooled, width=self.directions.shape[1], rows=1)
        if not pooled.values.any():
            raise ValueError("pooled must not be 0, which has no direction")
        return _directions_of(pooled)


def _directions_of(features: Scaled) -> tuple[Float[np.ndarray, "L m"], Float[np.ndarray, " L"]]:
    """A vector along each row, and the log of the row's own length."""
    peak = features.log_scale.max(axis=-1, keepdims=True)
    rows = (features.values * np.exp(features.log_scale - peak)).astype(np.float32, copy=False)
    squares = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)  # with small pooling they underflow in float32
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


@intrinsic
def _popcount(_context, word):
    """The number of 1 bits of a word, as one instruction, which Numba does not offer."""
    return word(word), lambda _context, builder, _signature, arguments: builder.ctpop(arguments[0])


@compiled
def differing_bits(words, query):
    """The Hamming distance of each row of `words` to `query`."""
    distances = np.empty(len(words), np.int32)
    for i in range(len(words)):
        differing = np.uint64(0)
        for j in range(len(query)):
            differing += _popcount(words[i, j] ^ query[j])  # pyright: ignore[reportCallIssue]
        distances[i] = differing
    return distances


@compiled
def smallest(distances, top_k, largest):
    """The indices of the `top_k` smallest distances in order: a counting sort that writes only the selected ones."""
    places = np.zeros(largest + 2, np.int64)
    for distance in distances:
        places[distance + 1] += 1
    places = np.cumsum(places)
    selected = np.empty(top_k, np.int64)
    for i in range(len(distances)):
        place = places[distances[i]]
        if place < top_k:
            selected[place] = i
            places[distances[i]] += 1
    return selected
