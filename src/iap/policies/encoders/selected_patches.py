"""The features of each selected patch by itself: its pixels, its centre, or a projection of its pixels."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from iap._compile import compiled, implements
from iap._validation import require_count, require_flags, require_name, require_names
from iap.attention.arrays import Array, like, namespace
from iap.attention.patches import as_pixels, extract
from iap.attention.primitives import stop_gradient
from iap.attention.selection import gather, soft_top_k
from iap.policies.encoders.attention_config import scaled_centres
from iap.policies.encoders.base import Shape, Window
from iap.policies.encoders.patch_features import CENTRE, PatchFeatures, patch_features
from iap.policies.params import ParamSpec, affine

Value = Literal["pixels", "centres", "projection"]
Order = Literal["score", "image"]


@dataclass(frozen=True)
class SelectedPatches(PatchFeatures):
    """Each selected patch by itself.

    Attributes:
        values: what of a patch: its "pixels", its "centres" (row and column, ±1), a learnt "projection" of its pixels.
        projection_size: numbers of the projection.
        order: of the patches: by "score", best first, or by place in the "image".
        masked: whether all L patches are features, in place, zeros where not selected; else the selected ones only.
    """

    values: tuple[Value, ...] = ("centres",)
    projection_size: int = 4
    order: Order = "image"
    masked: bool = False

    def __post_init__(self) -> None:
        require_names("values", self.values, Value)
        require_count("projection_size", self.projection_size)
        require_name("order", self.order, Order)
        require_flags(self, "masked")
        if self.masked and self.order != "image":
            raise ValueError(
                f'order must be "image" with masked=True, which leaves patches in place, not {self.order!r}'
            )

    def value_size(self, window: Window, channels: int) -> int:
        """The numbers of one patch."""
        pixels = window.patch**2 * channels
        sizes = {"pixels": pixels, "centres": CENTRE, "projection": self.projection_size}
        return sum(sizes[value] for value in self.values)

    def size(self, window: Window, channels: int, top_k: int) -> int:
        """All values of the selected patches, or of all patches."""
        return (window.grid.patches if self.masked else top_k) * self.value_size(window, channels)

    def param_specs(self, window: Window, channels: int) -> list[ParamSpec]:
        """The projection, if it is used."""
        pixels = window.patch**2 * channels
        return affine("projection", pixels, self.projection_size, bias=False) if "projection" in self.values else []

    def forward(
        self, params: Mapping[str, Array], images: Array, scores: Array, selected: Array, window: Window
    ) -> Array:
        """The values of the selected patches; gradients reach the scores through soft top-l shares."""
        xp = namespace(images=images, scores=scores)
        size = (int(images.shape[1]), int(images.shape[2]))
        if self.order == "image":
            selected = xp.sort(selected, axis=-1)
        pixels = extract(as_pixels(images), window.patch, window.stride)
        parts = []
        for value in self.values:
            if value == "centres":
                centres = like(scaled_centres(window, size), scores)
                parts.append(xp.broadcast_to(centres, (images.shape[0], *centres.shape)))
            else:
                parts.append(pixels if value == "pixels" else pixels @ params["projection.weight"].T)
        values = xp.concat(parts, axis=-1)
        shares = soft_top_k(scores, selected.shape[-1])
        values = values * (1 + (shares - stop_gradient(shares)))[..., None]  # a factor of 1 that has a gradient
        rows = gather(values, selected)
        if self.masked:
            patches = xp.arange(window.grid.patches, dtype=selected.dtype)
            is_selected = xp.any(selected[..., :, None] == patches, axis=-2)
            rows = xp.where(is_selected[..., None], values, xp.zeros_like(values))
        return xp.reshape(rows, (images.shape[0], -1))

    def compile(
        self, params: Mapping[str, np.ndarray], window: Window, image_shape: Shape, dtype: np.dtype
    ) -> "SelectedArrays":
        """Which values, in which order, and the projection."""
        scale, shift = (1 / 255, -0.5) if dtype == np.uint8 else (1.0, 0.0)
        width = window.patch**2 * image_shape[2]
        projection = np.zeros((0, width), np.float32)
        if "projection" in self.values:
            projection = np.array(params["projection.weight"], np.float32)
        return SelectedArrays(
            np.array([("pixels", "centres", "projection").index(value) for value in self.values]),
            self.order == "image",
            window.grid.patches if self.masked else 0,
            window.patch,
            window.stride,
            scaled_centres(window, image_shape[:2]),
            projection,
            self.value_size(window, image_shape[2]),
            np.float32(scale),
            np.float32(shift),
        )


class SelectedArrays(NamedTuple):
    """The values of each patch (0 pixels, 1 centres, 2 projection), their order and place, and pixel scaling."""

    values: Any
    in_image_order: Any
    masked_patches: Any
    patch: Any
    stride: Any
    centres: Any
    projection: Any
    size: Any
    scale: Any
    shift: Any


@implements(patch_features, SelectedArrays)
@compiled(inner=True)
def _selected_features(features, image, scores, selected):
    rows = np.sort(selected) if features.in_image_order else selected
    columns = (image.shape[1] - features.patch) // features.stride + 1
    out = np.zeros((max(features.masked_patches, len(rows)), features.size), np.float32)
    pixels = np.empty(features.patch * features.patch * image.shape[2], np.float32)
    for i in range(len(rows)):
        index = rows[i]
        _read_patch(features, image, index // columns * features.stride, index % columns * features.stride, pixels)
        _put_values(features, index, pixels, out[index if features.masked_patches > 0 else i])
    return out.reshape(out.size)


@compiled(inner=True)
def _read_patch(features, image, top, left, pixels):
    """The scaled pixels of one patch, in the order row, column, channel."""
    place = 0
    for y in range(top, top + features.patch):
        for x in range(left, left + features.patch):
            for c in range(image.shape[2]):
                pixels[place] = image[y, x, c] * features.scale + features.shift
                place += 1


@compiled(inner=True)
def _put_values(features, index, pixels, row):
    """Write each kind of value of one patch into its row."""
    start = 0
    for value in features.values:
        if value == 0:
            for j in range(len(pixels)):
                row[start + j] = pixels[j]
            start += len(pixels)
        elif value == 1:
            for j in range(CENTRE):
                row[start + j] = features.centres[index, j]
            start += CENTRE
        else:
            for j in range(len(features.projection)):
                total = np.float32(0)
                for k in range(len(pixels)):
                    total += features.projection[j, k] * pixels[k]
                row[start + j] = total
            start += len(features.projection)
