"""The residual encoder in C: planes of channels, "same" convolutions with dilation, heads with moments and values."""

from collections.abc import Mapping

import numpy as np

from iap.interop.c.encoders.multi_head_rank import HEAD
from iap.interop.c.encoders.patch_features import emit_moments
from iap.interop.c.encoders.selection import emit_differ, emit_patches, emit_select_top
from iap.interop.c.source import Source, flip_names
from iap.policies.encoders.base import Shape
from iap.policies.encoders.residual_rank import ResidualRank
from iap.policies.encoders.residual_rank.stem import StemLayer, stem_output

PLANES = """
/* The image as one plane a channel, around 0. */
static void put_planes(const ${name}_pixel *image, float *planes$flip_argument)
{
    for (int c = 0; c < SHOWN_CHANNELS; ++c) {
        for (int y = 0; y < HEIGHT; ++y) {
            for (int x = 0; x < WIDTH; ++x) {
                const float value = (float)image[(y * WIDTH + $column) * SHOWN_CHANNELS + c];
                planes[(c * HEIGHT + y) * WIDTH + x] = value$scaling;
            }
        }
    }
}
"""
LAYER = """
/* A convolution with "same" padding and ReLU$residual_note. */
static void ${layer}_apply(const float *restrict in, float *restrict out)
{
    enum { ROWS = $rows, COLUMNS = $columns, PADDED = $padded, INPUTS = $inputs, FILTERS = $filters, SIZE = $size };
    enum { IN_ROWS = $in_rows, IN_COLUMNS = $in_columns, STRIDE = $stride, DILATION = $dilation, TAPS = SIZE * SIZE };
    float taps[INPUTS * TAPS * PADDED] = {0};
    for (int i = 0; i < ROWS; ++i) {
        for (int c = 0; c < INPUTS; ++c) {
            for (int k = 0; k < TAPS; ++k) {
                float *restrict tap = taps + (c * TAPS + k) * PADDED;
                const int y = i * STRIDE + (k / SIZE - SIZE / 2) * DILATION;
                const int shift = (k % SIZE - SIZE / 2) * DILATION;
                for (int j = 0; j < COLUMNS; ++j) {
                    const int x = j * STRIDE + shift;
                    const int inside = y >= 0 && y < IN_ROWS && x >= 0 && x < IN_COLUMNS;
                    tap[j] = inside ? in[(c * IN_ROWS + y) * IN_COLUMNS + x] : 0.0f;
                }
            }
        }
        for (int f = 0; f < FILTERS; ++f) {
            const float *weight = ${layer}_weights + f * INPUTS * TAPS;
            float sum[PADDED];
            for (int j = 0; j < PADDED; ++j) {
                sum[j] = ${layer}_biases[f];
            }
            int k = 0;
            for (; k + 4 <= INPUTS * TAPS; k += 4) {
                const float *t = taps + k * PADDED;
                const float w0 = weight[k], w1 = weight[k + 1], w2 = weight[k + 2], w3 = weight[k + 3];
                for (int j = 0; j < PADDED; ++j) {
                    sum[j] += w0 * t[j] + w1 * t[PADDED + j] + w2 * t[2 * PADDED + j] + w3 * t[3 * PADDED + j];
                }
            }
            for (; k < INPUTS * TAPS; ++k) {
                for (int j = 0; j < PADDED; ++j) {
                    sum[j] += weight[k] * taps[k * PADDED + j];
                }
            }
            for (int j = 0; j < COLUMNS; ++j) {
                out[(f * ROWS + i) * COLUMNS + j] = (sum[j] > 0.0f ? sum[j] : 0.0f)$residual;
            }
        }
    }
}
"""
PROJECT = """
/* The sums of relu(query), and relu(key) of each cell. */
static void project(const float *restrict cells, float *pooled, float *restrict keys)
{
    for (int e = 0; e < 2 * D; ++e) {
        float x[PATCHES], total = 0.0f;
        for (int j = 0; j < PATCHES; ++j) {
            x[j] = qk_biases[e];
        }
        for (int c = 0; c < CELL; ++c) {
            const float weight = qk_weights[e * CELL + c];
            for (int j = 0; j < PATCHES; ++j) {
                x[j] += weight * cells[c * PATCHES + j];
            }
        }
        for (int j = 0; j < PATCHES; ++j) {
            x[j] = x[j] > 0.0f ? x[j] : 0.0f;
            total += x[j];
        }
        if (e < D) {
            pooled[e] = total / (float)PATCHES;
        } else {
            memcpy(keys + (e - D) * PATCHES, x, sizeof x);
        }
    }
}
"""
VALUES = """
/* The values of the weighted mean of the selected cells; zeros without mass. */
static void put_values(const float *weights, const float *cells, const ${name}_index *selected, int head, float *out)
{
    float total = 0.0f;
    for (int i = 0; i < TOP_K; ++i) {
        total += weights[i];
    }
    for (int v = 0; v < VALUES; ++v) {
        out[v] = total > 0.0f ? value_biases[head * VALUES + v] : 0.0f;
    }
    for (int c = 0; c < CELL && total > 0.0f; ++c) {
        float mean = 0.0f;
        for (int i = 0; i < TOP_K; ++i) {
            mean += weights[i] * cells[c * PATCHES + selected[i]];
        }
        for (int v = 0; v < VALUES; ++v) {
            out[v] += value_weights[(head * VALUES + v) * CELL + c] * (mean / total);
        }
    }
}
"""
ENCODE = """
static void encode(${name}_state *state, const ${name}_pixel *image, ${name}_index *selected,
                   float *features$flip_argument)
{
    float pooled[D];
    put_planes(image, state->planes$flip_value);
$stem    project($cells, pooled, state->keys);
    for (int j = 0; j < PATCHES; ++j) {
        state->scores[j] = 0.0f;
    }
    for (int head = 0; head < HEADS; ++head) {
        encode_head(state, pooled, head, selected + head * TOP_K, features + head * (6 + $values));
    }
}
"""
VECTOR = 8


