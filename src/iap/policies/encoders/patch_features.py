"""Selected patches → features: pixels, centres or a projection of each, or the moments of a few pooling heads."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from iap._compile import compiled, dispatched, implements
from iap._validation import require_count, require_flags, require_name, require_names
from iap.attention.arrays import Array, like, namespace
from iap.attention.kernels.moments import put_moments, shares_above_least
from iap.attention.moments import MOMENTS, weighted_moments
from iap.attention.patches import as_pixels, extract
from iap.attention.primitives import relu, stop_gradient
from iap.attention.selection import gather, soft_top_k
from iap.policies.encoders.attention_config import scaled_centres
from iap.policies.encoders.base import Shape, Window
from iap.policies.params import ParamSpec, affine

Value = Literal["pixels", "centres", "projection"]
Order = Literal["score", "image"]
CENTRE = 2  # numbers of a patch's centre: row and column


@dispatched
def patch_features(features, image, scores, selected):
    """Compiled code: the features of the selected patches of one image."""


@dataclass(frozen=True)
class PatchFeatures:
    """The base of `SelectedPatches` and `PooledMoments`."""

    def size(self, window: Window, channels: int, top_k: int) -> int:
        """The number of features."""
        raise NotImplementedError

    def param_specs(self, pixels: int, channels: int) -> list[ParamSpec]:
        """The arrays of parameters, for patches of so many numbers."""
        raise NotImplementedError

    def forward(
        self, params: Mapping[str, Array], images: Array, scores: Array, selected: Array, window: Window
    ) -> Array:
        """The features of a batch, (n, size)."""
        raise NotImplementedError

    def compile(self, params: Mapping[str, np.ndarray], window: Window, image_shape: Shape, dtype: np.dtype) -> Any:
        """A NamedTuple for which `patch_features` is implemented."""
        raise NotImplementedError


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

    def param_specs(self, pixels: int, channels: int) -> list[ParamSpec]:
        """The projection, if it is used."""
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
        values = values * (1 + shares - stop_gradient(shares))[..., None]  # a factor of 1 that has a gradient
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


@dataclass(frozen=True)
class PooledMoments(PatchFeatures):
    """A few heads, each of which weighs the selected patches and gives the moments of their centres.

    A head's weight of a patch is relu(a·mean colour + b); its features are centroid (2), second moments (3), mass (1).

    Attributes:
        heads: number of heads.
        position_weighted: whether weights depend on the position too, relu(a·mean colour + c·centre + b).
        score_weighted: whether weights are multiplied by how far a patch's score lies above the smallest selected one:
            the features are then continuous when a patch enters or leaves the selection.
    """

    heads: int = 4
    position_weighted: bool = False
    score_weighted: bool = False

    def __post_init__(self) -> None:
        require_count("heads", self.heads)
        require_flags(self, "position_weighted", "score_weighted")

    def size(self, window: Window, channels: int, top_k: int) -> int:
        """Six numbers a head."""
        return self.heads * MOMENTS

    def param_specs(self, pixels: int, channels: int) -> list[ParamSpec]:
        """The heads' weights and biases."""
        return affine("heads", channels + CENTRE * self.position_weighted, self.heads)

    def forward(
        self, params: Mapping[str, Array], images: Array, scores: Array, selected: Array, window: Window
    ) -> Array:
        """The moments of each head."""
        xp = namespace(images=images, scores=scores)
        pixels = extract(as_pixels(images), window.patch, window.stride)
        count, patches, _ = pixels.shape
        colours = xp.mean(xp.reshape(pixels, (count, patches, -1, images.shape[3])), axis=2)
        centres = like(scaled_centres(window, (int(images.shape[1]), int(images.shape[2]))), scores)
        inputs = colours
        if self.position_weighted:
            inputs = xp.concat([colours, xp.broadcast_to(centres, (count, *centres.shape))], axis=-1)
        weights = relu(inputs @ params["heads.weight"].T + params["heads.bias"])  # (n, L, heads)
        index = xp.arange(patches, dtype=selected.dtype)
        is_selected = xp.astype(xp.any(selected[..., :, None] == index, axis=-2), scores.dtype)
        shares = is_selected
        if self.score_weighted:
            soft = soft_top_k(scores, selected.shape[-1])
            prefers = xp.max(soft, axis=-1, keepdims=True) > 0  # equal scores count alike
            shares = xp.where(prefers, soft, is_selected)
        weights = xp.matrix_transpose(weights * shares[..., None])
        divisor = xp.sum(shares, axis=-1)[:, None]
        return xp.reshape(weighted_moments(weights, centres, divisor), (count, -1))

    def compile(
        self, params: Mapping[str, np.ndarray], window: Window, image_shape: Shape, dtype: np.dtype
    ) -> "PooledArrays":
        """The heads in float64, with the scale and offset of a patch's mean colour."""
        pixels = window.patch**2
        weights, biases = (np.array(params[f"heads.{name}"], np.float64) for name in ("weight", "bias"))
        if not self.position_weighted:
            weights = np.hstack([weights, np.zeros((len(weights), CENTRE))])
        scale, shift = (1 / (255 * pixels), -0.5) if dtype == np.uint8 else (1 / pixels, 0.0)
        centres = scaled_centres(window, image_shape[:2]).astype(np.float64)
        return PooledArrays(self.score_weighted, window.patch, window.stride, centres, scale, shift, weights, biases)


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


