"""Selected patches → features in C: `SelectedPatches`, `PooledMoments` and `SeparableFilters`."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from iap.interop.c.encoders.selection import emit_centres, emit_differ
from iap.interop.c.encoders.separable_filters import emit_separable_filters
from iap.interop.c.source import Source, filled, flip_names, pixel_scale
from iap.policies import PooledMoments, SelectedPatches, SeparableFilters
from iap.policies.encoders.base import Shape, Window
from iap.policies.encoders.patch_features import PatchFeatures

MOST_IN_FLOAT = 32
MOMENTS = """
/* Centroid, second central moments and mass / divisor of weighted patches; zeros without mass. */
static void put_moments(const float *weights, const ${name}_index *selected, float divisor, float *out)
{
    $sum mass = 0, row = 0, column = 0, rows = 0, both = 0, columns = 0;
    for (int i = 0; i < TOP_K; ++i) {
        if (weights[i] > 0.0f) {
            const $sum weight = weights[i];
            mass += weight;
            row += weight * centre_row(selected[i]);
            column += weight * centre_column(selected[i]);
        }
    }
    for (int i = 0; i < 6; ++i) {
        out[i] = 0.0f;
    }
    if (!(mass > 0)) {
        return;
    }
    row /= mass;
    column /= mass;
    for (int i = 0; i < TOP_K; ++i) {
        if (weights[i] > 0.0f) {
            const $sum weight = weights[i];
            const $sum y = centre_row(selected[i]) - row, x = centre_column(selected[i]) - column;
            rows += weight * y * y;
            both += weight * y * x;
            columns += weight * x * x;
        }
    }
    out[0] = (float)row;
    out[1] = (float)column;
    out[2] = (float)(rows / mass);
    out[3] = (float)(both / mass);
    out[4] = (float)(columns / mass);
    out[5] = (float)(mass / divisor);
}
"""
SHARES = """
/* How far each selected score lies above the smallest selected one, from 0 to 1; all 1 if they are equal. */
static void put_shares(const float *scores, const ${name}_index *selected, float *shares)
{
    const float least = scores[selected[TOP_K - 1]], most = scores[selected[0]];
    for (int i = 0; i < TOP_K; ++i) {
        shares[i] = differ(least, most) ? (scores[selected[i]] - least) / (most - least) : 1.0f;
    }
}
"""
POOLED = """
/* The sum of the colours of a patch. */
static void sum_colours(const ${name}_pixel *image, int patch, float *colour$flip_argument)
{
    const int top = patch / PATCH_COLUMNS * $stride, left = patch % PATCH_COLUMNS * $stride;
    for (int c = 0; c < SHOWN_CHANNELS; ++c) {
        $total total = 0;
        for (int y = top; y < top + $patch; ++y) {
            for (int x = left; x < left + $patch; ++x) {
                total += image[(y * WIDTH + $column) * SHOWN_CHANNELS + c];
            }
        }
        colour[c] = (float)$centred;
    }
}

static void patch_features(const ${name}_pixel *image, const float *scores, const ${name}_index *selected,
                           float *features$flip_argument)
{
    float weights[HEADS][TOP_K], shares[TOP_K], colour[SHOWN_CHANNELS];
    $sum total = 0;
$shares    for (int i = 0; i < TOP_K; ++i) {
        sum_colours(image, selected[i], colour$flip_value);
        total += shares[i];
        for (int head = 0; head < HEADS; ++head) {
            const float *weight = head_weights + head * $inputs;
            float sum = head_biases[head]$centre;
            for (int c = 0; c < SHOWN_CHANNELS; ++c) {
                sum += weight[c] * colour[c];
            }
            weights[head][i] = sum * shares[i];
        }
    }
    for (int head = 0; head < HEADS; ++head) {
        put_moments(weights[head], selected, (float)total, features + 6 * head);
    }
}
"""
SELECTED = """
static void patch_features(const ${name}_pixel *image, const float *scores, const ${name}_index *selected,
                           float *features$flip_argument)
{
    ${name}_index order[TOP_K];
    (void)scores;
    for (int i = 0; i < TOP_K; ++i) {
        int place = i;
        while (place > 0 && $sorted && order[place - 1] > selected[i]) {
            order[place] = order[place - 1];
            --place;
        }
        order[place] = selected[i];
    }
$clear    for (int i = 0; i < TOP_K; ++i) {
        const int patch = order[i];
        float *out = features + $row * VALUES;
$pixels$values    }
}
"""
PIXELS = """
        float pixels[PATCH_PIXELS];
        int count = 0;
        for (int y = 0; y < $patch; ++y) {
            for (int x0 = 0; x0 < $patch; ++x0) {
                const int x = patch % PATCH_COLUMNS * $stride + x0;
                const int place = ((patch / PATCH_COLUMNS * $stride + y) * WIDTH + $column) * SHOWN_CHANNELS;
                for (int c = 0; c < SHOWN_CHANNELS; ++c) {
                    pixels[count++] = (float)image[place + c] * $scale$shift;
                }
            }
        }
