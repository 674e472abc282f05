"""The stem: strided convolutions, then residual 3×3 convolutions with growing dilation; batch norm in training only."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from iap.attention.arrays import Array, namespace
from iap.attention.primitives import BATCH_NORM_EPSILON, batch_norm, convolve, relu
from iap.policies.encoders.base import Shape, Statistics
from iap.policies.encoders.convolutions import Layers
from iap.policies.params import ParamSpec, affine

RESIDUAL_SIZE = 3

Shift = Callable[[str, Array, Array], Array]  # name, products with the weights, biases → inputs of ReLU


class StemLayer(NamedTuple):
    """One convolution with "same" padding and ReLU; `residual` adds its input to its output."""

    name: str
    inputs: int
    filters: int
    size: int
    stride: int
    dilation: int
    residual: bool

    @property
    def padding(self) -> int:
        """Zeros on each side of the input."""
        return (self.size - 1) // 2 * self.dilation


def stem_layers(layers: Layers, dilations: Sequence[int], channels: int) -> list[StemLayer]:
    """The strided layers, then one residual layer for each dilation."""
    stem = []
    for filters, size, stride in layers:
        stem.append(StemLayer(f"stem.{len(stem)}", channels, filters, size, stride, 1, False))
        channels = filters
    for dilation in dilations:
        stem.append(StemLayer(f"stem.{len(stem)}", channels, channels, RESIDUAL_SIZE, 1, dilation, True))
    return stem


def stem_specs(layers: Sequence[StemLayer]) -> list[ParamSpec]:
    """Bias and weight of each layer; residual branches start small, so that their sum does not grow with depth."""
    branches = max(1, sum(layer.residual for layer in layers))
    return [
        spec
        for layer in layers
        for spec in affine(
            layer.name,
            layer.size**2 * layer.inputs,
            layer.filters,
            gain=(2 / branches if layer.residual else 2) ** 0.5,  # 2: ReLU halves the second moment
        )
    ]


def stem_output(layers: Sequence[StemLayer], image_shape: Shape) -> Shape:
    """The shape of the last layer's output."""
    height, width, channels = image_shape
    for layer in layers:
        height, width, channels = -(-height // layer.stride), -(-width // layer.stride), layer.filters
    return height, width, channels


def add_bias(_name: str, products: Array, bias: Array) -> Array:
    """Without batch norm."""
    return products + bias


def normalise(statistics: Statistics | None, used: Statistics) -> Shift:
    """Batch norm, then the bias; with the statistics of the batch if there are none. Those used go to `used`."""

    def shift(name: str, products: Array, bias: Array) -> Array:
        outputs, used[name] = batch_norm(products, bias, None if statistics is None else statistics[name])
        return outputs

    return shift


def apply_stem(
    params: Mapping[str, Array], layers: Sequence[StemLayer], images: Array, shift: Shift = add_bias
) -> Array:
    """The stem's output for float images (n, H, W, C)."""
    for layer in layers:
        weight, bias = params[f"{layer.name}.weight"], params[f"{layer.name}.bias"]
        products = convolve(images, weight, layer.stride, dilation=layer.dilation, padding=layer.padding)
        outputs = relu(shift(layer.name, products, bias))
        images = images + outputs if layer.residual else outputs
    return images


def fold_stem(params: Mapping[str, Array], layers: Sequence[StemLayer], statistics: Statistics) -> dict[str, Array]:
    """Parameters whose plain products are the normalised ones: W/σ, and b − μ/σ."""
    folded = dict(params)
    for layer in layers:
        mean, variance = statistics[layer.name]
        scale = 1 / namespace(variance=variance).sqrt(variance + BATCH_NORM_EPSILON)
        folded[f"{layer.name}.weight"] = params[f"{layer.name}.weight"] * scale[:, None]
        folded[f"{layer.name}.bias"] = params[f"{layer.name}.bias"] - mean * scale
    return folded
