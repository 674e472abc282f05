"""The compiled encoder: planes of channels, "same" convolutions with dilation, heads."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from iap._compile import compiled, implements
from iap.attention.kernels.moments import differ, put_moments, shares_above_least
from iap.attention.kernels.projection import FAST
from iap.attention.kernels.relu import pool_relu, score_relu
from iap.attention.kernels.selection import select_top
from iap.attention.kernels.top_k import sort_best_first
from iap.attention.moments import MOMENTS
from iap.policies.encoders.base import encode
from iap.policies.encoders.residual_rank.stem import StemLayer

BLOCK = 256  # cells whose inputs are multiplied at a time


class LayerArrays(NamedTuple):
    """One layer: weights (filters, channels·size²), channel first, and how they are applied."""

    weights: Any
    biases: Any
    size: Any
    stride: Any
    dilation: Any
    residual: Any


class ResidualRankArrays(NamedTuple):
    """The stem, scale and offset of pixels, queries and keys as one layer, the heads' gains, l, values, and centres."""

    layers: Any
    pixels: Any
    weights: Any
    biases: Any
    gains: Any
    top_k: Any
    value_weights: Any
    value_biases: Any
    centres: Any


def compile_stem(params: Mapping[str, np.ndarray], layers: Sequence[StemLayer]) -> tuple[LayerArrays, ...]:
    """The layers with their weights in the order of `_fill_inputs`."""
    return tuple(
        LayerArrays(
            np.array(  # a copy, writable as that of every layer: the layers must be of one type
                params[f"{layer.name}.weight"]
                .reshape(layer.filters, layer.size**2, layer.inputs)
                .transpose(0, 2, 1)
                .reshape(layer.filters, -1),
                np.float32,
                order="C",
            ),
            np.array(params[f"{layer.name}.bias"], np.float32),
            layer.size,
            layer.stride,
            layer.dilation,
            layer.residual,
        )
        for layer in layers
    )


@implements(encode, ResidualRankArrays)
@compiled(inner=True)
def encode_residual_rank(encoder, image, context):
    """Each head's moments and values; the scores are each cell's best over the heads, 0 to 1."""
    planes = image_planes(image, encoder.pixels[0], encoder.pixels[1])
    for layer in encoder.layers:
        planes = convolve_same(layer, planes)
    cells = planes.reshape(planes.shape[0], planes.shape[1] * planes.shape[2])
    x = np.empty((len(encoder.weights), cells.shape[1]), np.float32)
    multiply(encoder.weights, encoder.biases, cells, x, 0)
    features, best, selected = read_heads(encoder, x, cells)
    return features, best, selected, context.keys


@compiled
def read_heads(encoder, x, cells):
    """Features, scores and selected cells of all heads, from queries and keys (2d, L) and cells (channels, L)."""
    heads, d = encoder.gains.shape
    width = MOMENTS + encoder.value_weights.shape[1]
    pooled = pool_relu(x[:d], np.empty(0, np.float32)) / x.shape[1]
    features = np.zeros(heads * width, np.float32)
    best, is_selected = np.zeros(x.shape[1], np.float32), np.zeros(x.shape[1], np.bool_)
    own, scores = np.empty(d, np.float32), np.empty(x.shape[1], np.float32)
    for head in range(heads):
        for e in range(d):
            own[e] = encoder.gains[head, e] * pooled[e]
        score_relu(x[d:], own, scores)
        selected = select_top(scores, encoder.top_k)
        is_selected[selected] = True
        least, most = np.min(scores), scores[selected[0]]
        if differ(least, most):
            for index in range(len(scores)):
                best[index] = max(best[index], (scores[index] - least) / (most - least))
        if not differ(scores[selected[-1]], most):
            continue  # all scores are equal: the features are zeros
        weights = shares_above_least(scores, selected) ** 2
        out = features[head * width : (head + 1) * width]
        put_moments(weights, encoder.centres, selected, float(encoder.top_k), out)
        put_values(weights, cells, selected, encoder.value_weights[head], encoder.value_biases[head], out[MOMENTS:])
    indices = np.flatnonzero(is_selected)
    sort_best_first(best, indices)
    return features, best, indices


@compiled
def put_values(weights, cells, selected, value_weights, value_biases, out):
    """Write the values of the weighted mean of the selected cells."""
    for value in range(len(out)):
        out[value] = value_biases[value]
    total = np.sum(weights)
    for c in range(len(cells)):
        mean = 0.0
        for i in range(len(selected)):
            mean += weights[i] * cells[c, selected[i]]
        mean /= total
        for value in range(len(out)):
            out[value] += value_weights[value, c] * mean


