"""Which entries of an observation are images, and how they become (H, W, C): channels last, stacked frames joined."""

from dataclasses import dataclass
from typing import TypeGuard

import numpy as np
from gymnasium import spaces

IMAGE_DTYPES = (np.dtype(np.uint8), np.dtype(np.uint16), np.dtype(np.float32))
LEAST_SIDE = 8  # of an image without channels: smaller arrays of two axes are sensors
MOST_CHANNELS = 4  # of a shape that is always read as (H, W, C)
AXES, STACK_AXES = 3, 4


@dataclass(frozen=True)
class Layout:
    """How arrays of one entry become images.

    Attributes:
        name: of the entry.
        source: the entry's space.
        space: the space of the images.
        order: the axes in the order (stack, height, width, channels), as far as there are such axes.
        size: (height, width) to resize to, None to keep the size.
    """

    name: str
    source: spaces.Box
    space: spaces.Box
    order: tuple[int, ...]
    size: tuple[int, int] | None

    def convert(self, pixels: np.ndarray) -> np.ndarray:
        """The image, if the array has the dtype and shape that the observation space says."""
        pixels = np.asarray(pixels)
        if pixels.shape != self.source.shape:
            raise ValueError(f"{self.name} must be of shape {self.source.shape}, as its space says, not {pixels.shape}")
        wanted = self.source.dtype
        if pixels.dtype != wanted and not _are_floats(pixels.dtype, wanted):
            raise TypeError(
                f"{self.name} must be {wanted}, as its space says, not {pixels.dtype}: "
                f"return .astype(numpy.{wanted}), or declare {pixels.dtype} in the observation space"
            )
        image = self._in_order(pixels)
        image = image.astype(self.space.dtype, copy=False)
        if self.size is None or image.shape[:2] == self.size:
            return image
        return np.stack([_resized(image[..., channel], self.size) for channel in range(image.shape[2])], axis=-1)

    def _in_order(self, pixels: np.ndarray) -> np.ndarray:
        if pixels.ndim == len(self.order) and self.order == tuple(range(pixels.ndim)):
            image = pixels
        else:
            image = pixels.transpose(self.order)
        if image.ndim == STACK_AXES:
            image = np.concatenate(list(image), axis=-1)
        return image if image.ndim == AXES else image[..., None]


def is_image(space: spaces.Space, least_side: int = LEAST_SIDE) -> TypeGuard[spaces.Box]:
    """Whether an entry is an image, or a stack of images; smaller arrays of two axes are no images."""
    if not isinstance(space, spaces.Box) or not (space.dtype in IMAGE_DTYPES or space.dtype == np.float64):
        return False
    if len(space.shape) == 2:  # noqa: PLR2004
        return min(space.shape) >= least_side
    return len(space.shape) in (AXES, STACK_AXES)


def layout_of(name: str, space: spaces.Space, size: tuple[int, int] | None) -> Layout:
    """The layout of an image; shapes whose channels could be first or last are refused."""
    assert isinstance(space, spaces.Box)
    order = _order(name, space.shape)
    shape = [space.shape[axis] for axis in order]
    stack = shape.pop(0) if len(shape) == STACK_AXES else 1
    height, width, channels = shape if len(shape) == AXES else (*shape, 1)
    dtype = space.dtype if space.dtype in IMAGE_DTYPES else np.dtype(np.float32)
    low, high = space.low.min().item(), space.high.max().item()
    image = spaces.Box(low, high, (*(size or (height, width)), stack * channels), dtype)
    return Layout(name, space, image, order, size)


def _order(name: str, shape: tuple[int, ...]) -> tuple[int, ...]:
    """The axes (stack, height, width, channels)."""
    if len(shape) == 2:  # noqa: PLR2004
        return 0, 1
    if len(shape) == STACK_AXES:
        return 0, *(axis + 1 for axis in _order(name, shape[1:]))
    first, middle, last = shape
    is_cube = first == middle == last
    if last <= MOST_CHANNELS or (first == middle and first != last) or last < min(first, middle):
        return 0, 1, 2
    if not is_cube and (middle == last or first < min(middle, last)):
        return 1, 2, 0
    raise ValueError(
        f"{name} has shape {shape}, and its channels may be the first or the last axis: "
        f"return (height, width, channels), for example with gymnasium.wrappers.TransformObservation"
    )


def _are_floats(one: np.dtype, other: np.dtype | None) -> bool:
    return np.issubdtype(one, np.floating) and other is not None and np.issubdtype(other, np.floating)


def _resized(channel: np.ndarray, size: tuple[int, int]) -> np.ndarray:
    """Box filter: each new pixel is the mean over its area. A larger image repeats pixels."""
    from PIL import Image

    wide = channel.astype(np.float32) if channel.dtype == np.uint16 else channel
    resized = np.asarray(Image.fromarray(wide).resize((size[1], size[0]), Image.Resampling.BOX))
    return np.rint(resized).astype(np.uint16) if channel.dtype == np.uint16 else resized
