"""Image → scores in compiled passes on one CPU core, with all that does not depend on the image folded before.

The generic functions are the reference; this is the same mathematics, several times faster. Folded once per parameter
vector: the pixels' and the kernel's scales go into the weights; and positions, which are a code of the row plus a code
of the column, shrink to one share a row and one a column.
"""

import math
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from iap.attention.arrays import Scaled, require_count, require_finite, require_floats
from iap.attention.features import Kernel, ReLU, Softmax, draw_projections, favor_plus_plus_parameter
from iap.attention.fused_loops import halve_norms, project_image, put_on_sphere
from iap.attention.fused_passes import (
    LOG2E,
    NO_WEIGHTS,
    ROOT,
    Features,
    PositiveFeatures,
    ReLUFeatures,
    TrigonometricFeatures,
    rank,
)
from iap.attention.patches import IMAGE_AXES, Grid, grid_of
from iap.attention.positions import Positions, axis_codes
from iap.attention.ranking import check_pooling

LANES = 4  # dimensions are padded to multiples of this, for the compiled loops
LARGEST_SQUARE = 1e36  # of anything on the way, well below where float32 overflows
UNROLLED_STEP = 16  # up to how many numbers from patch to patch strided reads are compiled for


class Layer(NamedTuple):
    """A learnt projection: weights (c, d), or (heads, c, d), and a bias (d,), or (heads, 1, d)."""

    weights: np.ndarray
    bias: np.ndarray | None = None


class _Pixels(NamedTuple):
    """What images of one dtype need: x = weights·patch + row share + column share."""

    weights: np.ndarray  # (groups·D, c): queries and keys of each head in turn
    row_shares: np.ndarray  # (groups·D, rows)


@dataclass(frozen=True, eq=False)
class FusedRanker:
    """Scores the patches of an image as `rank_scores` does; made by `fold`, called with an image.

    It reuses its working memory from call to call: give each thread its own.
    """

    kernel: Kernel
    image_shape: tuple[int, int, int]
    patch: int
    stride: int
    grid: Grid
    d: int
    heads: int | None
    normalise_rows: bool
    _pooling: np.ndarray
    _bytes: _Pixels
    _floats: _Pixels
    _column_shares: np.ndarray
    _features: Features | None  # None if they depend on the image, as FAVOR++'s do
    _x: np.ndarray = field(repr=False)
    _half_norms: np.ndarray = field(repr=False)

    def __call__(self, image: np.ndarray) -> Scaled:
        """r of each patch, (L,), or (heads, L) if the weights have heads, with one scale each."""
        image = self._check(image)
        self._project(image)
        groups = list(zip(self._x, self._half_norms, strict=True))
        ranked = [self._rank(queries, keys) for queries, keys in zip(groups[::2], groups[1::2], strict=True)]
        if self.heads is None:
            return ranked[0]
        return Scaled(np.stack([r.values for r in ranked]), np.stack([r.log_scale for r in ranked]))

    def _check(self, image: np.ndarray) -> np.ndarray:
        if not isinstance(image, np.ndarray):
            raise TypeError(f"image must be a NumPy array, not {type(image).__name__}")
        if image.dtype not in (np.uint8, np.float32, np.float64):
            raise TypeError(f"image must be uint8, float32 or float64, not {image.dtype}")
        if image.shape != self.image_shape:
            raise ValueError(f"image must be of shape {self.image_shape}, not {image.shape}")
        if image.dtype == np.uint8:
            return np.ascontiguousarray(image)
        image = np.ascontiguousarray(image, np.float32)
        if not float(np.vdot(image, image)) < _largest_square(self._floats.weights):
            require_finite("image", image)
            raise ValueError(f"image holds values too large for float32 scores, up to {np.abs(image).max()}")
        return image

    def _project(self, image: np.ndarray) -> None:
        folded = self._bytes if image.dtype == np.uint8 else self._floats
        step = self.stride * image.shape[2]
        steps = (0,) * step if step <= UNROLLED_STEP else ()
        flat = self._x.reshape(-1, self.grid.patches)
        project_image(
            image, self.patch, self.stride, steps, folded.weights, folded.row_shares, self._column_shares, flat
        )
        if isinstance(self.kernel, Softmax):
            for x, half_norms in zip(self._x, self._half_norms, strict=True):
                halve_norms(x, half_norms)
                if self.kernel.normalised:
                    put_on_sphere(x, half_norms, np.float32(ROOT * self.d**0.25))

    def _rank(self, queries: tuple[np.ndarray, np.ndarray], keys: tuple[np.ndarray, np.ndarray]) -> Scaled:
        features = self._features or self._favor_plus_plus(queries, keys)
        scores = rank(features, queries, keys, self._pooling, self.normalise_rows)
        constant = self.grid.patches if self.normalise_rows else self.grid.patches * _copies(self.kernel)
        log_scale = scores.exponents / LOG2E - math.log(constant)
        return Scaled(scores.values, log_scale.astype(np.float32))

    def _favor_plus_plus(self, queries: tuple[np.ndarray, ...], keys: tuple[np.ndarray, ...]) -> PositiveFeatures:
        assert isinstance(self.kernel, Softmax)
        x, y = (side[0][: self.d].T / ROOT for side in (queries, keys))
        a = float(favor_plus_plus_parameter(x, y)[0, 0])
        omega = draw_projections(self.kernel.projections, self.d, self.kernel.seed)
        bias = a * np.sum(omega * omega, axis=1) + self.d / 4 * math.log(1 - 4 * a)
        return _positive(omega * math.sqrt(1 - 4 * a), bias)


