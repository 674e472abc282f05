"""Separable filters over the masked image in C: only the selected patches are read."""

from collections.abc import Mapping

import numpy as np

from iap.interop.c.source import Source, flip_names, pixel_scale
from iap.policies import SeparableFilters
from iap.policies.encoders.base import Shape, Window

FILTERS = """
/* Separable filters over the image in which all other patches are masked. */
static void patch_features(const ${name}_pixel *image, const float *scores, const ${name}_index *selected,
                           float *features$flip_argument)
{
    (void)scores;
    memcpy(features, filter_biases, sizeof filter_biases);
    for (int i = 0; i < TOP_K; ++i) {
        const int top = selected[i] / PATCH_COLUMNS * $patch, left = selected[i] % PATCH_COLUMNS * $patch;
        float pixels[$patch * $patch * SHOWN_CHANNELS];
        for (int y = 0; y < $patch; ++y) {
            for (int x0 = 0; x0 < $patch; ++x0) {
                const int x = left + x0, place = (y * $patch + x0) * SHOWN_CHANNELS;
                for (int c = 0; c < SHOWN_CHANNELS; ++c) {
                    pixels[place + c] = (float)image[((top + y) * WIDTH + $column) * SHOWN_CHANNELS + c] * $scale$shift;
                }
            }
        }
        for (int u = 0; u < FILTERS; ++u) {
            const float *rows = filter_rows + u * $rows + top;
            const float *columns = filter_columns + u * $columns + left * SHOWN_CHANNELS;
            for (int y = 0; y < $patch; ++y) {
                float sum = 0.0f;
                for (int k = 0; k < $patch * SHOWN_CHANNELS; ++k) {
                    sum += columns[k] * pixels[y * $patch * SHOWN_CHANNELS + k];
                }
                features[u] += rows[y] * sum;
            }
        }
    }
    for (int u = 0; u < FILTERS; ++u) {
        features[u] = tanhf(features[u]);
    }
}
"""


def emit_separable_filters(
    source: Source,
    features: SeparableFilters,
    params: Mapping[str, np.ndarray],
    window: Window,
    image: Shape,
    top_k: int,
) -> None:
    """`patch_features`, for images of this shape after preprocessing."""
    source.size("FILTERS", features.filters)
    for name in ("bias", "rows", "columns"):
        array = params["filters.bias" if name == "bias" else f"{name}.weight"]
        source.floats("filter_biases" if name == "bias" else f"filter_{name}", array)
    scale, shift = pixel_scale(source)
    source.code(
        FILTERS,
        name=source.name,
        patch=window.patch,
        rows=params["rows.weight"].shape[1],
        columns=params["columns.weight"].shape[1],
        scale=scale,
        shift=shift,
        **flip_names(source),
    )
