"""Separable filters over the image in which all patches that are not selected are masked."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from iap._compile import compiled, implements
from iap._validation import require_count
from iap.attention.arrays import Array, namespace
from iap.attention.patches import as_pixels
from iap.attention.primitives import stop_gradient
from iap.attention.selection import soft_top_k
from iap.policies.encoders.base import Window
from iap.policies.encoders.patch_features import PatchFeatures, patch_features
from iap.policies.params import ParamSpec


@dataclass(frozen=True)
class SeparableFilters(PatchFeatures):
    """Filters over the masked image M, each the product of a weight of the row and one of the column.

    f_u = tanh(c_u + Σ_yx a_u(y)·b_u(x)·M(y, x)), with weights b for each channel: height + width·channels parameters a
    filter instead of height·width·channels. Patches must not overlap.

    Attributes:
        filters: number of filters.
    """

    filters: int = 32

    def __post_init__(self) -> None:
        require_count("filters", self.filters)

    def size(self, window: Window, channels: int, top_k: int) -> int:
        """One number a filter."""
        return self.filters

    def param_specs(self, window: Window, channels: int) -> list[ParamSpec]:
        """Biases, weights of the rows and weights of the columns."""
        if window.patch != window.stride:
            raise ValueError(f"stride must be {window.patch}, the patch, with SeparableFilters, not {window.stride}")
        rows, columns = (side * window.patch for side in window.grid)
        width = columns * channels
        return [
            ParamSpec("filters.bias", (self.filters,), 0.0),
            ParamSpec("rows.weight", (self.filters, rows), rows**-0.5),
            ParamSpec("columns.weight", (self.filters, width), width**-0.5),
        ]

    def forward(
        self, params: Mapping[str, Array], images: Array, scores: Array, selected: Array, window: Window
    ) -> Array:
        """The filters on the masked image; gradients reach the scores through soft top-l shares."""
        xp = namespace(images=images, scores=scores)
        index = xp.arange(window.grid.patches, dtype=selected.dtype)
        is_selected = xp.astype(xp.any(selected[..., :, None] == index, axis=-2), scores.dtype)
        shares = soft_top_k(scores, selected.shape[-1])
        return self.forward_gated(params, images, is_selected * (1 + shares - stop_gradient(shares)), window)

    def forward_gated(self, params: Mapping[str, Array], images: Array, gates: Array, window: Window) -> Array:
        """The filters on the image, each patch multiplied by its gate."""
        xp = namespace(images=images, gates=gates)
        rows, columns = window.grid
        side, count, channels = window.patch, images.shape[0], int(images.shape[3])
        pixels = as_pixels(images)[:, : rows * side, : columns * side]
        blocks = xp.reshape(pixels, (count, rows, side, columns, side * channels))
        masked = blocks * xp.reshape(gates, (count, rows, 1, columns, 1))
        flat = xp.reshape(masked, (count, rows * side, columns * side * channels))
        return xp.tanh(
            params["filters.bias"] + xp.sum((params["rows.weight"] @ flat) * params["columns.weight"], axis=-1)
        )

    def compile(
        self, params: Mapping[str, np.ndarray], window: Window, image_shape: tuple[int, int, int], dtype: np.dtype
    ) -> "SeparableArrays":
        """The weights, and the scale and offset of pixels."""
        scale, shift = (1 / 255, -0.5) if dtype == np.uint8 else (1.0, 0.0)
        names = ("filters.bias", "rows.weight", "columns.weight")
        biases, rows, columns = (np.array(params[name], np.float32) for name in names)
        place = (window.patch, window.grid.columns)
        return SeparableArrays(*place, biases, rows, columns, np.float32(scale), np.float32(shift))


class SeparableArrays(NamedTuple):
    """Side of a patch, patches in a row, biases and weights, and a pixel as scale·value + shift."""

    patch: Any
    grid_columns: Any
    biases: Any
    rows: Any
    columns: Any
    scale: Any
    shift: Any


@implements(patch_features, SeparableArrays)
@compiled(inner=True)
def _separable_features(features, image, scores, selected):
    out = features.biases.copy()
    channels, side = image.shape[2], features.patch
    for number in range(len(selected)):
        top = selected[number] // features.grid_columns * side
        left = selected[number] % features.grid_columns * side
        for u in range(len(out)):
            total = np.float32(0)
            for y in range(top, top + side):
                row = np.float32(0)
                for x in range(left, left + side):
                    for c in range(channels):
                        value = image[y, x, c] * features.scale + features.shift
                        row += features.columns[u, x * channels + c] * value
                total += features.rows[u, y] * row
            out[u] += total
    for u in range(len(out)):
        out[u] = math.tanh(out[u])
    return out
