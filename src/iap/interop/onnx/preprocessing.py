"""Image → input channels of the encoder in ONNX, in the unit of the image; sums of bytes are exact in float32."""

from collections.abc import Mapping

import numpy as np

from iap.interop.onnx.graph import Graph
from iap.policies.config import PolicyConfig
from iap.policies.preprocessing import (
    CENTRED_GAIN,
    COARSE_SQUARES,
    FINE_SQUARES,
    FIRST_FRAME_GAIN,
    ROUNDING,
    SIGNED_GAIN,
)

SHIFT = 512  # makes a quotient of integers positive, so that it is rounded down
HALF = 0.5  # before rounding quotients of whole numbers down, so that they stay whole


def add_preprocessing(
    graph: Graph, config: PolicyConfig, image: str, kept: Mapping[str, str], *, is_bytes: bool
) -> str:
    """All channels, (1, channels, H, W) float32.

    Args:
        graph: the graph.
        config: of the policy.
        image: (1, C, H, W) float32.
        kept: the names of the "previous" and the "first" image, in the same layout.
        is_bytes: whether images are 0..255.
    """
    op, most = graph.op, 255.0 if is_bytes else 1.0
    parts = []
    for kind in config.preprocessing:
        if kind == "image":
            parts.append(image)
        elif kind == "frame_difference":
            parts.append(op("Abs", op("Sub", image, kept["previous"])))
        elif kind == "first_frame_difference":
            difference = op("Abs", op("Sub", image, kept["first"]))
            parts.append(op("Min", op("Mul", difference, float(FIRST_FRAME_GAIN)), most))
        elif kind == "signed_frame_difference":
            difference = op("Mul", op("Sub", image, kept["previous"]), float(SIGNED_GAIN))
            parts.append(op("Clip", op("Add", difference, 128.0 if is_bytes else 0.5), np.float32(0), np.float32(most)))
        elif kind == "centred_image":
            parts.append(_centred(graph, image, config.image_shape, is_bytes=is_bytes))
        else:
            squares = COARSE_SQUARES if kind.endswith("coarse") else FINE_SQUARES
            height, width, _ = config.image_shape
            reach = max(1, min(height, width) // (2 * squares))
            parts.append(_contrast(graph, image, config.image_shape, reach, is_bytes=is_bytes))
    return graph.concat(*parts, axis=1)


def _centred(graph: Graph, image: str, shape: tuple[int, int, int], *, is_bytes: bool) -> str:
    """Each channel minus its mean, times a gain, plus the middle of the range; bytes by sums of integers."""
    op, pixels, most = graph.op, shape[0] * shape[1], np.float32(255 if is_bytes else 1)
    scaled = op("Mul", image, float(CENTRED_GAIN))
    if is_bytes:
        sums = op("ReduceSum", op("Cast", image, to=7), np.array([2, 3]), keepdims=1)  # 7: int64
        offset = op("Div", op("Sub", (128 + SHIFT) * pixels, op("Mul", sums, CENTRED_GAIN)), pixels)
        offset = op("Cast", op("Sub", offset, SHIFT), to=1)
    else:
        mean = op("ReduceMean", image, np.array([2, 3]), keepdims=1)
        offset = op("Sub", 0.5 + ROUNDING, op("Mul", mean, float(CENTRED_GAIN)))
    return op("Clip", op("Add", scaled, offset), np.float32(0), most)


def _contrast(graph: Graph, image: str, shape: tuple[int, int, int], reach: int, *, is_bytes: bool) -> str:
    """Each number minus the mean of the square around it, plus the middle of the range."""
    op, (height, width, channels), side = graph.op, shape, 2 * reach + 1
    columns = np.ones((channels, 1, side, 1), np.float32)
    sums = op("Conv", image, columns, group=channels, pads=[reach, 0, reach, 0])
    sums = op("Conv", sums, columns.transpose(0, 1, 3, 2), group=channels, pads=[0, reach, 0, reach])
    counts = [_cut_lengths(size, reach) for size in (height, width)]
    pixels = np.outer(*counts)[None, None].astype(np.float32)
    if is_bytes:
        scaled = op("Sub", op("Mul", op("Add", image, 128.0), pixels), sums)
        quotient = op("Div", op("Add", op("Max", scaled, 0.0), HALF), pixels)
        return op("Min", op("Floor", quotient), 255.0)
    contrast = op("Add", op("Sub", image, op("Div", sums, pixels)), 0.5 + ROUNDING)
    return op("Clip", contrast, np.float32(0), np.float32(1))


def _cut_lengths(size: int, reach: int) -> np.ndarray:
    """The side of the square around each place, cut off by the image."""
    place = np.arange(size)
    return np.minimum(place, reach) + np.minimum(size - 1 - place, reach) + 1
