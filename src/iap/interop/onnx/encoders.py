"""Encoders in ONNX: (n, C, H, W) floats around 0 → features, scores and selected patches."""

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from iap.interop.onnx.attention import add_attention, add_trans_features, project
from iap.interop.onnx.graph import Graph
from iap.interop.onnx.patch_features import (
    Selection,
    add_moments,
    add_patch_features,
    shares_above_least,
    zero_to_one,
)
from iap.interop.rank_options import refuse_rank_options
from iap.policies import CNN, Blind, MultiHeadRank, Rank, Trans
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
    """IAP-rank."""
    refuse_rank_options(encoder, "ONNX graph")
    window, op = encoder.window(image), graph.op
    queries, keys = project(graph, encoder, params, ("query", "key"), pixels, image)
    pooling = 1 + params["pooling"] if encoder.learn_pooling else None
    scores = add_attention(graph, encoder, queries, keys, pooling).scores
    values, indices = op("TopK", scores, np.array([encoder.top_k]), outputs=2)
    selection = Selection(pixels, values, indices, window, image, encoder.top_k)
    return Encoded(add_patch_features(graph, encoder.features, params, selection), scores, indices)


def add_trans(graph: Graph, encoder: Trans, params: Arrays, pixels: str, image: Shape) -> Encoded:
    """IAP-trans: no patch is selected, and the scores are the attention that each patch receives."""
    queries, keys, values = project(graph, encoder, params, ("query", "key", "value"), pixels, image)
    attended = add_attention(graph, encoder, queries, keys, np.abs(params["pooling"]).mean(axis=0))
    return Encoded(add_trans_features(graph, encoder, params, attended, values), attended.scores)


def add_multi_head_rank(graph: Graph, encoder: MultiHeadRank, params: Arrays, pixels: str, image: Shape) -> Encoded:
    """Several heads over the output of a stem."""
    op, d, window = graph.op, encoder.d, encoder.window(image)
    maps = _add_layers(graph, "stem", encoder.stem, params, pixels, image)
    channels = map_shapes(encoder.stem, image)[-1][2]
    weights = np.concatenate([params["query.weight"], params["key.weight"]])
    biases = np.concatenate([params["query.bias"], params["key.bias"]])
    convolved = op("Relu", graph.convolve(maps, weights, channels, encoder.stride, biases))
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
        x = graph.op("Relu", graph.convolve(x, weights, shapes[i][2], stride, biases))
    return x
