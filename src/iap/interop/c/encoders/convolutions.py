"""Convolutions with ReLU in C: the stem of `MultiHeadRank`, and the whole `CNN` encoder."""

from collections.abc import Mapping

import numpy as np

from iap.interop.c.encoders.projection import Map, emit_layers_on_pixels, emit_projection
from iap.interop.c.source import Source, flip_names
from iap.policies import CNN
from iap.policies.encoders.base import Shape
from iap.policies.encoders.convolutions import Layers, map_shapes

LAYER = """
/* Convolution and ReLU, to one plane a filter. */
static void ${layer}_apply(const $type *image, float *map$flip_argument)
{
    float lines[${upper}_LINES] = {0}, x[${upper}_PADDED];
    for (int i = 0; i < ${upper}_ROWS; ++i) {
        ${layer}_read(image, i, lines$flip_value);
        for (int e = 0; e < $filters; ++e) {
            float *restrict out = map + (e * ${upper}_ROWS + i) * ${upper}_COLUMNS;
            ${layer}_project(lines, i, e, x);
            for (int j = 0; j < ${upper}_COLUMNS; ++j) {
                out[j] = x[j] > 0.0f ? x[j] : 0.0f;
            }
        }
    }
}
"""
ENCODE_CNN = """
static void encode(${name}_state *state, const ${name}_pixel *image, float *features$flip_argument)
{
$layers    for (int place = 0; place < $places; ++place) {
        for (int e = 0; e < $filters; ++e) {
            features[place * $filters + e] = $last[e * $places + place];
        }
    }
}
"""


def emit_convolutions(
    source: Source, name: str, layers: Layers, params: Mapping[str, np.ndarray], image: Shape
) -> tuple[Map, str]:
    """Functions `NAME0_apply` and so on; the last map, and the calls that compute it."""
    shapes, calls = map_shapes(layers, image), ""
    previous, before = Map(f"{source.name}_pixel", *image, interleaved=True), "image"
    for number, (filters, size, stride) in enumerate(layers):
        layer = f"{name}{number}"
        weights = np.array(params[f"{name}.{number}.weight"], np.float64)
        rows, columns, _ = shapes[number + 1]
        shares = np.repeat(np.array(params[f"{name}.{number}.bias"], np.float64)[:, None], rows, axis=1)
        none = np.zeros((filters, columns))
        flips = flip_names(source)
        if number == 0:
            emit_layers_on_pixels(source, layer, image, size, stride, weights, shares, none)
        else:
            flips = dict.fromkeys(flips, "")
            emit_projection(source, layer, previous, size, stride, weights, shares, none, flips=False)
        source.code(LAYER, layer=layer, upper=layer.upper(), type=previous.kind, filters=filters, **flips)
        source.work("float", f"{layer}_map", rows * columns * filters)
        calls += f"    {layer}_apply({before}, state->{layer}_map{flips['flip_value']});\n"
        previous, before = Map("float", rows, columns, filters, interleaved=False), f"state->{layer}_map"
    return previous, calls


def emit_cnn(source: Source, encoder: CNN, params: Mapping[str, np.ndarray], image: Shape) -> None:
    """`encode`: all outputs of the last layer."""
    layers = encoder.layers_for(image)
    last, calls = emit_convolutions(source, "layers", layers, params, image)
    source.code(
        ENCODE_CNN,
        name=source.name,
        layers=calls,
        places=last.height * last.width,
        filters=last.channels,
        last=f"state->layers{len(layers) - 1}_map",
        **flip_names(source),
    )
