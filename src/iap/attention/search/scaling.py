"""Checks and scales of key and query features, shared by the databases."""

import math

import numpy as np
from jaxtyping import Float

from iap.attention.arrays import Scaled
from iap.attention.ranking import per_feature


def check_features(
    name: str, features: Scaled, *, width: int | None = None, rows: int | None = None, least: float = -math.inf
) -> tuple[int, int]:
    """The numbers of rows and features of a finite array (rows, width) with no value below `least`."""
    for x in features:
        if not isinstance(x, np.ndarray) or x.dtype not in (np.float32, np.float64):
            found = x.dtype if isinstance(x, np.ndarray) else type(x).__name__
            raise TypeError(f"{name} must be float32 (or float64) NumPy arrays, not {found}")
        if not np.isfinite(x).all():
            raise ValueError(f"{name} must be finite, but holds NaN or infinity")
    shape = np.broadcast(features.values, features.log_scale).shape
    if len(shape) != 2 or 0 in shape or shape != (rows or shape[0], width or shape[1]):  # noqa: PLR2004
        raise ValueError(f"{name} must be of shape ({rows or 'L'}, {width or 'm'}), not {shape}")
    if features.values.min() < least:
        raise ValueError(f"{name} must not be negative to draw by scores, but one is {features.values.min()}")
    return shape[0], shape[1]


def scale_columns(keys: Scaled, out: Float[np.ndarray, "L m"]) -> Float[np.ndarray, " m"]:
    """Write each feature, divided by its largest magnitude over all keys, to `out`; return the logs of the divisors.

    The log is −∞ for a feature that is 0 for all keys.
    """
    values, peak = per_feature(keys)
    sizes = np.max(np.abs(values), axis=0)
    zero = sizes == 0
    sizes[zero] = 1
    np.divide(values, sizes, out=out, casting="same_kind")
    return np.where(zero, -np.inf, np.log(sizes, dtype=np.float64) + peak[0])


def weigh(
    pooled: Scaled, log_scale: Float[np.ndarray, " m"], least: float = -math.inf
) -> tuple[Float[np.ndarray, " m"], float]:
    """The weight of each scaled key feature, the largest magnitude 1, and the log of the common divisor.

    The scales of keys and queries may exceed the range of float32, so they are added as logs; in float64, since an
    error of a log is a relative error of the weight.
    """
    check_features("pooled", pooled, width=len(log_scale), rows=1, least=least)
    values = np.broadcast_to(pooled.values[0], log_scale.shape).astype(np.float64)
    nonzero = (values != 0) & np.isfinite(log_scale)
    if not nonzero.any():
        return np.zeros(len(values), np.float32), 0.0
    logs = np.log(np.abs(values), out=np.full(len(values), -np.inf), where=nonzero) + pooled.log_scale[0] + log_scale
    peak = float(logs.max())
    return (np.sign(values) * np.exp(logs - peak)).astype(np.float32), peak
