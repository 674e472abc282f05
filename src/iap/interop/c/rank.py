"""The rank encoder in C: one pass over the image pools the queries, another scores the keys; neither is stored."""

from collections.abc import Mapping

import numpy as np

from iap.attention.kernels.folding import Layer, position_shares
from iap.interop.c.patch_features import emit_patch_features, flip_names
from iap.interop.c.projection import Map, emit_projection
from iap.interop.c.selection import emit_patches, emit_select_top
from iap.interop.c.source import Source
from iap.interop.rank_options import refuse_rank_options
from iap.policies import Blind, Rank
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
ENCODE = """
static void encode(${name}_state *state, const ${name}_pixel *image, ${name}_index *selected,
                   float *features$flip_argument)
{
    float pooled[D];
    pool_queries(image, pooled$flip_value);
    score_keys(image, pooled, state->scores$flip_value);
    select_top(state->scores, selected);
    patch_features(image, state->scores, selected, features$flip_value);
}
"""


def emit_rank(source: Source, encoder: Rank, params: Mapping[str, np.ndarray], image: Shape) -> None:
    """`encode` for images of this shape, after preprocessing."""
    refuse_rank_options(encoder, "C code")
    window = encoder.window(image)
    layers = [Layer(params[f"{side}.weight"].T, params.get(f"{side}.bias")) for side in ("query", "key")]
    weights = np.concatenate([layer.weights.T for layer in layers]).astype(np.float64)
    biases = [np.zeros(encoder.d) if layer.bias is None else layer.bias for layer in layers]
    pixels = encoder.patch**2 * image[2]
    row_shares, column_shares = position_shares(weights, pixels, window.grid, encoder.positions)
    row_shares = row_shares + np.concatenate(biases)[:, None]
    emit_layers_on_pixels(
        source, "qk", image, encoder.patch, encoder.stride, weights[:, :pixels], row_shares, column_shares
    )
    names = {"name": source.name, **flip_names(source)}
    source.size("D", encoder.d)
    emit_patches(source, window)
    weight = ""
    if encoder.learn_pooling:
        source.floats("pooling", 1 + params["pooling"])
        weight = "pooling[i * QK_COLUMNS + j] * "
    source.code(POOL, weight=weight, **names)
    source.code(SCORE, **names)
    emit_select_top(source, encoder.top_k)
    source.size("SELECTED", encoder.top_k)
    emit_patch_features(source, encoder.features, params, window, image, encoder.top_k)
    source.code(ENCODE, **names)


def emit_layers_on_pixels(
    source: Source,
    name: str,
    image: Shape,
    patch: int,
    stride: int,
    weights: np.ndarray,
    row_shares: np.ndarray,
    column_shares: np.ndarray,
) -> None:
    """A projection of the preprocessed image; the scale and offset of uint8 pixels become part of the constants."""
    if source.pixel == "uint8_t":
        row_shares = row_shares - 0.5 * weights.sum(axis=1, keepdims=True)
        weights = weights / 255
    pixels = Map(f"{source.name}_pixel", *image, interleaved=True)
    emit_projection(source, name, pixels, patch, stride, weights, row_shares, column_shares, flips=source.flips)


def emit_blind(source: Source, encoder: Blind, params: Mapping[str, np.ndarray], image: Shape) -> None:
    """Nothing: there are no features."""
