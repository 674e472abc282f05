"""FAVOR++, compiled: positive features whose ω and bias depend on the queries and keys of an image."""

import math
from typing import Any, NamedTuple

import numpy as np

from iap._compile import compiled, implements
from iap.attention.kernels.families import (
    LOG2E,
    ROOT,
    adapt,
    measure,
    measure_softmax,
    measure_stored,
    measure_stored_softmax,
)
from iap.attention.kernels.features import half_norms, kernel_inputs, products, put_features
from iap.attention.kernels.positive import PositiveFeatures
from iap.attention.kernels.projection import FAST


class FavorFeatures(NamedTuple):
    """FAVOR++: ω and bias of positive features depend on the image's queries and keys."""

    radius: np.float32  # of the sphere of a normalised kernel; else 0
    omega: np.ndarray  # (m, D)
    squares: np.ndarray  # (m,), ‖ω‖²
    d: int  # dimensions without padding


class FavorMap(NamedTuple):
    """FAVOR++: exp(A‖ω‖² + B·ω·x − ‖x‖²/2), with A from the mean squared length of query + key."""

    omega: Any
    on_sphere: Any


implements(measure, FavorFeatures)(measure_softmax)
implements(measure_stored, FavorFeatures)(measure_stored_softmax)


@implements(adapt, FavorFeatures)
@compiled
def _adapt_favor(features, queries, query_norms, keys, key_norms):
    """Positive features with ω·√(1 − 4A) and bias A‖ω‖² + d/4·log(1 − 4A)."""
    s = mean_squared_length(queries, query_norms, keys, key_norms) / LOG2E
    spread, shifts = favor_constants(features.squares, s, features.d)
    omega, bias, ceilings = (  # of the same types as those of fixed features
        np.empty_like(features.omega),
        np.empty_like(features.squares),
        np.empty_like(features.squares),
    )
    omega[:] = ROOT * math.sqrt(spread) * features.omega
    bias[:] = LOG2E * shifts
    ceilings[:] = bias + 0.5 * LOG2E * spread * features.squares
    return PositiveFeatures(features.radius, omega, bias, ceilings)


@implements(put_features, FavorMap)
@compiled
def _favor_features(feature_map, queries, keys):
    x, y = kernel_inputs(queries, feature_map.on_sphere), kernel_inputs(keys, feature_map.on_sphere)
    x_norms, y_norms, m = half_norms(x), half_norms(y), len(feature_map.omega)
    squares = np.empty(m)
    for f in range(m):
        squares[f] = np.sum(feature_map.omega[f] ** 2)
    spread, shifts = favor_constants(squares, mean_squared_length(x, x_norms[0], y, y_norms[0]), len(x))
    shift = shifts.reshape(m, 1)
    b, size = math.sqrt(spread), 1 / math.sqrt(m)
    q = b * products(feature_map.omega, x) - x_norms + shift
    k = b * products(feature_map.omega, y) - y_norms + shift
    return np.full(q.shape, size), q, np.full(k.shape, size), k


@compiled
def mean_squared_length(x, x_half_norms, y, y_half_norms):
    """The mean of ‖x + y‖² over all pairs of columns."""
    s = 0.0
    for e in range(len(x)):
        s += 2 * _mean(x[e]) * _mean(y[e])
    return max(0.0, s + 2 * (_mean(x_half_norms) + _mean(y_half_norms)))


@compiled
def favor_constants(squares, s, d):
    """FAVOR++'s 1 − 4A, and A‖ω‖² + d/4·log(1 − 4A) of each ω, as in `features.favor_plus_plus_parameter`.

    Args:
        squares: ‖ω‖², (m,).
        s: the mean squared length of query + key.
        d: their dimension.
    """
    t = 2 * s + d
    rho = 2 * d / (t * (1 + math.sqrt(1 + 8 * (d / t) * (s / t))))
    a = (1 - 1 / rho) / 8
    spread = 1 - 4 * a
    shifts = np.empty(len(squares))
    for f in range(len(squares)):
        shifts[f] = a * squares[f] + d / 4 * math.log(spread)
    return spread, shifts


@compiled(fastmath=FAST)
def _mean(values):
    total = 0.0
    for j in range(len(values)):
        total += values[j]
    return total / len(values)
