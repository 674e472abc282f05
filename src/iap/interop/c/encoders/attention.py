"""Attention with any kernel in C: projections and features of queries and keys are stored, sums are over features.

Exponents are base 2: queries and keys of the softmax kernel carry a factor √(log₂ e). A feature is value·2^log; each
feature of the keys is divided by its largest size, each query by its own, so that nothing overflows.
"""

from collections.abc import Mapping, Sequence

import numpy as np

from iap.attention.features import ReLU, Softmax
from iap.attention.kernels.families import ROOT
from iap.attention.kernels.folding import copies_of, position_shares
from iap.interop.c.encoders.kernels import emit_kernel
from iap.interop.c.encoders.projection import emit_layers_on_pixels
from iap.interop.c.encoders.selection import emit_patches
from iap.interop.c.source import Source, flip_names
from iap.policies import Rank, Trans
from iap.policies.encoders.attention_config import with_scaled_pixels
from iap.policies.encoders.base import Shape

PROJECT = """
/* All layers on all patches, one output after the other. */
static void project(const ${name}_pixel *image, float *restrict out$flip_argument)
{
    float lines[QK_LINES] = {0}, x[QK_PADDED];
    for (int i = 0; i < QK_ROWS; ++i) {
        qk_read(image, i, lines$flip_value);
        for (int e = 0; e < PROJECTED; ++e) {
            qk_project(lines, i, e, x);
            memcpy(out + e * PATCHES + i * QK_COLUMNS, x, QK_COLUMNS * sizeof *x);
        }
    }
}
"""
ATTEND = """
/* The features of queries and keys as weights, and the attention that each patch receives, as scores. */
static void attend(${name}_state *state)
{
    float *queries = state->projected, *keys = queries + D * PATCHES;
    float *restrict logs = state->logs, *restrict peaks = state->peaks, *restrict counted = state->counted;
    float key_peaks[FEATURE_COUNT];
$prepare$prepare_keys    for (int f = 0; f < FEATURE_COUNT; ++f) {
        float *restrict weights = state->key_weights + f * PATCHES;
        put_logs(state, keys, f, logs);
        key_peaks[f] = logs[0];
        for (int j = 1; j < PATCHES; ++j) {
            key_peaks[f] = logs[j] > key_peaks[f] ? logs[j] : key_peaks[f];
        }
        for (int j = 0; j < PATCHES; ++j) {
            weights[j] = power_of_two(logs[j] - key_peaks[f]);
        }
$key_values    }
$prepare_queries    for (int f = 0; f < FEATURE_COUNT; ++f) {
        float *restrict weights = state->query_weights + f * PATCHES;
        put_logs(state, queries, f, weights);
        for (int j = 0; j < PATCHES; ++j) {
            weights[j] += key_peaks[f];
            peaks[j] = f == 0 || weights[j] > peaks[j] ? weights[j] : peaks[j];
        }
    }
    for (int f = 0; f < FEATURE_COUNT; ++f) {
        float *restrict weights = state->query_weights + f * PATCHES;
        for (int j = 0; j < PATCHES; ++j) {
            weights[j] = power_of_two(weights[j] - peaks[j]);
        }
$query_values    }
$count    memset(state->scores, 0, sizeof state->scores);
    for (int f = 0; f < FEATURE_COUNT; ++f) {
        const float *restrict query = state->query_weights + f * PATCHES;
        const float *restrict key = state->key_weights + f * PATCHES;
        float share = 0.0f;
        for (int j = 0; j < PATCHES; ++j) {
            share += $pooling * query[j];
        }
        for (int j = 0; j < PATCHES; ++j) {
            state->scores[j] += share * key[j];
        }
    }
}
"""
# How much each query counts: in proportion to its true size, or so that its attention sums to one.
COUNT_SIZES = """\
    float most = peaks[0];
    for (int j = 1; j < PATCHES; ++j) {
        most = peaks[j] > most ? peaks[j] : most;
    }
    for (int j = 0; j < PATCHES; ++j) {
        counted[j] = power_of_two(peaks[j] - most);
    }
"""
COUNT_ROWS = """\
    memset(counted, 0, sizeof state->counted);
    for (int f = 0; f < FEATURE_COUNT; ++f) {
        const float *restrict query = state->query_weights + f * PATCHES;
        const float *restrict key = state->key_weights + f * PATCHES;
        float total = 0.0f;
        for (int j = 0; j < PATCHES; ++j) {
            total += key[j];
        }
        for (int j = 0; j < PATCHES; ++j) {
            counted[j] += total * query[j];
        }
    }
    for (int j = 0; j < PATCHES; ++j) {
        counted[j] = counted[j] != 0.0f ? 1.0f / counted[j] : 0.0f;
    }
"""


def emit_attention(
    source: Source,
    encoder: Rank | Trans,
    params: Mapping[str, np.ndarray],
    image: Shape,
    names: Sequence[str],
    pooling: np.ndarray | None,
) -> float:
    """`project` and `attend`, for layers "query", "key" and further names.

    `pooling` is the weight of each query, all ones if None. Returns the factor 1/m of products of features, which
    scores leave out.
    """
    kernel, window = encoder.kernel, encoder.window(image)
    folded, positions = with_scaled_pixels(params, names, encoder, image[2])
    weights = np.concatenate([folded[f"{name}.weight"] for name in names]).astype(np.float64)
    biases = [folded.get(f"{name}.bias", np.zeros(len(folded[f"{name}.weight"]))) for name in names]
    shares = np.concatenate(biases).astype(np.float64)[:, None]
    if isinstance(kernel, Softmax):
        scale = ROOT * encoder.d**-0.25
        weights[: 2 * encoder.d] *= scale
        shares[: 2 * encoder.d] *= scale
    pixels = encoder.patch**2 * image[2]
    rows, columns = position_shares(weights, pixels, window.grid, positions)
    emit_layers_on_pixels(
        source, "qk", image, encoder.patch, encoder.stride, weights[:, :pixels], rows + shares, columns
    )
    emit_patches(source, window)
    count = encoder.d if isinstance(kernel, ReLU) else copies_of(kernel) * (2 if kernel.signed else 1)
    for name, size in {"D": encoder.d, "PROJECTED": len(weights), "FEATURE_COUNT": count}.items():
        source.size(name, size)
    arrays = {"projected": len(weights), "query_weights": count, "key_weights": count}
    arrays |= dict.fromkeys(("norms", "logs", "peaks", "counted"), 1)
    for name, size in arrays.items():
        source.work("float", name, size * window.grid.patches)
    if pooling is not None:
        source.floats("query_pooling", pooling)
    source.code(PROJECT, name=source.name, **flip_names(source))
    parts = emit_kernel(source, kernel, encoder.d)
    count_queries = COUNT_ROWS if encoder.normalise_rows else COUNT_SIZES
    weight = "counted[j]" if pooling is None else "query_pooling[j] * counted[j]"
    source.code(ATTEND, name=source.name, count=count_queries, pooling=weight, **parts)
    return 1.0 if isinstance(kernel, ReLU) else 1 / copies_of(kernel)
