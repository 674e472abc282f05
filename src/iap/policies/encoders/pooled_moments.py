"""The moments of pooling heads over the selected patches: position, spread and number of patches of a colour."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from iap._compile import compiled, implements
from iap._validation import require_count, require_flags
from iap.attention.arrays import Array, like, namespace
from iap.attention.kernels.moments import put_moments, shares_above_least
from iap.attention.moments import MOMENTS, weighted_moments
from iap.attention.patches import as_pixels, extract
from iap.attention.primitives import relu
from iap.attention.selection import soft_top_k
from iap.policies.encoders.attention_config import scaled_centres
from iap.policies.encoders.base import Shape, Window
from iap.policies.encoders.patch_features import CENTRE, PatchFeatures, patch_features
from iap.policies.params import ParamSpec, affine


@dataclass(frozen=True)
class PooledMoments(PatchFeatures):
    """The moments of the selected patches' centres under the weights of each head.

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
        """Six features for each head."""
        return self.heads * MOMENTS

    def param_specs(self, window: Window, channels: int) -> list[ParamSpec]:
        """The heads' weights and biases."""
        return affine("heads", channels + CENTRE * self.position_weighted, self.heads)

    def forward(
        self, params: Mapping[str, Array], images: Array, scores: Array, selected: Array, window: Window
    ) -> Array:
        """The moments of each head."""
        xp = namespace(images=images, scores=scores)
        index = xp.arange(int(scores.shape[-1]), dtype=selected.dtype)
        is_selected = xp.astype(xp.any(selected[..., :, None] == index, axis=-2), scores.dtype)
        shares = is_selected
        if self.score_weighted:
            soft = soft_top_k(scores, selected.shape[-1])
            prefers = xp.max(soft, axis=-1, keepdims=True) > 0  # equal scores count alike
            shares = xp.where(prefers, soft, is_selected)
        return self._pooled(params, images, shares, window)

    def forward_gated(self, params: Mapping[str, Array], images: Array, gates: Array, window: Window) -> Array | None:
        """The moments of all patches, each weighted by its gate; None if the scores themselves are weights."""
        return None if self.score_weighted else self._pooled(params, images, gates, window)

    def _pooled(self, params: Mapping[str, Array], images: Array, shares: Array, window: Window) -> Array:
        """The moments of each head if the patches count by their shares (n, L)."""
        xp = namespace(images=images, shares=shares)
        pixels = extract(as_pixels(images), window.patch, window.stride)
        count, patches, _ = pixels.shape
        colours = xp.mean(xp.reshape(pixels, (count, patches, -1, images.shape[3])), axis=2)
        centres = like(scaled_centres(window, (int(images.shape[1]), int(images.shape[2]))), shares)
        inputs = colours
        if self.position_weighted:
            inputs = xp.concat([colours, xp.broadcast_to(centres, (count, *centres.shape))], axis=-1)
        weights = relu(inputs @ params["heads.weight"].T + params["heads.bias"])  # (n, L, heads)
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


@implements(patch_features, PooledArrays)
@compiled(inner=True)
def _pooled_features(features, image, scores, selected):
    heads, channels, count = len(features.weights), image.shape[2], len(selected)
    columns = (image.shape[1] - features.patch) // features.stride + 1
    shares = shares_above_least(scores, selected) if features.score_weighted else np.ones(count)
    weights = np.empty((heads, count))
    colour = np.empty(channels)
    for i in range(count):
        index = selected[i]
        top, left = index // columns * features.stride, index % columns * features.stride
        for c in range(channels):
            colour[c] = 0.0
        for y in range(top, top + features.patch):
            for x in range(left, left + features.patch):
                for c in range(channels):
                    colour[c] += image[y, x, c]
        row, column = features.centres[index, 0], features.centres[index, 1]
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
