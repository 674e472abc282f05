"""The encoder with several heads in C: keys are stored, since each head scores them."""

from collections.abc import Mapping

import numpy as np

from iap.interop.c.encoders.convolutions import emit_convolutions
from iap.interop.c.encoders.patch_features import emit_moments
from iap.interop.c.encoders.projection import emit_layers_on_pixels, emit_projection
from iap.interop.c.encoders.selection import emit_differ, emit_patches, emit_select_top
from iap.interop.c.source import Source, flip_names
from iap.policies import MultiHeadRank
from iap.policies.encoders.base import Shape

PROJECT = """
/* The sums of relu(query), and relu(key) of each patch, one dimension after the other. */
static void project(const $type *image, float *pooled, float *keys$flip_argument)
{
    float lines[QK_LINES] = {0}, x[QK_PADDED];
    for (int e = 0; e < D; ++e) {
        pooled[e] = 0.0f;
    }
    for (int i = 0; i < QK_ROWS; ++i) {
        qk_read(image, i, lines$flip_value);
        for (int e = 0; e < D; ++e) {
            float *restrict key = keys + e * PATCHES + i * QK_COLUMNS;
            float total = 0.0f;
            qk_project(lines, i, e, x);
            for (int j = 0; j < QK_COLUMNS; ++j) {
                total += x[j] > 0.0f ? x[j] : 0.0f;
            }
            pooled[e] += total;
            qk_project(lines, i, D + e, x);
            for (int j = 0; j < QK_COLUMNS; ++j) {
                key[j] = x[j] > 0.0f ? x[j] : 0.0f;
            }
        }
    }
}
"""
HEAD = """
/* The moments of the patches that one head selects, weighed by the squares of their shares. */
static void encode_head(${name}_state *state, const float *pooled, int head, ${name}_index *selected, float *features)
{
    float *restrict scores = state->head_scores, *restrict best = state->scores;
    float weights[TOP_K], least;
    for (int j = 0; j < PATCHES; ++j) {
        scores[j] = 0.0f;
    }
    for (int e = 0; e < D; ++e) {
        const float *restrict key = state->keys + e * PATCHES;
        const float weight = gains[head * D + e] * pooled[e];
        for (int j = 0; j < PATCHES; ++j) {
            scores[j] += weight * key[j];
        }
    }
    select_top(scores, selected);
    least = scores[0];
    for (int j = 1; j < PATCHES; ++j) {
        least = scores[j] < least ? scores[j] : least;
    }
    const float most = scores[selected[0]], lowest = scores[selected[TOP_K - 1]];
    if (differ(least, most)) {
        for (int j = 0; j < PATCHES; ++j) {
            const float share = (scores[j] - least) / (most - least);
            best[j] = share > best[j] ? share : best[j];
        }
    }
    for (int i = 0; i < TOP_K; ++i) {
        const float share = differ(lowest, most) ? (scores[selected[i]] - lowest) / (most - lowest) : 0.0f;
        weights[i] = share * share;
    }
    put_moments(weights, selected, (float)TOP_K, features);
}
"""
ENCODE = """
static void encode(${name}_state *state, const ${name}_pixel *image, ${name}_index *selected,
                   float *features$flip_argument)
{
    float pooled[D];
$stem    project($input, pooled, state->keys$project_flip);
    for (int e = 0; e < D; ++e) {
        pooled[e] /= (float)PATCHES;
    }
    for (int j = 0; j < PATCHES; ++j) {
        state->scores[j] = 0.0f;
    }
    for (int head = 0; head < HEADS; ++head) {
        encode_head(state, pooled, head, selected + head * TOP_K, features + head * 6);
    }
}
"""


def emit_multi_head_rank(
    source: Source, encoder: MultiHeadRank, params: Mapping[str, np.ndarray], image: Shape
) -> None:
    """`encode`; the selected patches are those of each head in turn."""
    window = encoder.window(image)
    last, stem = emit_convolutions(source, "stem", encoder.stem, params, image)
    rows, columns = window.grid
    weights = np.concatenate([params["query.weight"], params["key.weight"]]).astype(np.float64)
    biases = np.concatenate([params["query.bias"], params["key.bias"]]).astype(np.float64)
    shares, none = np.repeat(biases[:, None], rows, axis=1), np.zeros((len(weights), columns))
    flips = flip_names(source)
    inner = dict.fromkeys(flips, "") if encoder.stem else flips
    if encoder.stem:
        emit_projection(source, "qk", last, encoder.patch, encoder.stride, weights, shares, none, flips=False)
    else:
        emit_layers_on_pixels(source, "qk", image, encoder.patch, encoder.stride, weights, shares, none)
    source.size("D", encoder.d)
    source.size("HEADS", encoder.heads)
    source.size("SELECTED", encoder.heads * encoder.top_k)
    emit_patches(source, window)
    source.work("float", "head_scores", window.grid.patches)
    source.work("float", "keys", encoder.d * window.grid.patches)
    source.floats("gains", params["gains"])
    emit_select_top(source, encoder.top_k)
    emit_differ(source)
    emit_moments(source, window, image[0], image[1], encoder.top_k)
    source.code(PROJECT, type=last.kind, **inner)
    source.code(HEAD, name=source.name)
    given = f"state->stem{len(encoder.stem) - 1}_map" if encoder.stem else "image"
    source.code(ENCODE, name=source.name, stem=stem, input=given, project_flip=inner["flip_value"], **flips)
