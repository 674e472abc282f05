"""Image → input channels of the encoder: the image, differences between frames, local contrast."""

import math
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from iap._compile import compiled, dispatched, implements

Channel = Literal[
    "image",
    "frame_difference",
    "first_frame_difference",
    "local_contrast_coarse",
    "local_contrast_fine",
    "centred_image",
    "signed_frame_difference",
]
IMAGE, FRAME_DIFFERENCE, FIRST_FRAME_DIFFERENCE, COARSE, FINE, CENTRED, SIGNED = range(7)  # as in `Channel`

# The image's shorter side over the side of the square that local contrast is relative to.
COARSE_SQUARES = 3
FINE_SQUARES = 12
FIRST_FRAME_GAIN = 6  # of the difference to the first frame: small differences become clearly visible
CENTRED_GAIN = 2  # of the difference to the image's mean
SIGNED_GAIN = 4  # of the signed difference to the last frame
ROUNDING = 1e-6  # so that an integer minus a rounding error does not become the next lower byte


class NoPreprocessing(NamedTuple):
    """The encoder's input is the image itself."""

    nothing: Any


class ChannelArrays(NamedTuple):
    """The kinds of channels, in order, as indices of `Channel`."""

    kinds: Any


def compile_preprocessing(channels: tuple[Channel, ...]) -> Any:
    """The preprocessing for `preprocess`."""
    if channels == ("image",):
        return NoPreprocessing(0)
    return ChannelArrays(np.array([get_args(Channel).index(channel) for channel in channels]))


def preprocess_image(
    channels: tuple[Channel, ...], image: np.ndarray, previous: np.ndarray, first: np.ndarray
) -> np.ndarray:
    """The encoder's input: each kind of channel in turn, with as many channels as the image has.

    Args:
        channels: the kinds.
        image: this frame, (H, W, C), uint8 or float32.
        previous: the frame that was encoded before this one, or this one at the start of an episode.
        first: the episode's first frame.
    """
    return image if channels == ("image",) else put_all(compile_preprocessing(channels).kinds, image, previous, first)


@dispatched
def preprocess(preprocessing, image, previous, first) -> Any:
    """Compiled code: the encoder's input."""


@implements(preprocess, NoPreprocessing)
@compiled(inner=True)
def _as_it_is(preprocessing, image, previous, first):
    return image


@implements(preprocess, ChannelArrays)
@compiled(inner=True)
def _all_channels(preprocessing, image, previous, first):
    return put_all(preprocessing.kinds, image, previous, first)


@compiled
def put_all(kinds, image, previous, first):
    """All channels of all kinds, one kind after the other."""
    height, width, channels = image.shape
    whole = np.empty((height, width, channels * len(kinds)), image.dtype)
    grey, most = full_range(image)
    for i in range(len(kinds)):
        if kinds[i] == FRAME_DIFFERENCE:
            part = difference(image, previous, 1, math.inf)
        elif kinds[i] == FIRST_FRAME_DIFFERENCE:
            part = difference(image, first, FIRST_FRAME_GAIN, most)
        elif kinds[i] == IMAGE:
            part = image
        elif kinds[i] == CENTRED:
            part = centred(image, CENTRED_GAIN, grey, most)
        elif kinds[i] == SIGNED:
            part = signed_difference(image, previous, SIGNED_GAIN, grey, most)
        else:
            squares = COARSE_SQUARES if kinds[i] == COARSE else FINE_SQUARES
            reach = max(1, min(height, width) // (2 * squares))
            part = local_contrast(image, reach, grey, most)
        for y in range(height):
            for x in range(width):
                for c in range(channels):
                    whole[y, x, i * channels + c] = part[y, x, c]
    return whole


@compiled
def full_range(image):
    """The middle and the largest value of images of this dtype: 0..255 for uint8, 0..1 for floats."""
    if image.itemsize == 1:
        return 128.0, 255.0
    return 0.5, 1.0


@compiled
def difference(image, other, gain, most):
    """The absolute difference of two images, times a gain, at most `most`."""
    out = np.empty_like(image)
    a, b, flat = image.ravel(), other.ravel(), out.ravel()
    for i in range(len(a)):
        flat[i] = min(gain * (max(a[i], b[i]) - min(a[i], b[i])), most)
    return out


@compiled
def signed_difference(image, other, gain, grey, most):
    """The difference of two images times a gain, plus `grey`, from 0 to `most`."""
    out = np.empty_like(image)
    a, b, flat = image.ravel(), other.ravel(), out.ravel()
    for i in range(len(a)):
        flat[i] = min(max(gain * (np.float32(a[i]) - np.float32(b[i])) + grey, 0.0), most)
    return out


@compiled
def centred(image, gain, grey, most):
    """Each channel minus its mean over the image, times a gain, plus `grey`, from 0 to `most`."""
    height, width, channels = image.shape
    sums = np.zeros(channels)
    for y in range(height):
        for x in range(width):
            for c in range(channels):
                sums[c] += image[y, x, c]
    offsets = grey - gain * sums / (height * width) + ROUNDING
    out = np.empty_like(image)
    for y in range(height):
        for x in range(width):
            for c in range(channels):
                out[y, x, c] = min(max(gain * np.float64(image[y, x, c]) + offsets[c], 0.0), most)
    return out


@compiled
def local_contrast(image, reach, grey, most):
    """Each number of an image minus the mean of the square around it, `reach` pixels to each side, plus `grey`.

    Squares at the border are cut off by the image.
    """
    height, width, channels = image.shape
    pixels, out = image.reshape(height, width * channels), np.empty((height, width * channels), image.dtype)
    side = (2 * reach + 1) * channels
    columns = np.zeros(width * channels)  # sums over the rows of the square
    sums = np.zeros(width * channels + side)  # of columns from the left, constant outside the image
    shares = np.empty(width * channels)
    for i in range(width * channels):
        x = i // channels
        shares[i] = 1.0 / (min(x + reach, width - 1) - max(x - reach, 0) + 1)
    start = (reach + 1) * channels
    for y in range(min(reach, height)):
        columns += pixels[y]
    for y in range(height):
        above, below = y - reach - 1, y + reach
        if below < height:
            columns += pixels[below]
        if above >= 0:
            columns -= pixels[above]
        for i in range(len(columns)):
            sums[start + i] = sums[start + i - channels] + columns[i]
        for i in range(start + len(columns), len(sums)):
            sums[i] = sums[i - channels]
        a_row = 1.0 / (min(below, height - 1) - max(above, -1))
        for i in range(len(columns)):
            mean = (sums[i + side] - sums[i]) * (a_row * shares[i])
            out[y, i] = min(max(pixels[y, i] - mean + grey + ROUNDING, 0.0), most)
    return out.reshape(image.shape)
