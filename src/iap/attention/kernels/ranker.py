"""Image → scores in one compiled call on one CPU core.

The array-API functions are the reference; this computes the same scores several times faster. Everything that does not
depend on the image is computed once per parameter vector: the scales of pixels and kernel become part of the weights,
and positions, which are a code of the row plus a code of the column, become one share a row and one a column.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float
from numba import typeof

from iap._compile import compiled
from iap.attention.arrays import Scaled, require_count, require_finite, require_floats
from iap.attention.features import Kernel
from iap.attention.kernels.families import LOG2E, measure, measure_stored
from iap.attention.kernels.folding import (
    Features,
    Layer,
    check_layers,
    copies_of,
    floats32,
    kernel_features,
    largest_square,
    position_shares,
    stack,
)
from iap.attention.kernels.heads import rank_head
from iap.attention.kernels.projection import (
    Projection,
    project_keys,
    project_queries,
    project_queries_and_keys,
    unrolled_steps,
)
from iap.attention.patches import IMAGE_AXES, Grid, grid_of
from iap.attention.positions import Positions
from iap.attention.ranking import check_pooling

BYTES = np.dtype(np.uint8)


class RankerArrays(NamedTuple):
    """A ranker for images of one dtype as compiled code takes it.

    `projection.x` and `half_norms` are working memory: two threads must not use the same ranker.
    """

    projection: Projection
    features: Features  # whose class selects the compiled functions
    half_norms: np.ndarray  # (2·heads, L), of queries and then keys
    pooling: np.ndarray  # (L,), or empty for ones
    normalise_rows: bool


@compiled
def score_image(ranker, image):
    """The scores of an image's patches, float32 (L,), the largest magnitude 1 (or all 0), for a ranker of one head."""
    return rank_image(ranker, image)[0][0]


@compiled
def score_image_with_keys(ranker, image, keys):
    """The scores that an image's queries give to stored keys (1, D, L), as `image_keys` returns them."""
    return rank_image_with_keys(ranker, image, keys)[0][0]


@compiled
def image_keys(ranker, image):
    """The keys of an image, (heads, D, L), to be stored for later images."""
    x, heads = ranker.projection.x, ranker.projection.heads
    size = len(x) // (2 * heads)
    project_keys(ranker.projection, image)
    keys = np.empty((heads, size, x.shape[1]), np.float32)
    for head in range(heads):
        own = x[(heads + head) * size : (heads + head + 1) * size]
        measure(ranker.features, own, ranker.half_norms[heads + head])
        keys[head] = own
    return keys


@compiled
def rank_image(ranker, image):
    """Scores of all heads (heads, L), each head's largest magnitude 1, and log₂ of their scales (heads,)."""
    x, heads = ranker.projection.x, ranker.projection.heads
    size = len(x) // (2 * heads)
    project_queries_and_keys(ranker.projection, image)
    for side in range(2 * heads):
        measure(ranker.features, x[side * size : (side + 1) * size], ranker.half_norms[side])
    scores, exponents = np.empty((heads, x.shape[1]), np.float32), np.empty(heads, np.float32)
    for head in range(heads):
        keys = x[(heads + head) * size : (heads + head + 1) * size]
        exponents[head] = _rank_projected(ranker, head, keys, scores[head])
    return scores, exponents


@compiled
def rank_image_with_keys(ranker, image, keys):
    """`rank_image` with stored keys (heads, D, L) in place of the image's own."""
    x, heads = ranker.projection.x, ranker.projection.heads
    size = len(x) // (2 * heads)
    project_queries(ranker.projection, image)
    scores, exponents = np.empty((heads, x.shape[1]), np.float32), np.empty(heads, np.float32)
    for head in range(heads):
        measure(ranker.features, x[head * size : (head + 1) * size], ranker.half_norms[head])
        measure_stored(ranker.features, keys[head], ranker.half_norms[heads + head])
        exponents[head] = _rank_projected(ranker, head, keys[head], scores[head])
    return scores, exponents


@compiled
def _rank_projected(ranker, head, keys, scores):
    """`rank_head` with the queries in the working memory."""
    size, heads = len(keys), ranker.projection.heads
    queries = ranker.projection.x[head * size : (head + 1) * size]
    query_norms, key_norms = ranker.half_norms[head], ranker.half_norms[heads + head]
    pooling, normalise_rows = ranker.pooling, ranker.normalise_rows
    return rank_head(ranker.features, queries, query_norms, keys, key_norms, pooling, normalise_rows, scores)


