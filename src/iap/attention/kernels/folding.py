"""What does not depend on the image, folded into numbers before: weights, positions' shares, features."""

import math
from typing import NamedTuple

import numpy as np

from iap.attention.arrays import require_finite, require_floats
from iap.attention.features import Kernel, ReLU, draw_projections
from iap.attention.kernels.passes import LOG2E, ROOT, Features, PositiveFeatures, ReLUFeatures, TrigonometricFeatures
from iap.attention.patches import Grid
from iap.attention.positions import Positions, axis_codes

LANES = 4  # dimensions are padded to multiples of this, for the compiled loops
LARGEST_SQUARE = 1e36  # of anything on the way, well below where float32 overflows


class Layer(NamedTuple):
    """A learnt projection: weights (c, d), or (heads, c, d), and a bias (d,), or (heads, 1, d)."""

    weights: np.ndarray
    bias: np.ndarray | None = None


class Pixels(NamedTuple):
    """What images of one dtype need: x = weights·patch + row share + column share."""

    weights: np.ndarray  # (2·heads·D, c): queries of all heads, then keys
    row_shares: np.ndarray  # (2·heads·D, rows)


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
    """Weights (2·heads·D, e) and biases (2·heads·D, 1), queries before keys, with the kernel's scale in them."""
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
    """W·position as one share a row of patches and one a column, (2·heads·D, rows) and (…, columns)."""
    if positions.mode == "none":
        return np.zeros((len(weights), grid.rows)), np.zeros((len(weights), grid.columns))
    placing = positions.scale * (weights[:, pixels:] if positions.mode == "concat" else weights)
    rows, columns = axis_codes(grid, placing.shape[1])
    return placing @ rows.T, placing @ columns.T


def fixed_features(kernel: Kernel, d: int) -> Features | None:
    """The kernel's features; None if they depend on the image."""
    if isinstance(kernel, ReLU):
        return ReLUFeatures()
    omega = draw_projections(kernel.projections, d, kernel.seed)
    match kernel.features:
        case "positive":
            return positive_features(omega)
        case "hyperbolic":
            return positive_features(np.concatenate([omega, -omega]))
        case "trigonometric":
            return TrigonometricFeatures(_padded(omega / (2 * math.pi * ROOT)))
        case "favor++":
            return None


def positive_features(omega: np.ndarray, bias: np.ndarray | float = 0.0) -> PositiveFeatures:
    """exp(omega·x + bias), in powers of two."""
    return PositiveFeatures(_padded(ROOT * omega), floats32(np.broadcast_to(LOG2E * bias, len(omega))))


def copies_of(kernel: Kernel) -> int:
    """How many features share one estimate, 1/√ of which each feature carries."""
    if isinstance(kernel, ReLU):
        return 1
    return kernel.projections * (2 if kernel.features == "hyperbolic" else 1)


def largest_square(weights: np.ndarray) -> float:
    """The sum of squares that an image may have without ‖x‖² coming near float32's end."""
    return LARGEST_SQUARE / max(1.0, float(np.sum(weights.astype(np.float64) ** 2)))


def _padded(omega: np.ndarray) -> np.ndarray:
    return floats32(np.pad(omega, ((0, 0), (0, -omega.shape[1] % LANES))))


def floats32(x: np.ndarray) -> np.ndarray:
    """As the compiled loops want it."""
    return np.ascontiguousarray(x, np.float32)
