"""Image → patches: the matrix X with one vectorised patch a row."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from iap._validation import require_count
from iap.attention.arrays import Array, namespace

IMAGE_AXES = 3


class Grid(NamedTuple):
    """The numbers of rows and columns of patches of an image."""

    rows: int
    columns: int

    @property
    def patches(self) -> int:
        """L, the number of patches."""
        return self.rows * self.columns


def grid_of(height: int, width: int, patch: int, stride: int) -> Grid:
    """The grid of patches of `patch`×`patch` pixels, one every `stride` pixels; incomplete patches are left out."""
    require_count("height", height)
    require_count("width", width)
    require_count("patch", patch, most=min(height, width), why=f" (the image is {height}×{width})")
    require_count("stride", stride)
    return Grid((height - patch) // stride + 1, (width - patch) // stride + 1)


def centres_of(grid: Grid, patch: int, stride: int) -> np.ndarray:
    """The (row, column) of each patch's centre in pixels, (L, 2) float32, in image order."""
    middle = (patch - 1) / 2
    rows, columns = np.indices(grid, dtype=np.float32).reshape(2, -1) * stride + middle
    return np.stack([rows, columns], axis=-1).astype(np.float32)


def as_pixels(image: Array, centre: float = 0.5) -> Array:
    """Pixels as floats: uint8 0..255 becomes float32 0..1 minus `centre`; float images are returned unchanged."""
    xp = namespace(image=image)
    if image.dtype == xp.uint8:
        return xp.astype(image, xp.float32) / 255 - centre
    if image.dtype in (xp.float32, xp.float64):
        return image
    raise TypeError(f"image must be uint8, float32 or float64, not {image.dtype}")


def extract(image: Array, patch: int, stride: int) -> Float[Array, "*batch L c"]:
    """Every patch of an image (…, H, W, C) as a row of (…, L, c), its entries in the order row, column, channel."""
    xp = namespace(image=image)
    if image.ndim < IMAGE_AXES:
        raise ValueError(f"image must be (…, height, width, channels), not of shape {tuple(image.shape)}")
    *batch, height, width, channels = image.shape
    grid = grid_of(height, width, patch, stride)
    require_count("the number of channels", channels)
    shifted = [
        image[
            ...,
            y : y + (grid.rows - 1) * stride + 1 : stride,
            x : x + (grid.columns - 1) * stride + 1 : stride,
            :,
        ]
        for y in range(patch)
        for x in range(patch)
    ]
    stacked = xp.stack(shifted, axis=-2)  # (…, rows, columns, patch², C)
    return xp.reshape(stacked, (*batch, grid.patches, patch * patch * channels))
