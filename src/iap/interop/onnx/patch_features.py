"""Selected patches → features in ONNX."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from iap.attention.selection import EQUAL
from iap.interop.onnx.graph import Graph
from iap.policies import PooledMoments, SelectedPatches, SeparableFilters
from iap.policies.encoders.attention_config import scaled_centres
from iap.policies.encoders.base import Shape, Window
from iap.policies.encoders.patch_features import PatchFeatures


@dataclass(frozen=True)
class Selection:
    """What features are computed from.

    Attributes:
        pixels: the encoder's input, (n, C, H, W), as floats around 0.
        values, indices: the scores of the selected patches and their numbers, (n, l), best first.
        window: the patches.
        image: the shape of the encoder's input.
        top_k: l.
    """

    pixels: str
    values: str
    indices: str
    window: Window
    image: Shape
    top_k: int

    @property
    def centres(self) -> np.ndarray:
        """Of all patches, (L, 2)."""
        return scaled_centres(self.window, self.image[:2]).astype(np.float32)


def add_patch_features(
    graph: Graph, features: PatchFeatures, params: Mapping[str, np.ndarray], selection: Selection
) -> str:
    """The features, (n, size)."""
    if isinstance(features, PooledMoments):
        return _pooled(graph, features, params, selection)
    if isinstance(features, SelectedPatches):
        return _selected(graph, features, params, selection)
    if isinstance(features, SeparableFilters):
        return _filters(graph, params, selection)
    raise ValueError(f"features {type(features).__name__} have no ONNX graph")


def add_moments(graph: Graph, weights: str, rows: str, columns: str, divisor: Any, size: int) -> str:
    """Centroid, second central moments and mass / divisor of (…, l) weighted patches, joined to (n, size)."""
    op = graph.op
    mass = graph.reduce("Sum", weights, -1)
    total = graph.either(op("Greater", mass, 0.0), mass, 1.0)
    row, column = (op("Div", graph.reduce("Sum", op("Mul", weights, x), -1), total) for x in (rows, columns))
    y, x = op("Sub", rows, row), op("Sub", columns, column)
    seconds = [
        op("Div", graph.reduce("Sum", op("Mul", weights, op("Mul", *pair)), -1), total)
        for pair in ((y, y), (y, x), (x, x))
    ]
    parts = graph.concat(row, column, *seconds, op("Div", mass, divisor), axis=-1)
    # A head without mass has centroid 0 already, since its weights are 0.
    return graph.reshape(parts, -1, size)


def shares_above_least(graph: Graph, values: str, top_k: int, equal: float) -> str:
    """How far each selected score lies above the smallest, from 0 to 1; `equal` if all are equal."""
    most, least = graph.slice(values, 0, 1, -1), graph.slice(values, top_k - 1, top_k, -1)
    return _shares(graph, values, least, most, equal)


def zero_to_one(graph: Graph, scores: str) -> str:
    """The scores (n, heads, L) from 0, the smallest of a head, to 1; 0 if all are equal."""
    return _shares(graph, scores, graph.reduce("Min", scores, 2), graph.reduce("Max", scores, 2), 0.0)


def _shares(graph: Graph, scores: str, least: str, most: str, equal: float) -> str:
    op = graph.op
    span = op("Sub", most, least)
    differ = op("Greater", span, op("Mul", op("Max", op("Abs", least), op("Abs", most)), EQUAL))
    shares = op("Div", op("Sub", scores, least), graph.either(differ, span, 1.0))
    return graph.either(differ, shares, equal)


def _pooled(graph: Graph, features: PooledMoments, params: Mapping[str, np.ndarray], selection: Selection) -> str:
    op, window = graph.op, selection.window
    colours = selection.pixels
    if window.patch > 1 or window.stride > 1:
        sides: dict[str, Any] = {"kernel_shape": [window.patch] * 2, "strides": [window.stride] * 2}
        colours = op("AveragePool", selection.pixels, **sides)
    channels = selection.image[2]
    colours = graph.reshape(colours, 0, channels, window.grid.patches)
    place = op("Expand", graph.unsqueeze(selection.indices, 1), np.array([1, channels, 1]))
    inputs = graph.transpose(op("GatherElements", colours, place, axis=2), 0, 2, 1)  # (n, l, C)
    centres = op("Gather", selection.centres, selection.indices, axis=0)  # (n, l, 2)
    if features.position_weighted:
        inputs = graph.concat(inputs, centres, axis=-1)
    weights = graph.transpose(op("Relu", graph.affine(inputs, params["heads.weight"], params["heads.bias"])), 0, 2, 1)
    divisor: Any = float(selection.top_k)
    if features.score_weighted:
        shares = graph.unsqueeze(shares_above_least(graph, selection.values, selection.top_k, 1.0), 1)
        weights, divisor = op("Mul", weights, shares), graph.reduce("Sum", shares, -1)
    axes = graph.transpose(centres, 0, 2, 1)
    rows, columns = graph.slice(axes, 0, 1, 1), graph.slice(axes, 1, 2, 1)
    return add_moments(graph, weights, rows, columns, divisor, 6 * features.heads)


def _selected(graph: Graph, features: SelectedPatches, params: Mapping[str, np.ndarray], selection: Selection) -> str:
    op, window, channels = graph.op, selection.window, selection.image[2]
    patches, inputs = window.grid.patches, window.patch**2 * channels
    parts = []
    for value in features.values:
        if value == "centres":
            like = graph.reduce("Sum", op("Mul", graph.reshape(selection.pixels, 0, -1), 0.0), 1)
            parts.append(op("Add", graph.unsqueeze(like, 2), selection.centres[None]))
            continue
        weights = np.eye(inputs, dtype=np.float32) if value == "pixels" else params["projection.weight"]
        kernel = weights.reshape(len(weights), window.patch, window.patch, channels).transpose(0, 3, 1, 2)
        values = op("Conv", selection.pixels, kernel, strides=[window.stride] * 2)
        parts.append(graph.transpose(graph.reshape(values, 0, len(weights), patches), 0, 2, 1))
    values = graph.concat(*parts, axis=-1)  # (n, L, size)
    size = features.value_size(window, channels)
    if features.masked:
        values = op("Mul", values, graph.unsqueeze(_is_selected(graph, selection), 2))
        return graph.reshape(values, -1, patches * size)
    indices = selection.indices
    if features.order == "image":
        indices = op("TopK", indices, np.array([selection.top_k]), outputs=2, largest=0)[0]
    place = op("Expand", graph.unsqueeze(indices, 2), np.array([1, 1, size]))
    return graph.reshape(op("GatherElements", values, place, axis=1), -1, selection.top_k * size)


def _filters(graph: Graph, params: Mapping[str, np.ndarray], selection: Selection) -> str:
    """Separable filters over the image in which all other patches are masked."""
    op, window, channels = graph.op, selection.window, selection.image[2]
    (rows, columns), side = window.grid, window.patch
    cut = graph.slice(graph.slice(selection.pixels, 0, rows * side, 2), 0, columns * side, 3)
    blocks = graph.reshape(graph.transpose(cut, 0, 2, 3, 1), -1, rows, side, columns, side * channels)
    masked = op("Mul", blocks, graph.reshape(_is_selected(graph, selection), -1, rows, 1, columns, 1))
    flat = graph.reshape(masked, -1, rows * side, columns * side * channels)
    products = op("Mul", op("MatMul", params["rows.weight"], flat), params["columns.weight"])
    return op("Tanh", op("Add", graph.reduce("Sum", products, 2, keep=False), params["filters.bias"]))


def _is_selected(graph: Graph, selection: Selection) -> str:
    """1 for each selected patch and 0 for the others, (n, L)."""
    numbers = np.arange(selection.window.grid.patches)[None, None]
    matches = graph.op("Equal", graph.unsqueeze(selection.indices, 2), numbers)
    return graph.reduce("Max", graph.op("Cast", matches, to=1), 1, keep=False)