def emit_residual_rank(source: Source, encoder: ResidualRank, params: Mapping[str, np.ndarray], image: Shape) -> None:
    """`encode`; the selected patches are those of each head in turn."""
    layers, window = encoder.layers(image[2]), encoder.window(image)
    height, width, channels = image
    cell = stem_output(layers, image)[2]
    sizes = {"D": encoder.d, "HEADS": encoder.heads, "CELL": cell, "SELECTED": encoder.heads * encoder.top_k}
    for name, size in sizes.items():
        source.size(name, size)
    source.work("float", "planes", height * width * channels)
    scaling = " / 255.0f - 0.5f" if source.pixel == "uint8_t" else ""
    source.code(PLANES, name=source.name, scaling=scaling, **flip_names(source))
    before, stem, shape = "state->planes", "", image
    for number, layer in enumerate(layers):
        after = (-(-shape[0] // layer.stride), -(-shape[1] // layer.stride), layer.filters)
        _emit_layer(source, f"stem{number}", layer, params, shape, after)
        source.work("float", f"stem{number}_map", after[0] * after[1] * after[2])
        stem += f"    stem{number}_apply({before}, state->stem{number}_map);\n"
        before, shape = f"state->stem{number}_map", after
    emit_patches(source, window)
    source.work("float", "head_scores", window.grid.patches)
    source.work("float", "keys", encoder.d * window.grid.patches)
    for name in ("weight", "bias"):
        both = np.concatenate([params[f"query.{name}"], params[f"key.{name}"]])
        source.floats("qk_weights" if name == "weight" else "qk_biases", both)
    source.floats("gains", params["gains"])
    emit_select_top(source, encoder.top_k)
    emit_differ(source)
    emit_moments(source, window, height, width, encoder.top_k)
    source.code(PROJECT)
    head = HEAD
    if encoder.values:
        source.size("VALUES", encoder.values)
        source.floats("value_weights", params["value.weight"])
        source.floats("value_biases", params["value.bias"])
        source.code(VALUES, name=source.name)
        call = f"put_values(weights, {before}, selected, head, features + 6);"
        head = HEAD.rstrip().removesuffix("}") + f"    {call}\n}}"
    source.code(head, name=source.name)
    source.code(ENCODE, name=source.name, stem=stem, cells=before, values=encoder.values, **flip_names(source))


def _emit_layer(
    source: Source, name: str, layer: StemLayer, params: Mapping[str, np.ndarray], before: Shape, after: Shape
) -> None:
    """`NAME_apply`, with the weights in the order channel, row, column."""
    weights = params[f"{layer.name}.weight"].reshape(layer.filters, layer.size**2, layer.inputs).transpose(0, 2, 1)
    source.floats(f"{name}_weights", weights)
    source.floats(f"{name}_biases", params[f"{layer.name}.bias"])
    columns = after[1]
    source.code(
        LAYER,
        layer=name,
        rows=after[0],
        columns=columns,
        padded=columns if columns < VECTOR else -(-columns // VECTOR) * VECTOR,
        inputs=layer.inputs,
        filters=layer.filters,
        size=layer.size,
        in_rows=before[0],
        in_columns=before[1],
        stride=layer.stride,
        dilation=layer.dilation,
        residual_note=", plus the input" if layer.residual else "",
        residual=" + in[(f * IN_ROWS + i) * IN_COLUMNS + j]" if layer.residual else "",
    )
