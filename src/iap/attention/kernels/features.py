"""The feature maps φ of queries and keys of one image, compiled: for encoders that need the features themselves."""

import math
from typing import Any, NamedTuple

import numpy as np

from iap._compile import compiled, dispatched, implements


class ReLUMap(NamedTuple):
    """φ = relu(x)."""

    nothing: Any


class PositiveMap(NamedTuple):
    """φ = exp(ω·x − ‖x‖²/2), of u/d^¼ or of d^¼·u/‖u‖."""

    omega: Any
    on_sphere: Any


class TrigonometricMap(NamedTuple):
    """φ = exp(‖x‖²/2)·(sin ω·x, cos ω·x)."""

    omega: Any
    on_sphere: Any


@dispatched
def put_features(feature_map, queries, keys) -> Any:
    """Compiled code: φ of queries and keys, both (d, L), as values and logs of scales, each (features, L)."""


@implements(put_features, ReLUMap)
@compiled
def _relu_features(feature_map, queries, keys):
    zero = np.zeros(queries.shape)
    return np.maximum(queries, np.float32(0)) + zero, zero, np.maximum(keys, np.float32(0)) + zero, zero


@implements(put_features, PositiveMap)
@compiled
def _positive_features(feature_map, queries, keys):
    x, y = kernel_inputs(queries, feature_map.on_sphere), kernel_inputs(keys, feature_map.on_sphere)
    size = 1 / math.sqrt(len(feature_map.omega))
    shape = (len(feature_map.omega), queries.shape[1])
    q, k = products(feature_map.omega, x), products(feature_map.omega, y)
    return np.full(shape, size), q - half_norms(x), np.full(shape, size), k - half_norms(y)


@implements(put_features, TrigonometricMap)
@compiled
def _trigonometric_features(feature_map, queries, keys):
    x, y = kernel_inputs(queries, feature_map.on_sphere), kernel_inputs(keys, feature_map.on_sphere)
    return (*_waves(feature_map.omega, x), *_waves(feature_map.omega, y))


@compiled
def kernel_inputs(u, on_sphere):
    """The x of exp(x·y): u/d^¼, or d^¼·u/‖u‖ (and 0 where u is 0), in float64."""
    quarter = len(u) ** 0.25
    x = u.astype(np.float64)
    if not on_sphere:
        return x / quarter
    for j in range(x.shape[1]):
        squared = 0.0
        for e in range(len(x)):
            squared += x[e, j] * x[e, j]
        scale = quarter / math.sqrt(squared) if squared > 0 else 0.0
        for e in range(len(x)):
            x[e, j] *= scale
    return x


@compiled
def products(omega, x):
    """ω·x of each projection and patch."""
    out = np.zeros((len(omega), x.shape[1]))
    for f in range(len(omega)):
        for e in range(len(x)):
            for j in range(x.shape[1]):
                out[f, j] += omega[f, e] * x[e, j]
    return out


@compiled
def half_norms(x):
    """‖x‖²/2 of each patch, (1, L)."""
    out = np.zeros((1, x.shape[1]))
    for e in range(len(x)):
        for j in range(x.shape[1]):
            out[0, j] += 0.5 * x[e, j] * x[e, j]
    return out


@compiled
def _waves(omega, x):
    """Sines, then cosines, of ω·x over √m, and the logs of their scales."""
    angles, m = products(omega, x), len(omega)
    values = np.concatenate((np.sin(angles), np.cos(angles))) / math.sqrt(m)
    return values, np.zeros(values.shape) + half_norms(x)
