"""Attention with any kernel in ONNX, its sums over features, and IAP-trans."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from iap.attention.kernels.folding import copies_of, position_shares
from iap.attention.mixing import LAYER_NORM_EPSILON
from iap.interop.onnx.graph import Graph
from iap.interop.onnx.kernels import Features, add_features
from iap.policies import Rank, Trans
from iap.policies.encoders.attention_config import with_scaled_pixels
from iap.policies.encoders.base import Shape

Arrays = Mapping[str, np.ndarray]


class Attended(NamedTuple):
    """Names of results: A is the product of the weights, times `sizes`.

    Attributes:
        scores: (n, L), up to one positive factor.
        query_weights: the features of the queries, (n, L, features).
        key_weights: the features of the keys, (n, L, features).
        sizes: (n, L, 1); None for ones.
    """

    scores: str
    query_weights: str
    key_weights: str
    sizes: str | None


def project(
    graph: Graph, encoder: Rank | Trans, params: Arrays, names: Sequence[str], pixels: str, image: Shape
) -> list[str]:
    """Each named layer on the patches, (n, outputs, L)."""
    window, inputs, op = encoder.window(image), encoder.patch**2 * image[2], graph.op
    folded, positions = with_scaled_pixels(params, names, encoder, image[2])
    weights = np.concatenate([folded[f"{name}.weight"] for name in names])
    sizes = [len(folded[f"{name}.weight"]) for name in names]
    biases = [folded.get(f"{name}.bias", np.zeros(size)) for name, size in zip(names, sizes, strict=True)]
    rows, columns = position_shares(weights.astype(np.float64), inputs, window.grid, positions)
    shares = rows[:, :, None] + columns[:, None, :] + np.concatenate(biases)[:, None, None]
    convolved = graph.convolve(pixels, weights[:, :inputs], image[2], encoder.stride)
    all_layers = graph.reshape(op("Add", convolved, shares[None]), 0, len(weights), window.grid.patches)
    ends = np.cumsum(sizes)
    return [graph.slice(all_layers, int(end - size), int(end), 1) for end, size in zip(ends, sizes, strict=True)]


def add_attention(graph: Graph, encoder: Rank | Trans, queries: str, keys: str, pooling: np.ndarray | None) -> Attended:
    """The attention of all queries at all keys, through sums over features: A is never formed.

    Args:
        graph: the graph.
        encoder: its kernel, and whether the attention of each query sums to one.
        queries: (n, d, L).
        keys: (n, d, L).
        pooling: the weight of each query; all ones if None.
    """
    op, kernel = graph.op, encoder.kernel
    queries, keys = (graph.transpose(side, 0, 2, 1) for side in (queries, keys))
    query, key = add_features(graph, kernel, queries, keys, encoder.d)
    key_weights, key_peaks = _weights(graph, key, axis=1)
    if key_peaks is not None:
        query = Features(query.values, op("Add", query.logs, key_peaks))
    query_weights, peaks = _weights(graph, query, axis=2)
    sizes, weighed = None, query_weights
    if encoder.normalise_rows:
        totals = graph.reduce("Sum", op("Mul", query_weights, graph.reduce("Sum", key_weights, 1)), 2)
        empty = op("Equal", totals, 0.0)
        sizes = graph.either(empty, 0.0, op("Div", 1.0, graph.either(empty, 1.0, totals)))
        weighed = op("Mul", query_weights, sizes)
    elif peaks is not None:
        sizes = op("Div", op("Exp", peaks), float(copies_of(kernel)))
        weighed = op("Mul", query_weights, op("Exp", op("Sub", peaks, graph.reduce("Max", peaks, 1))))
    if pooling is not None:
        weighed = op("Mul", weighed, pooling[None, :, None])
    scores = graph.reduce("Sum", op("Mul", key_weights, graph.reduce("Sum", weighed, 1)), 2, keep=False)
    return Attended(scores, query_weights, key_weights, sizes)


def add_trans_features(graph: Graph, encoder: Trans, params: Arrays, attended: Attended, values: str) -> str:
    """P·(A·V + V), (n, rows·v)."""
    op = graph.op
    values = graph.transpose(values, 0, 2, 1)  # (n, L, v)
    summary = op("MatMul", graph.transpose(attended.key_weights, 0, 2, 1), values)
    mixed = op("MatMul", attended.query_weights, summary)
    if attended.sizes is not None:
        mixed = op("Mul", mixed, attended.sizes)
    if encoder.residual:
        mixed = op("Add", mixed, values)
    out = op("MatMul", params["pooling"], mixed)
    if encoder.layer_norm:
        centred = op("Sub", out, graph.reduce("Mean", out, 2))
        variance = graph.reduce("Mean", op("Mul", centred, centred), 2)
        out = op("Div", centred, op("Sqrt", op("Add", variance, LAYER_NORM_EPSILON)))
    return graph.reshape(out, -1, encoder.rows * encoder.value_size)


def _weights(graph: Graph, features: Features, axis: int) -> tuple[str, str | None]:
    """The features divided by the exponential of the largest log along an axis, and these logs."""
    if features.logs is None:
        return features.values, None
    peaks = graph.reduce("Max", features.logs, axis)
    return graph.op("Mul", features.values, graph.op("Exp", graph.op("Sub", features.logs, peaks))), peaks
