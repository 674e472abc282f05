"""The rank encoder in C.

With ReLU features one pass over the image pools the queries and another scores the keys, and neither is stored; other
kernels store both.
"""

from collections.abc import Mapping

import numpy as np

from iap.attention.features import ReLU
from iap.attention.kernels.folding import position_shares
from iap.interop.c.encoders.attention import emit_attention
from iap.interop.c.encoders.patch_features import emit_patch_features
from iap.interop.c.encoders.projection import emit_layers_on_pixels
from iap.interop.c.encoders.selection import emit_patches, emit_select_top
from iap.interop.c.source import Source, filled, flip_names
from iap.interop.rank_options import refuse_rank_options
from iap.policies import Blind, Rank
from iap.policies.encoders.attention_config import with_scaled_pixels
from iap.policies.encoders.base import Shape

POOL = """
/* The sums of relu(query) over all patches. */
static void pool_queries(const ${name}_pixel *image, float *pooled$flip_argument)
{
    float lines[QK_LINES] = {0}, x[QK_PADDED];
    for (int e = 0; e < D; ++e) {
        pooled[e] = 0.0f;
    }
    for (int i = 0; i < QK_ROWS; ++i) {
        qk_read(image, i, lines$flip_value);
        for (int e = 0; e < D; ++e) {
            float total = 0.0f;
            qk_project(lines, i, e, x);
            for (int j = 0; j < QK_COLUMNS; ++j) {
                total += ${weight}(x[j] > 0.0f ? x[j] : 0.0f);
            }
            pooled[e] += total;
        }
    }
}
"""
SCORE = """
/* The product of relu(key) with the pooled queries, for each patch. */
static void score_keys(const ${name}_pixel *image, const float *pooled, float *scores$flip_argument)
{
    float lines[QK_LINES] = {0}, x[QK_PADDED];
    for (int i = 0; i < QK_ROWS; ++i) {
        float *restrict row = scores + i * QK_COLUMNS;
        qk_read(image, i, lines$flip_value);
        for (int j = 0; j < QK_COLUMNS; ++j) {
            row[j] = 0.0f;
        }
        for (int e = 0; e < D; ++e) {
            const float weight = pooled[e];
            qk_project(lines, i, D + e, x);
            for (int j = 0; j < QK_COLUMNS; ++j) {
                row[j] += weight * (x[j] > 0.0f ? x[j] : 0.0f);
            }
        }
    }
}
"""
TWO_PASSES = """\
    float pooled[D];
    pool_queries(image, pooled$flip_value);
    score_keys(image, pooled, state->scores$flip_value);
"""
STORED = """\
    project(image, state->projected$flip_value);
    attend(state);
"""
ENCODE = """
static void encode(${name}_state *state, const ${name}_pixel *image, ${name}_index *selected,
                   float *features$flip_argument)
{
${score}    select_top(state->scores, selected);
    patch_features(image, state->scores, selected, features$flip_value);
}
"""


def emit_rank(source: Source, encoder: Rank, params: Mapping[str, np.ndarray], image: Shape) -> None:
    """`encode` for images of this shape, after preprocessing."""
    refuse_rank_options(encoder, "C code")
    window, names = encoder.window(image), {"name": source.name, **flip_names(source)}
    pooling = 1 + params["pooling"] if encoder.learn_pooling else None
    if isinstance(encoder.kernel, ReLU) and not encoder.normalise_rows:
        _emit_two_passes(source, encoder, params, image, pooling)
        score = filled(TWO_PASSES, **names)
    else:
        emit_attention(source, encoder, params, image, ("query", "key"), pooling)
        score = filled(STORED, **names)
    emit_select_top(source, encoder.top_k)
    source.size("SELECTED", encoder.top_k)
    emit_patch_features(source, encoder.features, params, window, image, encoder.top_k)
    source.code(ENCODE, score=score, **names)


def _emit_two_passes(
    source: Source, encoder: Rank, params: Mapping[str, np.ndarray], image: Shape, pooling: np.ndarray | None
) -> None:
    """`pool_queries` and `score_keys`."""
    window, sides = encoder.window(image), ("query", "key")
    folded, positions = with_scaled_pixels(params, sides, encoder, image[2])
    weights = np.concatenate([folded[f"{side}.weight"] for side in sides]).astype(np.float64)
    biases = [folded.get(f"{side}.bias", np.zeros(encoder.d)) for side in sides]
    pixels = encoder.patch**2 * image[2]
    row_shares, column_shares = position_shares(weights, pixels, window.grid, positions)
    row_shares = row_shares + np.concatenate(biases)[:, None]
    emit_layers_on_pixels(
        source, "qk", image, encoder.patch, encoder.stride, weights[:, :pixels], row_shares, column_shares
    )
    names = {"name": source.name, **flip_names(source)}
    source.size("D", encoder.d)
    emit_patches(source, window)
    weight = ""
    if pooling is not None:
        source.floats("pooling", pooling)
        weight = "pooling[i * QK_COLUMNS + j] * "
    source.code(POOL, weight=weight, **names)
    source.code(SCORE, **names)


def emit_blind(source: Source, encoder: Blind, params: Mapping[str, np.ndarray], image: Shape) -> None:
    """Nothing: there are no features."""
