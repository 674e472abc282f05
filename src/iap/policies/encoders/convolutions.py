"""Convolutions with ReLU: the whole of the CNN encoder, and the stem before attention in `MultiHeadRank`."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from iap._compile import compiled, dispatched, implements
from iap._validation import require_count
from iap.attention.arrays import Array
from iap.attention.kernels.projection import project_image, unrolled_steps
from iap.attention.patches import grid_of
from iap.attention.primitives import convolve, relu
from iap.policies.encoders.base import Shape
from iap.policies.params import ParamSpec, affine

Layers = tuple[tuple[int, int, int], ...]  # (filters, size, stride) of each layer
MOST_LAYERS = 64


def check_layers(name: str, layers: object) -> None:
    """Raise an error unless this is a tuple of (filters, size, stride)."""
    if not isinstance(layers, tuple):
        raise ValueError(f"{name} must be a tuple of (filters, size, stride), not {layers!r}")
    require_count(f"number of {name}", len(layers), least=0, most=MOST_LAYERS)
    for layer in layers:
        if not isinstance(layer, tuple) or len(layer) != 3:  # noqa: PLR2004
            raise ValueError(f"{name} must hold (filters, size, stride), not {layer!r}")
        for part, value in zip(("filters", "size", "stride"), layer, strict=True):
            require_count(f"{part} of {name}", value)


def map_shapes(layers: Layers, image_shape: Shape) -> list[Shape]:
    """The shapes of the image and of each layer's output."""
    shapes = [image_shape]
    for filters, size, stride in layers:
        height, width, _ = shapes[-1]
        require_count("size of layers", size, most=min(height, width), why=f" (its input is {height}×{width})")
        grid = grid_of(height, width, size, stride)
        shapes.append((grid.rows, grid.columns, filters))
    return shapes


def convolution_specs(name: str, layers: Layers, image_shape: Shape) -> list[ParamSpec]:
    """The arrays of the layers `name`.0, `name`.1 and so on."""
    shapes = map_shapes(layers, image_shape)
    return [
        spec
        for i, (filters, size, _) in enumerate(layers)
        for spec in affine(f"{name}.{i}", size**2 * shapes[i][2], filters)
    ]


def apply_convolutions(params: Mapping[str, Array], name: str, layers: Layers, images: Array) -> Array:
    """Each layer's convolution and ReLU, in a batch of float images (n, H, W, C)."""
    for i, (_, _, stride) in enumerate(layers):
        images = relu(convolve(images, params[f"{name}.{i}.weight"], stride) + params[f"{name}.{i}.bias"])
    return images


class ConvolutionArrays(NamedTuple):
    """One layer in compiled code: weights (filters, inputs) and row shares that hold the bias."""

    size: Any
    stride: Any
    steps: Any
    weights: Any
    row_shares: Any
    column_shares: Any
    columns: Any


def compile_convolutions(
    params: Mapping[str, np.ndarray], name: str, layers: Sequence[Shape], image_shape: Shape, dtype: np.dtype
) -> Any:
    """The layers as a chain for `convolve_all`, for images of one dtype.

    The first layer's weights and biases include the scale and offset of uint8 pixels.
    """
    shapes = map_shapes(tuple(layers), image_shape)
    arrays = []
    for i, (filters, size, stride) in enumerate(layers):
        weights, biases = np.array(params[f"{name}.{i}.weight"]), np.array(params[f"{name}.{i}.bias"])
        if i == 0 and dtype == np.uint8:  # 0..255 stands for −0.5..0.5
            weights, biases = weights / np.float32(255), biases - weights.sum(axis=1) / 2
        rows, columns, _ = shapes[i + 1]
        step = stride * shapes[i][2]
        steps = unrolled_steps(step)
        row_shares = np.repeat(biases[:, None], rows, axis=1)
        column_shares = np.zeros((filters, columns), np.float32)
        arrays.append(ConvolutionArrays(size, stride, steps, weights, row_shares, column_shares, columns))
    chain: Any = Last(0)
    for layer in reversed(arrays):
        chain = Layer(layer, chain)
    return chain


@compiled
def convolve_image(layer, image):
    """One layer on one image: convolution and ReLU, (rows, columns, filters)."""
    filters, rows = layer.row_shares.shape
    x = np.empty((filters, rows * layer.columns), np.float32)
    project_image(image, layer.size, layer.stride, layer.steps, layer.weights, layer.row_shares, layer.column_shares, x)
    out = np.empty((rows, layer.columns, filters), np.float32)
    flat = out.reshape(rows * layer.columns, filters)
    for f in range(filters):
        for place in range(len(flat)):
            flat[place, f] = max(x[f, place], np.float32(0))
    return out


class Layer(NamedTuple):
    """A layer, and the layers after it."""

    arrays: Any
    rest: Any


class Last(NamedTuple):
    """The end of the layers."""

    nothing: Any


@dispatched
def convolve_all(layers, image) -> Any:
    """Compiled code: all layers on one image; without layers the image itself."""


@implements(convolve_all, Layer)
def _convolve_and_go_on(layers, image):
    return convolve_all(layers.rest, convolve_image(layers.arrays, image))


@implements(convolve_all, Last)
def _return_output(layers, image):
    return image
