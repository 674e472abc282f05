"""The arrays of compiled attention that do not depend on the image: weights, position shares, features."""

import math
from typing import NamedTuple

import numpy as np

from iap.attention.arrays import require_finite, require_floats
from iap.attention.features import Kernel, ReLU, draw_projections
from iap.attention.kernels.families import ROOT
from iap.attention.kernels.favor import FavorFeatures, FavorMap
from iap.attention.kernels.features import PositiveMap, ReLUMap, TrigonometricMap
from iap.attention.kernels.positive import PositiveFeatures
from iap.attention.kernels.relu import ReLUFeatures
from iap.attention.kernels.trigonometric import TrigonometricFeatures
from iap.attention.patches import Grid
from iap.attention.positions import Positions, axis_codes

LANES = 4  # dimensions are padded to a multiple of this, which the compiled loops require
LARGEST_SQUARE = 1e36  # of any intermediate result: well below the largest float32

Features = ReLUFeatures | PositiveFeatures | FavorFeatures | TrigonometricFeatures
FeatureMap = ReLUMap | PositiveMap | FavorMap | TrigonometricMap


class Layer(NamedTuple):
    """A learnt projection: weights (c, d), or (heads, c, d), and a bias (d,), or (heads, 1, d)."""

    weights: np.ndarray
    bias: np.ndarray | None = None


def check_layers(queries: Layer, keys: Layer, width: int) -> tuple[int | None, int]:
    """The number of heads (None without a head axis) and of dimensions, d."""
    for name, layer in (("queries", queries), ("keys", keys)):
        require_finite(f"{name}.weights", require_floats(f"{name}.weights", layer.weights))
        if layer.bias is not None:
            require_finite(f"{name}.bias", require_floats(f"{name}.bias", layer.bias))
        if layer.weights.ndim not in (2, 3) or layer.weights.shape[-2] != width:
            wanted = f"({width}, d) or (heads, {width}, d)"
            raise ValueError(f"{name}.weights must be {wanted} for these patches, not {layer.weights.shape}")
    if queries.weights.shape != keys.weights.shape:
        raise ValueError(f"queries and keys differ in shape: {queries.weights.shape} and {keys.weights.shape}")
    *heads, _, d = queries.weights.shape
    return (heads[0] if heads else None), d


def stack(kernel: Kernel, queries: Layer, keys: Layer) -> tuple[np.ndarray, np.ndarray]:
    """Weights (2·heads·D, e) and biases (2·heads·D, 1), queries before keys, times the kernel's scale."""
    d = queries.weights.shape[-1]
    scale = 1.0 if isinstance(kernel, ReLU) else ROOT * d**-0.25
    padding = -d % LANES
    weights, biases = [], []
    for layer in (queries, keys):
        w = np.atleast_3d(layer.weights.T).T.astype(np.float64)  # (heads, e, d)
        b = np.zeros((len(w), 1, d)) if layer.bias is None else np.broadcast_to(layer.bias, (len(w), 1, d))
        weights.append(np.pad(scale * w, ((0, 0), (0, 0), (0, padding))).swapaxes(1, 2))
        biases.append(np.pad(scale * b, ((0, 0), (0, 0), (0, padding))).swapaxes(1, 2))
    width = weights[0].shape[-1]
    return np.concatenate(weights).reshape(-1, width), np.concatenate(biases).reshape(-1, 1)


def position_shares(
    weights: np.ndarray, pixels: int, grid: Grid, positions: Positions
) -> tuple[np.ndarray, np.ndarray]:
    """W·position, split into shares of rows and columns of patches: (2·heads·D, rows) and (2·heads·D, columns)."""
    if positions.mode == "none":
        return np.zeros((len(weights), grid.rows)), np.zeros((len(weights), grid.columns))
    placing = positions.scale * (weights[:, pixels:] if positions.mode == "concat" else weights)
    rows, columns = axis_codes(grid, placing.shape[1])
    return placing @ rows.T, placing @ columns.T


def kernel_features(kernel: Kernel, d: int) -> Features:
    """The feature family of a kernel."""
    if isinstance(kernel, ReLU):
        return ReLUFeatures()
    omega = draw_projections(kernel.projections, d, kernel.seed)
    radius = np.float32(ROOT * d**0.25 if kernel.normalised else 0)
    match kernel.features:
        case "positive":
            return _positive_features(radius, omega)
        case "hyperbolic":
            return _positive_features(radius, np.concatenate([omega, -omega]))
        case "trigonometric":
            return TrigonometricFeatures(radius, _padded(omega / (2 * math.pi * ROOT)))
        case "favor++":
            return FavorFeatures(radius, _padded(omega), np.einsum("md,md->m", omega, omega), d)


def _positive_features(radius: np.float32, omega: np.ndarray) -> PositiveFeatures:
    omega = _padded(ROOT * omega)
    ceilings = np.float32(0.5) * np.einsum("md,md->m", omega, omega)
    return PositiveFeatures(radius, omega, np.zeros(len(omega), np.float32), ceilings)


def compile_features(kernel: Kernel, d: int) -> FeatureMap:
    """The feature map of a kernel for `put_features`; constant factors, which cancel in normalised rows, included."""
    if isinstance(kernel, ReLU):
        return ReLUMap(0)
    omega = draw_projections(kernel.projections, d, kernel.seed).astype(np.float64)
    match kernel.features:
        case "positive":
            return PositiveMap(omega, kernel.normalised)
        case "hyperbolic":
            return PositiveMap(np.concatenate([omega, -omega]), kernel.normalised)
        case "trigonometric":
            return TrigonometricMap(omega, kernel.normalised)
        case "favor++":
            return FavorMap(omega, kernel.normalised)


def copies_of(kernel: Kernel) -> int:
    """n, if each feature has the factor 1/√n, which the compiled features leave out."""
    if isinstance(kernel, ReLU):
        return 1
    return kernel.projections * (2 if kernel.features == "hyperbolic" else 1)


def largest_square(weights: np.ndarray) -> float:
    """The largest sum of squares of an image for which ‖x‖² is far from overflow in float32."""
    return LARGEST_SQUARE / max(1.0, float(np.sum(weights.astype(np.float64) ** 2)))


def _padded(omega: np.ndarray) -> np.ndarray:
    return floats32(np.pad(omega, ((0, 0), (0, -omega.shape[1] % LANES))))


def floats32(x: np.ndarray) -> np.ndarray:
    """`x` as compiled code takes it: contiguous float32."""
    return np.ascontiguousarray(x, np.float32)
