"""Image → scores in compiled passes on one CPU core, with all that does not depend on the image folded before.

The generic functions are the reference; this is the same mathematics, several times faster. Folded once per parameter
vector: the pixels' and the kernel's scales go into the weights; and positions, which are a code of the row plus a code
of the column, shrink to one share a row and one a column.
"""

import math
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from iap.attention.arrays import Scaled, require_count, require_finite, require_floats
from iap.attention.features import Kernel, ReLU, Softmax, draw_projections, favor_plus_plus_parameter
from iap.attention.kernels.folding import (
    Layer,
    Pixels,
    check_layers,
    copies_of,
    fixed_features,
    floats32,
    largest_square,
    position_shares,
    positive_features,
    stack,
)
from iap.attention.kernels.loops import halve_norms, project_image, put_on_sphere, rank_image_relu
from iap.attention.kernels.passes import LOG2E, NO_WEIGHTS, ROOT, Binary, Features, PositiveFeatures, rank
from iap.attention.patches import IMAGE_AXES, Grid, grid_of
from iap.attention.positions import Positions
from iap.attention.ranking import check_pooling

BYTES = np.dtype(np.uint8)
QUERIES, KEYS = 0, 1  # the two sides of the working memory
UNROLLED_STEP = 16  # up to how many numbers from patch to patch strided reads are compiled for


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
    _bytes: Pixels
    _floats: Pixels
    _column_shares: np.ndarray
    _features: Features | None  # None if they depend on the image, as FAVOR++'s do
    _x: np.ndarray = field(repr=False)
    _half_norms: np.ndarray = field(repr=False)

    def __call__(self, image: np.ndarray, keys: np.ndarray | None = None) -> Scaled:
        """r of each patch, (L,), or (heads, L) if the weights have heads, with one scale each.

        With `keys`, which `keys_of` gave of an image before, those are scored by the queries of this one.
        """
        ranked = self._ranked(image, keys)
        values, log_scales = [r.values for r in ranked], [self._log_scale(r.exponents) for r in ranked]
        if self.heads is None:
            return Scaled(values[0], log_scales[0])
        return Scaled(np.stack(values), np.stack(log_scales))

    def values(self, image: np.ndarray, keys: np.ndarray | None = None) -> np.ndarray:
        """The scores without their scales: enough to tell the better patch, and sooner to be had."""
        ranked = self._ranked(image, keys)
        return ranked[0].values if self.heads is None else np.stack([r.values for r in ranked])

    def keys_of(self, image: np.ndarray) -> np.ndarray:
        """The keys of an image, (heads, D, L), to be stored for later images."""
        self._project(self._check(image), KEYS)
        return self._x[KEYS].copy()

    def _ranked(self, image: np.ndarray, keys: np.ndarray | None) -> list[Binary]:
        if keys is None and self.in_one_go:
            image, arguments = self.prepare(image)
            return [Binary(*rank_image_relu(image, *arguments))]
        image = self._check(image)
        if keys is None:
            self._project(image, QUERIES, KEYS)
        else:
            self._project(image, QUERIES)
            self._recall(keys)
        return [self._rank(head) for head in range(self.heads or 1)]

    def _check(self, image: np.ndarray) -> np.ndarray:
        if isinstance(image, np.ndarray) and image.dtype == BYTES and image.shape == self.image_shape:
            return np.ascontiguousarray(image)
        if not isinstance(image, np.ndarray):
            raise TypeError(f"image must be a NumPy array, not {type(image).__name__}")
        if image.dtype not in (np.uint8, np.float32, np.float64):
            raise TypeError(f"image must be uint8, float32 or float64, not {image.dtype}")
        if image.shape != self.image_shape:
            raise ValueError(f"image must be of shape {self.image_shape}, not {image.shape}")
        image = np.ascontiguousarray(image, np.float32)
        if not float(np.vdot(image, image)) < self._largest_square:
            require_finite("image", image)
            raise ValueError(f"image holds values too large for float32 scores, up to {np.abs(image).max()}")
        return image

    @property
    def in_one_go(self) -> bool:
        """Whether one compiled call does it all: the usual case, in which the calls would take as long as the work."""
        return isinstance(self.kernel, ReLU) and self.heads is None and not self.normalise_rows

    def prepare(self, image: np.ndarray) -> tuple[np.ndarray, tuple[Any, ...]]:
        """The image, checked, and what `rank_image_relu` takes beside it, for who has a loop of his own around that."""
        image = self._check(image)
        return image, self._byte_arguments if image.dtype == BYTES else self._float_arguments

    @cached_property
    def _byte_arguments(self) -> tuple[Any, ...]:
        return self._arguments(self._bytes)

    @cached_property
    def _float_arguments(self) -> tuple[Any, ...]:
        return self._arguments(self._floats)

    def _arguments(self, folded: Pixels) -> tuple[Any, ...]:
        shares, x = (folded.row_shares, self._column_shares), self._x.reshape(-1, self.grid.patches)
        return self.patch, self.stride, self._steps, folded.weights, *shares, x, self._pooling

    @cached_property
    def _steps(self) -> tuple[int, ...]:
        """As many zeros as there are numbers from patch to patch: see `project_image`."""
        step = self.stride * self.image_shape[2]
        return (0,) * step if step <= UNROLLED_STEP else ()

    @cached_property
    def _largest_square(self) -> float:
        """What the squares of a float image may sum up to."""
        return largest_square(self._floats.weights)

    def _project(self, image: np.ndarray, *sides: int) -> None:
        """Fill the working memory of these sides, in order, with the image's queries or keys."""
        folded = self._bytes if image.dtype == BYTES else self._floats
        x = self._x[sides[0] : sides[-1] + 1].reshape(-1, self.grid.patches)
        rows = slice(sides[0] * (len(folded.weights) // 2), (sides[-1] + 1) * (len(folded.weights) // 2))
        shares = folded.row_shares[rows], self._column_shares[rows]
        project_image(image, self.patch, self.stride, self._steps, folded.weights[rows], *shares, x)
        if isinstance(self.kernel, Softmax):
            for side in sides:
                self._measure(side, on_sphere=self.kernel.normalised)

    def _recall(self, keys: np.ndarray) -> None:
        """Fill the working memory with stored keys."""
        if keys.shape != self._x[KEYS].shape:
            raise ValueError(f"keys must be of shape {self._x[KEYS].shape}, as keys_of gives them, not {keys.shape}")
        self._x[KEYS] = keys
        if isinstance(self.kernel, Softmax):
            self._measure(KEYS, on_sphere=False)  # those that belong there have been put there

    def _measure(self, side: int, *, on_sphere: bool) -> None:
        for x, half_norms in zip(self._x[side], self._half_norms[side], strict=True):
            halve_norms(x, half_norms)
            if on_sphere:
                put_on_sphere(x, half_norms, np.float32(ROOT * self.d**0.25))

    def _rank(self, head: int) -> Binary:
        x, half_norms = self._x, self._half_norms
        queries, keys = (x[QUERIES, head], half_norms[QUERIES, head]), (x[KEYS, head], half_norms[KEYS, head])
        features = self._features or self._favor_plus_plus(queries, keys)
        return rank(features, queries, keys, self._pooling, self.normalise_rows)

    def _log_scale(self, exponents: np.ndarray) -> np.ndarray:
        """The scale of what `_rank` gave, with the constants of φ and of the mean."""
        constant = self.grid.patches if self.normalise_rows else self.grid.patches * copies_of(self.kernel)
        return (exponents / LOG2E - math.log(constant)).astype(np.float32)

    def _favor_plus_plus(self, queries: tuple[np.ndarray, ...], keys: tuple[np.ndarray, ...]) -> PositiveFeatures:
        assert isinstance(self.kernel, Softmax)
        x, y = (side[0][: self.d].T / ROOT for side in (queries, keys))
        a = float(favor_plus_plus_parameter(x, y)[0, 0])
        omega = draw_projections(self.kernel.projections, self.d, self.kernel.seed)
        bias = a * np.sum(omega * omega, axis=1) + self.d / 4 * math.log(1 - 4 * a)
        return positive_features(omega * math.sqrt(1 - 4 * a), bias)


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
    heads, d = check_layers(queries, keys, positions.width(pixels))
    if pooling is not None:
        check_pooling(require_floats("pooling", pooling, rank=1), grid.patches)
    weights, biases = stack(kernel, queries, keys)
    row_shares, column_shares = position_shares(weights, pixels, grid, positions)
    row_shares += biases
    seen = weights[:, :pixels]
    if 255.0**2 * pixels > largest_square(seen):
        raise ValueError(f"weights are too large for float32 scores, up to {np.abs(queries.weights).max()}")
    each = (2, heads or 1)  # queries and keys of each head
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
        _bytes=Pixels(floats32(seen / 255), floats32(row_shares - centre * seen.sum(1, keepdims=True))),
        _floats=Pixels(floats32(seen), floats32(row_shares)),
        _column_shares=floats32(column_shares),
        _features=fixed_features(kernel, d),
        _x=np.empty((*each, len(weights) // math.prod(each), grid.patches), np.float32),
        _half_norms=np.empty((*each, grid.patches), np.float32),
    )
