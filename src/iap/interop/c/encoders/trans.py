"""IAP-trans in C: P·(A·V + V), with A never formed."""

from collections.abc import Mapping

import numpy as np

from iap.attention.mixing import LAYER_NORM_EPSILON
from iap.interop.c.encoders.attention import emit_attention
from iap.interop.c.source import Source, flip_names, float_literal
from iap.policies import Trans
from iap.policies.encoders.base import Shape

MIX = """
/* Value v of each patch, mixed by attention. */
static void mix(const ${name}_state *state, int v, float *restrict mixed)
{
    const float *restrict values = state->projected + (2 * D + v) * PATCHES;
    memset(mixed, 0, PATCHES * sizeof *mixed);
    for (int f = 0; f < FEATURE_COUNT; ++f) {
        const float *restrict query = state->query_weights + f * PATCHES;
        const float *restrict key = state->key_weights + f * PATCHES;
        float sum = 0.0f;
        for (int j = 0; j < PATCHES; ++j) {
            sum += key[j] * values[j];
        }
        for (int j = 0; j < PATCHES; ++j) {
            mixed[j] += sum * query[j];
        }
    }
    for (int j = 0; j < PATCHES; ++j) {
        mixed[j] = mixed[j] * $factor$residual;
    }
}
"""
NORMALISE = """
/* A row brought to mean 0 and variance 1. */
static void normalise(float *row)
{
    float mean = 0.0f, variance = 0.0f;
    for (int v = 0; v < VALUES; ++v) {
        mean += row[v] / (float)VALUES;
    }
    for (int v = 0; v < VALUES; ++v) {
        row[v] -= mean;
        variance += row[v] * row[v] / (float)VALUES;
    }
    const float scale = 1.0f / sqrtf(variance + $epsilon);
    for (int v = 0; v < VALUES; ++v) {
        row[v] *= scale;
    }
}
"""
ENCODE = """
static void encode(${name}_state *state, const ${name}_pixel *image, float *features$flip_argument)
{
    float *restrict mixed = state->logs;
    project(image, state->projected$flip_value);
    attend(state);
    for (int v = 0; v < VALUES; ++v) {
        mix(state, v, mixed);
        for (int row = 0; row < MIXED_ROWS; ++row) {
            const float *restrict weights = pooling + row * PATCHES;
            float sum = 0.0f;
            for (int j = 0; j < PATCHES; ++j) {
                sum += weights[j] * mixed[j];
            }
            features[row * VALUES + v] = sum;
        }
    }
$normalise}
"""
NORMALISE_ROWS = """\
    for (int row = 0; row < MIXED_ROWS; ++row) {
        normalise(features + row * VALUES);
    }
"""


def emit_trans(source: Source, encoder: Trans, params: Mapping[str, np.ndarray], image: Shape) -> None:
    """`encode`; no patch is selected, and the scores are the attention that each patch receives."""
    weights = np.abs(params["pooling"]).mean(axis=0)
    size = emit_attention(source, encoder, params, image, ("query", "key", "value"), weights)
    source.size("VALUES", encoder.value_size)
    source.size("MIXED_ROWS", encoder.rows)
    source.floats("pooling", params["pooling"])
    factor = "state->counted[j]" if encoder.normalise_rows else f"{float_literal(size)} * power_of_two(state->peaks[j])"
    source.code(MIX, name=source.name, factor=factor, residual=" + values[j]" if encoder.residual else "")
    normalise = ""
    if encoder.layer_norm:
        source.code(NORMALISE, epsilon=float_literal(LAYER_NORM_EPSILON))
        normalise = (
            "    for (int row = 0; row < MIXED_ROWS; ++row) {\n        normalise(features + row * VALUES);\n    }\n"
        )
    source.code(ENCODE, name=source.name, normalise=normalise, **flip_names(source))