def fold(
    kernel: Kernel,
    queries: Layer,
    keys: Layer,
    image_shape: tuple[int, int, int],
    *,
    patch: int,
    stride: int,
    positions: Positions = Positions(),
    centre: float = 0.5,
    pooling: np.ndarray | None = None,
    normalise_rows: bool = False,
) -> FusedRanker:
    """A ranker of images of one shape by one set of parameters, for `as_pixels`, `place` and `rank_scores` in one."""
    if len(image_shape) != IMAGE_AXES:
        raise ValueError(f"image_shape must be (height, width, channels), not {image_shape}")
    height, width, channels = (require_count("image_shape", n) for n in image_shape)
    grid = grid_of(height, width, patch, stride)
    pixels = patch * patch * channels
    heads, d = _check_layers(queries, keys, positions.width(pixels))
    if pooling is not None:
        check_pooling(require_floats("pooling", pooling, rank=1), grid.patches)
    weights, biases = _stack(kernel, queries, keys)
    row_shares, column_shares = _shares(weights, pixels, grid, positions)
    row_shares += biases
    seen = weights[:, :pixels]
    if 255.0**2 * pixels > _largest_square(seen):
        raise ValueError(f"weights are too large for float32 scores, up to {np.abs(queries.weights).max()}")
    groups = 2 * (heads or 1)
    return FusedRanker(
        kernel=kernel,
        image_shape=(height, width, channels),
        patch=patch,
        stride=stride,
        grid=grid,
        d=d,
        heads=heads,
        normalise_rows=normalise_rows,
        _pooling=NO_WEIGHTS if pooling is None else np.ascontiguousarray(pooling, np.float32),
        _bytes=_Pixels(_floats32(seen / 255), _floats32(row_shares - centre * seen.sum(1, keepdims=True))),
        _floats=_Pixels(_floats32(seen), _floats32(row_shares)),
        _column_shares=_floats32(column_shares),
        _features=_fixed_features(kernel, d),
        _x=np.empty((groups, len(weights) // groups, grid.patches), np.float32),
        _half_norms=np.empty((groups, grid.patches), np.float32),
    )


def _check_layers(queries: Layer, keys: Layer, width: int) -> tuple[int | None, int]:
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


def _stack(kernel: Kernel, queries: Layer, keys: Layer) -> tuple[np.ndarray, np.ndarray]:
    """Weights (groups·D, e) and biases (groups·D, 1) of all queries and keys, with the kernel's scale in them."""
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
    return np.stack(weights, axis=1).reshape(-1, width), np.stack(biases, axis=1).reshape(-1, 1)


def _shares(weights: np.ndarray, pixels: int, grid: Grid, positions: Positions) -> tuple[np.ndarray, np.ndarray]:
    """W·position as one share a row of patches and one a column, (groups·D, rows) and (groups·D, columns)."""
    if positions.mode == "none":
        return np.zeros((len(weights), grid.rows)), np.zeros((len(weights), grid.columns))
    placing = positions.scale * (weights[:, pixels:] if positions.mode == "concat" else weights)
    rows, columns = axis_codes(grid, placing.shape[1])
    return placing @ rows.T, placing @ columns.T


def _fixed_features(kernel: Kernel, d: int) -> Features | None:
    if isinstance(kernel, ReLU):
        return ReLUFeatures()
    omega = draw_projections(kernel.projections, d, kernel.seed)
    match kernel.features:
        case "positive":
            return _positive(omega)
        case "hyperbolic":
            return _positive(np.concatenate([omega, -omega]))
        case "trigonometric":
            return TrigonometricFeatures(_padded(omega / (2 * math.pi * ROOT)))
        case "favor++":
            return None


def _positive(omega: np.ndarray, bias: np.ndarray | float = 0.0) -> PositiveFeatures:
    return PositiveFeatures(_padded(ROOT * omega), _floats32(np.broadcast_to(LOG2E * bias, len(omega))))


def _copies(kernel: Kernel) -> int:
    """How many features share one estimate, 1/√ of which each feature carries."""
    if isinstance(kernel, ReLU):
        return 1
    return kernel.projections * (2 if kernel.features == "hyperbolic" else 1)


def _largest_square(weights: np.ndarray) -> float:
    """The sum of squares that an image may have without ‖x‖² coming near float32's end."""
    return LARGEST_SQUARE / max(1.0, float(np.sum(weights.astype(np.float64) ** 2)))


def _padded(omega: np.ndarray) -> np.ndarray:
    return _floats32(np.pad(omega, ((0, 0), (0, -omega.shape[1] % LANES))))


def _floats32(x: np.ndarray) -> np.ndarray:
    return np.ascontiguousarray(x, np.float32)
