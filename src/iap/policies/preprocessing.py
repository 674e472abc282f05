"""What a encoder is shown of an image: itself, what has changed since the last look or the first, what stands out."""

import math

import numpy as np

from iap._compile import compiled
from iap.policies.specs import Sight

# The side of the square that is around a pixel goes so often into the image's shorter side.
SURROUNDS = {"local_contrast_coarse": 3, "local_contrast_fine": 12}
DEPARTED = 6  # how much stronger departures are shown than changes: all of what has come is bright then
ROUNDING = 1e-6  # a byte that is whole up to rounding does not become the one below


def show(preprocessing: tuple[Sight, ...], image: np.ndarray, before: np.ndarray, first: np.ndarray) -> np.ndarray:
    """All that is seen of an image, each sight in as many channels as the image has.

    `before` is the image of the last look, and `first` that of the episode's first.
    """
    if len(preprocessing) == 1:
        return _sight(preprocessing[0], image, before, first)
    height, width, channels = image.shape
    shown = np.empty((height, width, channels * len(preprocessing)), image.dtype)
    for i, sight in enumerate(preprocessing):
        put_channels(_sight(sight, image, before, first), shown, i * channels)
    return shown


def _sight(sight: Sight, image: np.ndarray, before: np.ndarray, first: np.ndarray) -> np.ndarray:
    grey, most = (128.0, 255.0) if image.dtype == np.uint8 else (0.5, 1.0)
    match sight:
        case "image":
            return image
        case "frame_difference":
            return changes(image, before, 1, math.inf)
        case "first_frame_difference":
            return changes(image, first, DEPARTED, most)
        case "local_contrast_coarse" | "local_contrast_fine":
            reach = max(1, min(image.shape[:2]) // (2 * SURROUNDS[sight]))
            return contrast(image, reach, grey, most)


@compiled
def put_channels(part, whole, first):
    """Write the channels of one image into another, from the given one on."""
    height, width, channels = part.shape
    for y in range(height):
        for x in range(width):
            for c in range(channels):
                whole[y, x, first + c] = part[y, x, c]


@compiled
def changes(image, before, times, most):
    """By how much each number of an image is above or below that of another, so many times, but `most` at most."""
    changed = np.empty_like(image)
    now, then, out = image.ravel(), before.ravel(), changed.ravel()
    for i in range(len(now)):
        out[i] = min(times * (max(now[i], then[i]) - min(now[i], then[i])), most)
    return changed


@compiled
def contrast(image, reach, grey, most):
    """Each number of an image less the mean of the square around it, `reach` pixels each way; what is equal is grey.

    Of squares that reach beyond the image, the part within it counts.
    """
    height, width, channels = image.shape
    pixels, out = image.reshape(height, width * channels), np.empty((height, width * channels), image.dtype)
    side = (2 * reach + 1) * channels
    columns = np.zeros(width * channels)  # sums over the rows of the square
    sums = np.zeros(width * channels + side)  # of columns, from the left; before and after the image they stay
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
