"""Encoders in ONNX: (n, C, H, W) floats around 0 → features, scores and selected patches."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from iap.attention.kernels.folding import position_shares
from iap.interop.onnx.graph import Graph
from iap.interop.onnx.patch_features import (
    Selection,
    add_moments,
    add_patch_features,
    shares_above_least,
    zero_to_one,
)
from iap.interop.rank_options import refuse_rank_options
from iap.policies import CNN, Blind, MultiHeadRank, Rank
from iap.policies.encoders.attention_config import scaled_centres
from iap.policies.encoders.base import Shape
from iap.policies.encoders.convolutions import Layers, map_shapes

Arrays = Mapping[str, np.ndarray]


class Encoded(NamedTuple):
    """Names of the features (n, r), scores (n, L) and selected patches (n, l); None without attention."""

    features: str
    scores: str | None = None
    selected: str | None = None


def add_rank(graph: Graph, encoder: Rank, params: Arrays, pixels: str, image: Shape) -> Encoded:
    """IAP-rank with ReLU features."""
    refuse_rank_options(encoder, "ONNX graph")
    window, inputs, op = encoder.window(image), encoder.patch**2 * image[2], graph.op
    weights = np.concatenate([params["query.weight"], params["key.weight"]])
    biases = [params.get(f"{side}.bias", np.zeros(encoder.d, np.float32)) for side in ("query", "key")]
    row_shares, column_shares = position_shares(weights.astype(np.float64), inputs, window.grid, encoder.positions)
    shares = row_shares[:, :, None] + column_shares[:, None, :] + np.concatenate(biases)[:, None, None]
    convolved = _convolve(graph, pixels, weights[:, :inputs], image[2], encoder.stride)
    both = graph.reshape(op("Relu", op("Add", convolved, shares[None])), 0, 2 * encoder.d, window.grid.patches)
    queries, keys = graph.slice(both, 0, encoder.d, 1), graph.slice(both, encoder.d, 2 * encoder.d, 1)
    if encoder.learn_pooling:
        queries = op("Mul", queries, (1 + params["pooling"])[None, None])
    scores = graph.reduce("Sum", op("Mul", keys, graph.reduce("Mean", queries, 2)), 1, keep=False)
    values, indices = op("TopK", scores, np.array([encoder.top_k]), outputs=2)
    selection = Selection(pixels, values, indices, window, image, encoder.top_k)
    return Encoded(add_patch_features(graph, encoder.features, params, selection), scores, indices)


def add_multi_head_rank(graph: Graph, encoder: MultiHeadRank, params: Arrays, pixels: str, image: Shape) -> Encoded:
    """Several heads over the output of a stem."""
    op, d, window = graph.op, encoder.d, encoder.window(image)
    maps = _add_layers(graph, "stem", encoder.stem, params, pixels, image)
    channels = map_shapes(encoder.stem, image)[-1][2]
    weights = np.concatenate([params["query.weight"], params["key.weight"]])
    biases = np.concatenate([params["query.bias"], params["key.bias"]])
    convolved = op("Relu", _convolve(graph, maps, weights, channels, encoder.stride, biases))
    both = graph.reshape(convolved, 0, 2 * d, window.grid.patches)
    queries, keys = graph.slice(both, 0, d, 1), graph.slice(both, d, 2 * d, 1)
    pooled = graph.transpose(graph.reduce("Mean", queries, 2), 0, 2, 1)  # (n, 1, d)
    scores = op("MatMul", op("Mul", pooled, params["gains"][None]), keys)  # (n, heads, L)
    values, indices = op("TopK", scores, np.array([encoder.top_k]), outputs=2)
    shares = shares_above_least(graph, values, encoder.top_k, 0.0)
    centres = scaled_centres(window, image[:2]).astype(np.float32)
    rows, columns = (op("Gather", np.ascontiguousarray(centres[:, axis]), indices, axis=0) for axis in (0, 1))
    weighted = op("Mul", shares, shares)
    features = add_moments(graph, weighted, rows, columns, float(encoder.top_k), 6 * encoder.heads)
    best = graph.reduce("Max", zero_to_one(graph, scores), 1, keep=False)
    selected = graph.reshape(indices, 0, encoder.heads * encoder.top_k)
    return Encoded(features, best, selected)


def add_cnn(graph: Graph, encoder: CNN, params: Arrays, pixels: str, image: Shape) -> Encoded:
    """All outputs of the last layer."""
    layers = encoder.layers_for(image)
    maps = graph.transpose(_add_layers(graph, "layers", layers, params, pixels, image), 0, 2, 3, 1)
    return Encoded(graph.reshape(maps, -1, encoder.feature_size(image)))


def add_blind(graph: Graph, encoder: Blind, params: Arrays, pixels: str, image: Shape) -> Encoded:
    """No features; never called, since the graph has no image."""
    raise ValueError("a blind encoder has no graph")


def _add_layers(graph: Graph, name: str, layers: Layers, params: Arrays, x: str, image: Shape) -> str:
    shapes = map_shapes(layers, image)
    for i, (_, _, stride) in enumerate(layers):
        weights, biases = params[f"{name}.{i}.weight"], params[f"{name}.{i}.bias"]
        x = graph.op("Relu", _convolve(graph, x, weights, shapes[i][2], stride, biases))
    return x


def _convolve(
    graph: Graph, x: str, weights: np.ndarray, channels: int, stride: int, biases: np.ndarray | None = None
) -> str:
    """Weights (filters, taps in the order row, column, channel) on (n, C, H, W)."""
    side = round((weights.shape[1] // channels) ** 0.5)
    kernel = weights.reshape(len(weights), side, side, channels).transpose(0, 3, 1, 2)
    others = [] if biases is None else [biases]
    return graph.op("Conv", x, kernel, *others, strides=[stride, stride])
