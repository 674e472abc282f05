"""Strided projections in C: weights·patch + share of the row + share of the column, a row of patches at a time."""

from typing import Any, NamedTuple

import numpy as np

from iap.interop.c.source import Source, filled
from iap.policies.encoders.base import Shape

READ = """
/* The lines of an image that row i of patches needs, as floats: [line][channel][phase of the stride][place]. */
static void ${p}_read(const $type *image, int i, float *lines$flip_argument)
{
    for (int y = 0; y < $P_SIZE; ++y) {
        const $type *line = image + (i * $P_STRIDE + y) * $line_step;
        for (int c = 0; c < $P_CHANNELS; ++c) {
            for (int phase = 0; phase < $P_PHASES; ++phase) {
                float *out = lines + ((y * $P_CHANNELS + c) * $P_PHASES + phase) * $P_SPAN;
                const int count = ($P_USED - phase + $P_STRIDE - 1) / $P_STRIDE;
$loops            }
        }
    }
}
"""
LOOP = """
$indent    const $type *from = line + c * $channel_step + $start * $pixel_step;
$indent    for (int j = 0; j < count; ++j) {
$indent        out[j] = (float)from[$sign j * $step];
$indent    }
"""
PROJECT = """
/* Output e of row i of patches; the last numbers of `out`, from $P_COLUMNS on, only fill up vectors. */
static inline void ${p}_project(const float *restrict lines, int i, int e, float *restrict out)
{
    const float *weight = ${p}_weights + e * $P_TAPS;
    const float share = $row_share;
    float sum[$P_PADDED]; /* not `out`, so that compilers know that nothing overlaps */
    (void)i;
$groups    memcpy(out, sum, sizeof sum);
}
"""
LOOP_OF_GROUPS = """
    for (int k = $first; k < $stop; k += $GROUP) {
        const float *t0 = lines + ${p}_taps[k], *t1 = lines + ${p}_taps[k + 1];
        const float *t2 = lines + ${p}_taps[k + 2], *t3 = lines + ${p}_taps[k + 3];
        const float w0 = weight[k], w1 = weight[k + 1], w2 = weight[k + 2], w3 = weight[k + 3];
        for (int j = 0; j < $P_PADDED; ++j) {
            sum[j] += w0 * t0[j] + w1 * t1[j] + w2 * t2[j] + w3 * t3[j];
        }
    }
"""
GROUP = 4  # taps that are added at once
VECTOR = 8  # numbers: rows are filled up to a multiple, so that vector code has no remainder


class Map(NamedTuple):
    """An image in memory: its C type, its shape, and whether channels follow each other pixel by pixel."""

    kind: str
    height: int
    width: int
    channels: int
    interleaved: bool


def emit_projection(
    source: Source,
    name: str,
    image: Map,
    patch: int,
    stride: int,
    weights: np.ndarray,
    row_shares: np.ndarray,
    column_shares: np.ndarray,
    *,
    flips: bool,
) -> None:
    """Functions `NAME_read` and `NAME_project` for these layers: weights (outputs, taps), shares (outputs, places)."""
    rows, columns = (image.height - patch) // stride + 1, (image.width - patch) // stride + 1
    phases, upper = min(stride, patch), name.upper()
    used = (columns - 1) * stride + patch
    padded = columns if columns < VECTOR else -(-columns // VECTOR) * VECTOR
    span = padded + (patch - 1) // stride
    taps = [
        ((y * image.channels + c) * phases + x % stride) * span + x // stride
        for y in range(patch)
        for x in range(patch)
        for c in range(image.channels)
    ]
    sizes = {
        "SIZE": patch,
        "STRIDE": stride,
        "CHANNELS": image.channels,
        "ROWS": rows,
        "COLUMNS": columns,
        "PADDED": padded,
        "PHASES": phases,
        "USED": used,
        "SPAN": span,
        "TAPS": len(taps),
        "LINES": patch * image.channels * phases * span,
    }
    for size, value in sizes.items():
        source.size(f"{upper}_{size}", value)
    source.floats(f"{name}_weights", weights)
    names: dict[str, Any] = {"p": name, "P": upper, **{f"P_{size}": f"{upper}_{size}" for size in sizes}}
    _emit_read(source, names, image, flips)
    groups = _groups(source, names, taps, column_shares)
    source.code(PROJECT, row_share=_row_share(source, name, row_shares), groups=groups, **names)


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


def _row_share(source: Source, name: str, shares: np.ndarray) -> str:
    """The expression of a row's share; one number an output if the rows have the same."""
    if not shares.any():
        return "0.0f"
    if (shares == shares[:, :1]).all():
        source.floats(f"{name}_shares", shares[:, 0])
        return f"{name}_shares[e]"
    source.floats(f"{name}_row_shares", shares)
    return f"{name}_row_shares[e * {name.upper()}_ROWS + i]"


def _groups(source: Source, names: dict[str, Any], taps: list[int], shares: np.ndarray) -> str:
    """The sums: the first taps with the shares, then as many as possible in a loop of groups."""
    first, padded = len(taps) % GROUP or GROUP, source.sizes[f"{names['P']}_PADDED"]
    value = "share"
    if shares.any():
        source.floats(f"{names['p']}_column_shares", np.pad(shares, ((0, 0), (0, padded - shares.shape[1]))))
        value = f"share + {names['p']}_column_shares[e * {names['P_PADDED']} + j]"
    products = "".join(f" + weight[{k}] * lines[{taps[k]} + j]" for k in range(first))
    text = f"    for (int j = 0; j < {names['P_PADDED']}; ++j) {{\n        sum[j] = {value}{products};\n    }}\n"
    if len(taps) > first:
        source.integers(f"{names['p']}_taps", np.array(taps))
        text += filled(LOOP_OF_GROUPS.lstrip("\n"), first=first, stop=len(taps), GROUP=GROUP, **names)
    return text


def _emit_read(source: Source, names: dict[str, Any], image: Map, flips: bool) -> None:
    pixel_step, channel_step = (image.channels, 1) if image.interleaved else (1, image.height * image.width)
    line_step = image.width * (image.channels if image.interleaved else 1)
    stride = names["P_STRIDE"]
    loop = LOOP.strip("\n") + "\n"
    common = {"type": image.kind, "channel_step": channel_step, "pixel_step": pixel_step}
    step = f"{stride} * {pixel_step}" if pixel_step > 1 else stride
    forwards = {"start": "phase", "sign": "", "step": f"({step})"}
    backwards = {"start": f"({image.width - 1} - phase)", "sign": "-", "step": f"({step})"}
    deep = " " * 16
    if flips:
        loops = (
            f"{deep}if (flipped) {{\n{filled(loop, **common, indent=deep, **backwards)}{deep}}} else {{\n"
            f"{filled(loop, **common, indent=deep, **forwards)}{deep}}}\n"
        )
    else:
        loops = filled(loop, **common, indent=deep[4:], **forwards)
    loops = loops.replace("[ j", "[j").replace("[- j", "[-j")
    source.code(
        READ, type=image.kind, line_step=line_step, loops=loops, flip_argument=", int flipped" if flips else "", **names
    )