@compiled(fastmath=FAST)
def image_planes(image, scale, offset):
    """(channels, height, width) as float32, times `scale` plus `offset`."""
    height, width, channels = image.shape
    planes = np.empty((channels, height, width), np.float32)
    scale, offset = np.float32(scale), np.float32(offset)
    for c in range(channels):
        for y in range(height):
            for x in range(width):
                planes[c, y, x] = np.float32(image[y, x, c]) * scale + offset
    return planes


@compiled
def convolve_same(layer, planes):
    """A convolution with "same" padding and ReLU of planes (channels, H, W), plus the planes if it is residual."""
    channels, height, width = planes.shape
    stride = layer.stride
    padding = (layer.size - 1) // 2 * layer.dilation
    rows, columns = -(-height // stride), -(-width // stride)
    padded = split_columns(planes, stride, padding, columns)
    filters, inputs = layer.weights.shape
    out = np.empty((filters, rows * columns), np.float32)
    together = max(1, BLOCK // columns)
    for first in range(0, rows, together):
        count = min(together, rows - first)
        block = np.empty((inputs, count * columns), np.float32)
        fill_inputs(padded, first, count, columns, layer.size, stride, layer.dilation, block)
        multiply(layer.weights, layer.biases, block, out, first * columns)
    flat = planes.reshape(channels, height * width)
    for f in range(filters):
        row = out[f]
        for i in range(len(row)):
            row[i] = max(row[i], np.float32(0))
        if layer.residual:
            for i in range(len(row)):
                row[i] += flat[f, i]
    return out.reshape(filters, rows, columns)


@compiled
def split_columns(planes, stride, padding, columns):
    """Padded planes (channels, stride, rows, columns): those columns together that one output column apart."""
    channels, height, width = planes.shape
    out = np.zeros((channels, stride, height + 2 * padding, 2 * padding // stride + columns + 1), np.float32)
    for c in range(channels):
        for y in range(height):
            for phase in range(stride):
                line = out[c, phase, y + padding]
                start = (phase - padding) % stride
                place = (start + padding) // stride
                for x in range(start, width, stride):
                    line[place] = planes[c, y, x]
                    place += 1
    return out


@compiled
def fill_inputs(padded, first, count, columns, size, stride, dilation, block):
    """The inputs of `count` rows of outputs, one row for each channel and weight."""
    k = 0
    for c in range(padded.shape[0]):
        for i in range(size):
            for j in range(size):
                phase, start = j * dilation % stride, j * dilation // stride
                for row in range(count):
                    line = padded[c, phase, (first + row) * stride + i * dilation]
                    out = block[k, row * columns : (row + 1) * columns]
                    for x in range(columns):
                        out[x] = line[start + x]
                k += 1


@compiled(fastmath=FAST)
def multiply(weights, biases, inputs, out, start):
    """Write weights·inputs + biases to the columns of `out` from `start` on, in tiles of 4 × 4 weights."""
    rows, terms = weights.shape
    stop = start + inputs.shape[1]
    whole_rows, whole_terms = rows // 4 * 4, terms // 4 * 4
    for r in range(rows):
        out[r, start:stop] = biases[r]
    for r in range(0, whole_rows, 4):
        o0, o1, o2, o3 = out[r, start:stop], out[r + 1, start:stop], out[r + 2, start:stop], out[r + 3, start:stop]
        w0, w1, w2, w3 = weights[r], weights[r + 1], weights[r + 2], weights[r + 3]
        for k in range(0, whole_terms, 4):
            x0, x1, x2, x3 = inputs[k], inputs[k + 1], inputs[k + 2], inputs[k + 3]
            a0, a1, a2, a3 = w0[k], w0[k + 1], w0[k + 2], w0[k + 3]
            b0, b1, b2, b3 = w1[k], w1[k + 1], w1[k + 2], w1[k + 3]
            c0, c1, c2, c3 = w2[k], w2[k + 1], w2[k + 2], w2[k + 3]
            d0, d1, d2, d3 = w3[k], w3[k + 1], w3[k + 2], w3[k + 3]
            for j in range(len(o0)):
                y0, y1, y2, y3 = x0[j], x1[j], x2[j], x3[j]
                o0[j] += a0 * y0 + a1 * y1 + a2 * y2 + a3 * y3
                o1[j] += b0 * y0 + b1 * y1 + b2 * y2 + b3 * y3
                o2[j] += c0 * y0 + c1 * y1 + c2 * y2 + c3 * y3
                o3[j] += d0 * y0 + d1 * y1 + d2 * y2 + d3 * y3
    for r in range(rows):
        for k in range(whole_terms if r < whole_rows else 0, terms):
            x, o, w = inputs[k], out[r, start:stop], weights[r, k]
            for j in range(len(o)):
                o[j] += w * x[j]
