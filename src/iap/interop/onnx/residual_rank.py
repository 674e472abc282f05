"""The residual encoder in ONNX."""

from collections.abc import Mapping

import numpy as np

from iap.interop.onnx.encoders import Encoded
from iap.interop.onnx.graph import Graph
from iap.interop.onnx.patch_features import add_moments, shares_above_least, zero_to_one
from iap.policies.encoders.attention_config import scaled_centres
from iap.policies.encoders.base import Shape
from iap.policies.encoders.residual_rank import ResidualRank


def add_residual_rank(
    graph: Graph, encoder: ResidualRank, params: Mapping[str, np.ndarray], pixels: str, image: Shape
) -> Encoded:
    """Heads with moments and values on a residual stem."""
    op, d, heads, top_k = graph.op, encoder.d, encoder.heads, encoder.top_k
    cells = _stem(graph, encoder, params, pixels, image)  # (n, C, L)
    weights = np.concatenate([params["query.weight"], params["key.weight"]])
    biases = np.concatenate([params["query.bias"], params["key.bias"]])
    both = op("Relu", op("Add", op("MatMul", weights[None], cells), biases[None, :, None]))
    queries, keys = graph.slice(both, 0, d, 1), graph.slice(both, d, 2 * d, 1)
    pooled = graph.transpose(graph.reduce("Mean", queries, 2), 0, 2, 1)
    scores = op("MatMul", op("Mul", pooled, params["gains"][None]), keys)  # (n, heads, L)
    values, indices = op("TopK", scores, np.array([top_k]), outputs=2)
    shares = shares_above_least(graph, values, top_k, 0.0)
    weighted = op("Mul", shares, shares)
    centres = scaled_centres(encoder.window(image), image[:2]).astype(np.float32)
    rows, columns = (op("Gather", np.ascontiguousarray(centres[:, axis]), indices, axis=0) for axis in (0, 1))
    moments = graph.reshape(add_moments(graph, weighted, rows, columns, float(top_k), 6 * heads), -1, heads, 6)
    if encoder.values:
        moments = graph.concat(moments, _values(graph, encoder, params, cells, weighted, indices), axis=2)
    best = graph.reduce("Max", zero_to_one(graph, scores), 1, keep=False)
    features = graph.reshape(moments, -1, encoder.feature_size(image))
    return Encoded(features, best, graph.reshape(indices, 0, heads * top_k))


def _stem(graph: Graph, encoder: ResidualRank, params: Mapping[str, np.ndarray], x: str, image: Shape) -> str:
    """The stem's output, one column a cell."""
    for layer in encoder.layers(image[2]):
        weights = params[f"{layer.name}.weight"]
        kernel = weights.reshape(layer.filters, layer.size, layer.size, layer.inputs).transpose(0, 3, 1, 2)
        convolved = graph.op(
            "Conv",
            x,
            np.ascontiguousarray(kernel),
            params[f"{layer.name}.bias"],
            strides=[layer.stride] * 2,
            dilations=[layer.dilation] * 2,
            pads=[layer.padding] * 4,
        )
        outputs = graph.op("Relu", convolved)
        x = graph.op("Add", x, outputs) if layer.residual else outputs
    return graph.reshape(x, 0, encoder.layers(image[2])[-1].filters, -1)


def _values(
    graph: Graph, encoder: ResidualRank, params: Mapping[str, np.ndarray], cells: str, weighted: str, indices: str
) -> str:
    """Each head's values of its mean cell, (n, heads, values)."""
    op, heads = graph.op, encoder.heads
    channels = params["value.weight"].shape[1]
    place = op("Expand", graph.reshape(indices, 0, 1, heads * encoder.top_k), np.array([1, channels, 1]))
    chosen = graph.reshape(op("GatherElements", cells, place, axis=2), 0, channels, heads, encoder.top_k)
    mass = graph.reduce("Sum", weighted, 2)  # (n, heads, 1)
    has_mass = op("Greater", mass, 0.0)
    sums = graph.reduce("Sum", op("Mul", chosen, graph.unsqueeze(weighted, 1)), 3, keep=False)  # (n, C, heads)
    means = op("Div", graph.transpose(sums, 0, 2, 1), graph.either(has_mass, mass, 1.0))
    matrices = params["value.weight"].reshape(heads, encoder.values, channels)
    biases = params["value.bias"].reshape(heads, encoder.values)
    products = graph.reduce("Sum", op("Mul", graph.unsqueeze(means, 2), matrices[None]), 3, keep=False)
    return op("Add", products, op("Mul", op("Cast", has_mass, to=1), biases[None]))