"""
VALUES = {
    "pixels": """
        memcpy(out, pixels, sizeof pixels);
        out += PATCH_PIXELS;
""",
    "centres": """
        *out++ = centre_row(patch);
        *out++ = centre_column(patch);
""",
    "projection": """
        for (int e = 0; e < PROJECTION; ++e) {
            float sum = 0.0f;
            for (int k = 0; k < PATCH_PIXELS; ++k) {
                sum += patch_projection[e * PATCH_PIXELS + k] * pixels[k];
            }
            *out++ = sum;
        }
""",
}


def emit_moments(source: Source, window: Window, height: int, width: int, top_k: int) -> None:
    """`put_moments`."""
    emit_centres(source, window, height, width)
    source.code(MOMENTS, name=source.name, sum=_sum_type(top_k))


def _sum_type(top_k: int) -> str:
    """Sums over many patches need the digits of a double; microcontrollers compute it in software."""
    return "float" if top_k <= MOST_IN_FLOAT else "double"


def _emit_pooled(
    source: Source, features: PooledMoments, params: Mapping[str, np.ndarray], window: Window, image: Shape, top_k: int
) -> None:
    is_bytes = source.pixel == "uint8_t"
    emit_moments(source, window, image[0], image[1], top_k)
    source.size("HEADS", features.heads)
    weights = np.array(params["heads.weight"], np.float64)
    biases = np.array(params["heads.bias"], np.float64)
    colours = image[2]
    # The colour is twice the sum minus the middle of its range: whole numbers, so that nothing is rounded.
    scale = 1 / (2 * 255 * window.patch**2) if is_bytes else 1 / window.patch**2
    source.floats("head_biases", biases)
    source.floats("head_weights", np.hstack([scale * weights[:, :colours], weights[:, colours:]]))
    centre = ""
    if features.position_weighted:
        axes = "centre_row(selected[i])", "centre_column(selected[i])"
        centre = "".join(f" + weight[SHOWN_CHANNELS + {place}] * {axis}" for place, axis in enumerate(axes))
    shares = "    (void)scores;\n    for (int i = 0; i < TOP_K; ++i) {\n        shares[i] = 1.0f;\n    }\n"
    if features.score_weighted:
        emit_differ(source)
        source.code(SHARES, name=source.name)
        shares = "    put_shares(scores, selected, shares);\n"
    names = {"name": source.name, "patch": window.patch, "stride": window.stride, "inputs": weights.shape[1]}
    total, centred = ("int", f"(2 * total - {255 * window.patch**2})") if is_bytes else ("float", "total")
    source.code(
        POOLED,
        sum=_sum_type(top_k),
        shares=shares,
        centre=centre,
        total=total,
        centred=centred,
        **names,
        **flip_names(source),
    )


def _emit_selected(
    source: Source,
    features: SelectedPatches,
    params: Mapping[str, np.ndarray],
    window: Window,
    image: Shape,
    top_k: int,
) -> None:
    source.size("VALUES", features.value_size(window, image[2]))
    names: dict[str, Any] = {"name": source.name, "patch": window.patch, "stride": window.stride, **flip_names(source)}
    clear, pixels, row = "", "", "i"
    if features.masked:
        row, clear = "patch", "    memset(features, 0, sizeof(float) * PATCHES * VALUES);\n"
    if "centres" in features.values:
        emit_centres(source, window, image[0], image[1])
    if set(features.values) - {"centres"}:
        source.size("PATCH_PIXELS", window.patch**2 * image[2])
        scale, shift = pixel_scale(source)
        pixels = filled(PIXELS.lstrip("\n"), **names, scale=scale, shift=shift)
    if "projection" in features.values:
        source.size("PROJECTION", features.projection_size)
        source.floats("patch_projection", params["projection.weight"])
    values = "".join(VALUES[value].lstrip("\n") for value in features.values)
    unused = "" if pixels else "        (void)image;\n" + ("        (void)flipped;\n" if source.flips else "")
    order = "1" if features.order == "image" else "0"
    source.code(SELECTED, sorted=order, clear=clear, row=row, pixels=unused + pixels, values=values, **names)


FEATURES: dict[type[PatchFeatures], Callable[..., None]] = {
    PooledMoments: _emit_pooled,
    SelectedPatches: _emit_selected,
    SeparableFilters: emit_separable_filters,
}


def emit_patch_features(
    source: Source, features: PatchFeatures, params: Mapping[str, np.ndarray], window: Window, image: Shape, top_k: int
) -> None:
    """`patch_features`, for images of this shape after preprocessing."""
    if type(features) not in FEATURES:
        raise ValueError(f"features {type(features).__name__} have no C code")
    FEATURES[type(features)](source, features, params, window, image, top_k)