@dataclass(frozen=True, eq=False)
class Ranker:
    """Scores the patches of an image as `rank_scores` does; made by `compile_ranker`.

    It reuses its working memory from call to call: each thread needs its own.
    """

    kernel: Kernel
    image_shape: tuple[int, int, int]
    patch: int
    stride: int
    grid: Grid
    d: int
    heads: int | None
    normalise_rows: bool
    _bytes: RankerArrays
    _floats: RankerArrays

    def __call__(self, image: np.ndarray, keys: np.ndarray | None = None) -> Scaled:
        """r of each patch, (L,), or (heads, L) if the weights have heads, with one scale each.

        With `keys`, which `keys_of` returned for an earlier image, those are scored by the queries of this image.
        """
        values, exponents = self._rank(image, keys)
        constant = self.grid.patches * (1 if self.normalise_rows else copies_of(self.kernel))
        log_scale = (exponents[:, None] / LOG2E - math.log(constant)).astype(np.float32)
        return Scaled(values[0], log_scale[0]) if self.heads is None else Scaled(values, log_scale)

    def values(self, image: np.ndarray, keys: np.ndarray | None = None) -> np.ndarray:
        """The scores without their scales, which is sufficient to select patches."""
        values, _ = self._rank(image, keys)
        return values[0] if self.heads is None else values

    def keys_of(self, image: np.ndarray) -> np.ndarray:
        """The keys of an image, (heads, D, L), to be stored for later images."""
        image = self.check(image)
        return image_keys(self.arrays(image.dtype), image)

    def arrays(self, dtype: Any) -> RankerArrays:
        """The ranker for images of one dtype, uint8 or float32, as compiled code takes it."""
        dtype = np.dtype(dtype)
        if dtype == BYTES:
            return self._bytes
        if dtype == np.float32:
            return self._floats
        raise TypeError(f"dtype must be uint8 or float32, not {dtype}")

    def check(self, image: np.ndarray) -> np.ndarray:
        """`image` as compiled code takes it: of this ranker's shape, contiguous, uint8 or finite float32."""
        if not isinstance(image, np.ndarray):
            raise TypeError(f"image must be a NumPy array, not {type(image).__name__}")
        if image.dtype == BYTES and image.shape == self.image_shape:
            return np.ascontiguousarray(image)
        if image.dtype not in (np.uint8, np.float32, np.float64):
            raise TypeError(f"image must be uint8, float32 or float64, not {image.dtype}")
        if image.shape != self.image_shape:
            raise ValueError(f"image must be of shape {self.image_shape}, not {image.shape}")
        image = np.ascontiguousarray(image, np.float32)
        if not float(np.vdot(image, image)) < self._largest_square:
            require_finite("image", image)
            raise ValueError(f"image holds values too large for float32 scores, up to {np.abs(image).max()}")
        return image

    def _rank(self, image: np.ndarray, keys: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        image = self.check(image)
        if keys is None:
            return (
                self._rank_bytes(self._bytes, image) if image.dtype == BYTES else self._rank_floats(self._floats, image)
            )
        wanted = self.heads or 1, len(self._bytes.projection.x) // (2 * (self.heads or 1)), self.grid.patches
        if keys.shape != wanted:
            raise ValueError(f"keys must be of shape {wanted}, as keys_of gives them, not {keys.shape}")
        return rank_image_with_keys(self.arrays(image.dtype), image, floats32(keys))

    @cached_property
    def _rank_bytes(self) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
        return specialised(rank_image, self._bytes, np.empty(self.image_shape, np.uint8))

    @cached_property
    def _rank_floats(self) -> Callable[..., tuple[np.ndarray, np.ndarray]]:
        return specialised(rank_image, self._floats, np.empty(self.image_shape, np.float32))

    @cached_property
    def _largest_square(self) -> float:
        """The limit on the sum of squares of a float image."""
        return largest_square(self._floats.projection.weights)


def specialised(function: Any, *examples: Any) -> Callable[..., Any]:
    """The entry point of a compiled function for arguments of these types.

    A call of it skips the lookup of the argument types, which takes 2 µs for a NamedTuple of arrays. It does not check
    them either: later arguments must have the same types.
    """
    signature = tuple(typeof(example) for example in examples)
    function.compile(signature)
    return function.get_overload(signature)


def compile_ranker(
    kernel: Kernel,
    queries: Layer,
    keys: Layer,
    image_shape: tuple[int, int, int],
    *,
    patch: int,
    stride: int,
    positions: Positions = Positions(),
    centre: float = 0.5,
    pooling: Float[np.ndarray, " L"] | None = None,
    normalise_rows: bool = False,
) -> Ranker:
    """A ranker of images of one shape by one set of parameters: `as_pixels`, `place`, `project` and `rank_scores`."""
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
    pixel_weights = weights[:, :pixels]
    if 255.0**2 * pixels > largest_square(pixel_weights):
        raise ValueError(f"weights are too large for float32 scores, up to {np.abs(queries.weights).max()}")
    floats = RankerArrays(
        Projection(
            patch,
            stride,
            unrolled_steps(stride * channels),
            heads or 1,
            floats32(pixel_weights),
            floats32(row_shares),
            floats32(column_shares),
            np.empty((len(weights), grid.patches), np.float32),
        ),
        kernel_features(kernel, d),
        np.empty((2 * (heads or 1), grid.patches), np.float32),
        floats32(np.empty(0) if pooling is None else pooling),
        normalise_rows,
    )
    of_bytes = floats.projection._replace(
        weights=floats32(pixel_weights / 255),
        row_shares=floats32(row_shares - centre * pixel_weights.sum(1, keepdims=True)),
    )
    shape = height, width, channels
    return Ranker(
        kernel, shape, patch, stride, grid, d, heads, normalise_rows, floats._replace(projection=of_bytes), floats
    )
