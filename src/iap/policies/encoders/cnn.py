"""A small convolutional network whose outputs are all features: the standard baseline."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from iap._compile import compiled, implements
from iap.attention.arrays import Array, namespace
from iap.attention.patches import as_pixels
from iap.policies.encoders.base import Encoder, Encoding, Shape, encode
from iap.policies.encoders.convolutions import (
    Layers,
    apply_convolutions,
    check_layers,
    compile_convolutions,
    convolution_specs,
    convolve_all,
    map_shapes,
)
from iap.policies.params import ParamSpec

LARGE_SIDE = 32  # pixels of an image for which the default network starts with large strides
FEW_PLACES = 6  # the default network ends with at most this many rows or columns on the shorter side


@dataclass(frozen=True)
class CNN(Encoder):
    """Convolutions with ReLU; the features are all outputs of the last layer.

    Attributes:
        layers: (filters, size, stride) of each layer; None for a default network for the image.
    """

    layers: Layers | None = None

    def __post_init__(self) -> None:
        if self.layers is None:
            return
        check_layers("layers", self.layers)
        if not self.layers:
            raise ValueError("layers must be a tuple of at least one (filters, size, stride), or None for the default")

    def layers_for(self, image_shape: Shape) -> Layers:
        """The layers, or those of the default network for this image."""
        return default_layers(image_shape) if self.layers is None else self.layers

    def check(self, image_shape: Shape) -> None:
        """Raise an error if a layer is larger than its input."""
        map_shapes(self.layers_for(image_shape), image_shape)

    def feature_size(self, image_shape: Shape) -> int:
        """All outputs of the last layer."""
        rows, columns, filters = map_shapes(self.layers_for(image_shape), image_shape)[-1]
        return rows * columns * filters

    def param_specs(self, image_shape: Shape) -> list[ParamSpec]:
        """Bias and weight of each layer."""
        return convolution_specs("layers", self.layers_for(image_shape), image_shape)

    def forward(self, params: Mapping[str, Array], images: Array, uniforms: Array | None = None) -> Encoding:
        """The outputs of the last layer, flattened."""
        xp = namespace(images=images)
        layers = self.layers_for((int(images.shape[1]), int(images.shape[2]), int(images.shape[3])))
        outputs = apply_convolutions(params, "layers", layers, as_pixels(images))
        return Encoding(xp.reshape(outputs, (images.shape[0], -1)))

    def compile(self, params: Mapping[str, np.ndarray], image_shape: Shape, dtype: np.dtype) -> "CNNArrays":
        """The layers with uint8 scaling folded into the first."""
        return CNNArrays(compile_convolutions(params, "layers", self.layers_for(image_shape), image_shape, dtype))


def default_layers(image_shape: Shape) -> Layers:
    """The layers of a typical small network for an image of this size."""
    side = min(image_shape[:2])
    first = ((16, 8, 4), (32, 4, 2)) if side >= LARGE_SIDE else ((16, 4, 2), (32, 3, 2))
    layers: list[tuple[int, int, int]] = []
    for filters, largest, stride in first:
        size = min(largest, side)
        layers.append((filters, size, stride))
        side = (side - size) // stride + 1
    while side > FEW_PLACES:
        layers.append((32, 3, 2))
        side = (side - 3) // 2 + 1
    return tuple(layers)


class CNNArrays(NamedTuple):
    """The chain of layers."""

    layers: Any


@implements(encode, CNNArrays)
@compiled(inner=True)
def encode_cnn(encoder, image, context):
    """The outputs of the last layer."""
    outputs = convolve_all(encoder.layers, image)
    return outputs.reshape(outputs.size), np.empty(0, np.float32), np.empty(0, np.int64), context.keys