class PooledArrays(NamedTuple):
    """Pooling heads: a patch's mean colour is scale·(sum of its pixels) + shift."""

    score_weighted: Any
    patch: Any
    stride: Any
    centres: Any
    scale: Any
    shift: Any
    weights: Any
    biases: Any


@implements(patch_features, SelectedArrays)
@compiled
def _selected_features(features, image, scores, selected):
    rows = np.sort(selected) if features.in_image_order else selected
    columns = (image.shape[1] - features.patch) // features.stride + 1
    width = features.patch * features.patch * image.shape[2]
    out = np.zeros((max(features.masked_patches, len(rows)), features.size), np.float32)
    pixels = np.empty(width, np.float32)
    for i in range(len(rows)):
        index = rows[i]
        top, left = index // columns * features.stride, index % columns * features.stride
        place = 0
        for y in range(top, top + features.patch):
            for x in range(left, left + features.patch):
                for c in range(image.shape[2]):
                    pixels[place] = image[y, x, c] * features.scale + features.shift
                    place += 1
        row = out[index if features.masked_patches > 0 else i]
        start = 0
        for value in features.values:
            if value == 0:
                row[start : start + width] = pixels
                start += width
            elif value == 1:
                row[start : start + CENTRE] = features.centres[index]
                start += CENTRE
            else:
                for j in range(len(features.projection)):
                    total = np.float32(0)
                    for k in range(width):
                        total += features.projection[j, k] * pixels[k]
                    row[start + j] = total
                start += len(features.projection)
    return out.reshape(out.size)


@implements(patch_features, PooledArrays)
@compiled
def _pooled_features(features, image, scores, selected):
    heads, channels, count = len(features.weights), image.shape[2], len(selected)
    columns = (image.shape[1] - features.patch) // features.stride + 1
    shares = shares_above_least(scores, selected) if features.score_weighted else np.ones(count)
    weights = np.empty((heads, count))
    colour = np.empty(channels)
    for i in range(count):
        index = selected[i]
        top, left = index // columns * features.stride, index % columns * features.stride
        colour[:] = 0.0
        for y in range(top, top + features.patch):
            for x in range(left, left + features.patch):
                for c in range(channels):
                    colour[c] += image[y, x, c]
        row, column = features.centres[index]
        for head in range(heads):
            weight = features.biases[head]
            for c in range(channels):
                weight += features.weights[head, c] * (features.scale * colour[c] + features.shift)
            weight += features.weights[head, channels] * row + features.weights[head, channels + 1] * column
            weights[head, i] = weight * shares[i]
    out = np.zeros(heads * MOMENTS, np.float32)
    total = np.sum(shares)
    for head in range(heads):
        put_moments(weights[head], features.centres, selected, total, out[head * MOMENTS :])
    return out
