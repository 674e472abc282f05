"""The two passes of a fused ranking, pool and score, for each family of features.

Both take queries or keys as (D, L) arrays, times √(log₂ e), with half their squared norms; numbers that could overflow
are kept as values·2^exponents. A pass first trusts an upper bound of its exponents, which costs nothing; only if the
sums then come out so small that terms may have been lost does it look for the true peaks and run again.
"""

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from iap.attention.kernels.loops import (
    extreme_sizes,
    peak_exponents,
    pool_positive,
    pool_relu,
    pool_trigonometric,
    rank_relu,
    score_positive,
    score_relu,
    score_trigonometric,
    times_powers_of_two,
    to_signs_and_exponents,
)

LOG2E = math.log2(math.e)
ROOT = math.sqrt(LOG2E)
TOO_SMALL = 2.0**-60
FAR = np.float32(1e30)
NO_WEIGHTS = np.empty(0, np.float32)


class Binary(NamedTuple):
    """The numbers values·2^exponents; one exponent for all, or one each."""

    values: np.ndarray
    exponents: np.ndarray


ONES = Binary(NO_WEIGHTS, np.zeros(1, np.float32))  # weights that are all 1


@dataclass(frozen=True, eq=False)
class PositiveFeatures:
    """φ = exp(ω·x + bias − ‖x‖²/2): positive, hyperbolic and FAVOR++ features."""

    omega: np.ndarray  # (m, D), times √(log₂ e)
    bias: np.ndarray  # (m,), in powers of two

    @cached_property
    def ceilings(self) -> np.ndarray:
        """What each feature's exponent cannot exceed, whatever x: ‖ω‖²/2 + bias."""
        return self.bias + np.float32(0.5) * np.einsum("md,md->m", self.omega, self.omega)

    def pool(self, x: np.ndarray, half_norms: np.ndarray, weights: Binary = ONES) -> Binary:
        """Σ weight·φ, as signs and exponents, so that features far apart in size all survive."""
        if len(weights.exponents) > 1:
            half_norms = half_norms - weights.exponents
        peaks = self.ceilings
        sums = pool_positive(x, half_norms, self.omega, self.bias - peaks, weights.values)
        signs, exponents, smallest = to_signs_and_exponents(sums, peaks)
        if smallest < TOO_SMALL or len(weights.exponents) > 1:
            if len(weights.values):
                half_norms = np.where(weights.values == 0, FAR, half_norms)  # who has no weight must not set the scale
            peaks, _ = peak_exponents(x, half_norms, self.omega, self.bias)
            sums = pool_positive(x, half_norms, self.omega, self.bias - peaks, weights.values)
            signs, exponents, _ = to_signs_and_exponents(sums, peaks)
        return Binary(signs, exponents + weights.exponents[0] if len(weights.exponents) == 1 else exponents)

    def score(self, x: np.ndarray, half_norms: np.ndarray, pooled: Binary, *, each: bool = False) -> Binary:
        """φ·pooled of each patch; with `each` even the smallest keeps its digits."""
        scores = np.empty_like(half_norms)
        bias = self.bias + pooled.exponents
        peak = (self.ceilings + pooled.exponents).max(keepdims=True)
        score_positive(x, half_norms, self.omega, bias - peak, pooled.values, scores)
        smallest, largest = extreme_sizes(scores)
        if (smallest if each else largest) < TOO_SMALL:
            _, peak = peak_exponents(x, half_norms, self.omega, bias)
            score_positive(x, half_norms + peak, self.omega, bias, pooled.values, scores)
        return Binary(scores, peak)


@dataclass(frozen=True, eq=False)
class TrigonometricFeatures:
    """φ = exp(‖x‖²/2)·(sin ω·x, cos ω·x)."""

    omega: np.ndarray  # (m, D), in turns: over 2π·√(log₂ e)

    def pool(self, x: np.ndarray, half_norms: np.ndarray, weights: Binary = ONES) -> Binary:
        """Σ weight·φ, sines first."""
        exponents = half_norms + weights.exponents
        if len(weights.values):
            exponents = np.where(weights.values == 0, exponents.min(), exponents)
        peak = exponents.max(keepdims=True)
        sizes = np.ones_like(exponents) if len(weights.values) == 0 else weights.values.copy()
        times_powers_of_two(sizes, exponents - peak)
        return Binary(pool_trigonometric(x, self.omega, sizes).astype(np.float32), peak)

    def score(self, x: np.ndarray, half_norms: np.ndarray, pooled: Binary, *, each: bool = False) -> Binary:
        """φ·pooled of each patch."""
        scores = np.empty_like(half_norms)
        score_trigonometric(x, self.omega, pooled.values, scores)
        return Binary(scores, half_norms + pooled.exponents)


@dataclass(frozen=True, eq=False)
class ReLUFeatures:
    """φ = relu(x)."""

    def pool(self, x: np.ndarray, half_norms: np.ndarray, weights: Binary = ONES) -> Binary:
        """Σ weight·φ."""
        return Binary(pool_relu(x, weights.values).astype(np.float32), weights.exponents)

    def score(self, x: np.ndarray, half_norms: np.ndarray, pooled: Binary, *, each: bool = False) -> Binary:
        """φ·pooled of each patch."""
        scores = np.empty(x.shape[1], np.float32)
        score_relu(x, pooled.values, scores)
        return Binary(scores, pooled.exponents)


Features = PositiveFeatures | TrigonometricFeatures | ReLUFeatures


def rank(  # one head
    features: Features,
    queries: tuple[np.ndarray, np.ndarray],
    keys: tuple[np.ndarray, np.ndarray],
    pooling: np.ndarray,
    normalise_rows: bool,
) -> Binary:
    """P·A without the constants of φ, or with rows that sum to one: two more passes of the same kind."""
    if isinstance(features, ReLUFeatures) and not normalise_rows:
        return Binary(*rank_relu(queries[0], keys[0], pooling))
    weights = Binary(pooling, ONES.exponents)
    if normalise_rows:
        sums, exponents = features.score(*queries, features.pool(*keys), each=True)
        shares = np.divide(1, sums, out=np.zeros_like(sums), where=sums != 0)
        weights = Binary(shares * pooling if len(pooling) else shares, -exponents)
    return with_one_exponent(features.score(*keys, features.pool(*queries, weights)))


def with_one_exponent(scores: Binary) -> Binary:
    """The same numbers, the largest of them ±1 before the one exponent (and all 0 if all are)."""
    values, exponents = scores
    common = exponents.max(keepdims=True)
    if len(exponents) > 1:
        times_powers_of_two(values, exponents - common)
    _, largest = extreme_sizes(values)
    if largest == 0:
        return Binary(values, common)
    return Binary(values / np.float32(largest), common + np.float32(math.log2(largest)))
