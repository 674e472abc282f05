"""IAP-rank with heads that give moments and values of their patches, on a residual convolutional stem."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from iap._validation import require_count
from iap.attention.arrays import Array, like, namespace
from iap.attention.features import ReLU
from iap.attention.moments import MOMENTS, weighted_moments
from iap.attention.patches import Grid, as_pixels
from iap.attention.primitives import relu, top_k_indices
from iap.attention.selection import soft_top_k, zero_to_one
from iap.policies.encoders.attention_config import MOST_DIMENSIONS, check_attention, scaled_centres
from iap.policies.encoders.base import Encoder, Encoding, Shape, Statistics, Window
from iap.policies.encoders.convolutions import Layers, check_layers
from iap.policies.encoders.residual_rank.arrays import ResidualRankArrays, compile_stem
from iap.policies.encoders.residual_rank.stem import (
    StemLayer,
    apply_stem,
    fold_stem,
    normalise,
    stem_layers,
    stem_output,
    stem_specs,
)
from iap.policies.params import ParamSpec, affine


@dataclass(frozen=True)
class ResidualRank(Encoder):
    """Each head ranks the cells of the stem's output, and gives the moments and mean values of the best.

    Queries and keys are linear in a cell, shared by the heads, with ReLU features; head h multiplies them by its gains
    g_h, r_h = (1/L)·K′(g_h ∘ Q′ᵀ1). The weight of a cell is the square of its share, (score − smallest selected score)
    / (largest − smallest). A cell of the stem's output stands for the pixels at its place in the image, and its
    receptive field is much larger.

    Attributes:
        stem: (filters, size, stride) of convolutions with ReLU and "same" padding; sizes are odd.
        dilations: of the residual 3×3 convolutions that follow.
        d: dimension of queries and keys, which have biases.
        heads: number of heads; each gives centroid (2), second moments (3), mass (1) and its values.
        top_k: l, the number of cells that each head selects.
        values: linear functions of a cell, of each head, averaged over the head's cells.
    """

    stem: Layers = ((16, 5, 2), (24, 3, 2))
    dilations: tuple[int, ...] = (1, 2, 4)
    d: int = 16
    heads: int = 16
    top_k: int = 16
    values: int = 4

    def __post_init__(self) -> None:
        check_layers("stem", self.stem)
        if not self.stem:
            raise ValueError("stem must be a tuple of at least one (filters, size, stride)")
        for _, size, _ in self.stem:
            if size % 2 == 0:
                raise ValueError(f"sizes of stem must be odd, not {size}")
        if not isinstance(self.dilations, tuple):
            raise ValueError(f"dilations must be a tuple of whole numbers, not {self.dilations!r}")
        for dilation in self.dilations:
            require_count("dilations", dilation, most=MOST_DIMENSIONS)
        check_attention(1, 1, self.d, ReLU())
        require_count("heads", self.heads, most=MOST_DIMENSIONS)
        require_count("top_k", self.top_k)
        require_count("values", self.values, least=0, most=MOST_DIMENSIONS)

    def layers(self, channels: int) -> list[StemLayer]:
        """The layers of the stem for images of so many channels."""
        return stem_layers(self.stem, self.dilations, channels)

    def check(self, image_shape: Shape) -> None:
        """Raise an error if there are fewer cells than are to be selected."""
        cells = self.window(image_shape).grid.patches
        require_count("top_k", self.top_k, most=cells, why=f" (the cells of the stem for an image of {image_shape})")

    def window(self, image_shape: Shape) -> Window:
        """The pixels that each cell stands for."""
        height, width, _ = stem_output(self.layers(image_shape[2]), image_shape)
        side = 1
        for _, _, stride in self.stem:
            side *= stride
        return Window(Grid(height, width), side, side)

    def feature_size(self, image_shape: Shape) -> int:
        """Moments and values of each head."""
        return self.heads * (MOMENTS + self.values)

    def param_specs(self, image_shape: Shape) -> list[ParamSpec]:
        """The stem, queries, keys, the heads' gains, and values."""
        layers = self.layers(image_shape[2])
        width = stem_output(layers, image_shape)[2]
        return [
            *stem_specs(layers),
            *affine("query", width, self.d),
            *affine("key", width, self.d),
            ParamSpec("gains", (self.heads, self.d), 1.0),
            *(affine("value", width, self.heads * self.values) if self.values else []),
        ]

    def forward(self, params: Mapping[str, Array], images: Array, uniforms: Array | None = None) -> Encoding:
        """Moments and values of each head's cells, weighed by squared soft top-l shares."""
        xp = namespace(images=images)
        maps = apply_stem(params, self.layers(int(images.shape[3])), as_pixels(images))
        encoding, scores = self._read(params, maps, _shape_of(images))
        best = xp.max(zero_to_one(scores), axis=1)
        selected = xp.reshape(top_k_indices(scores, self.top_k), (images.shape[0], -1))
        return encoding._replace(scores=best, selected=selected)

    def forward_normalised(
        self, params: Mapping[str, Array], images: Array, statistics: Statistics | None = None
    ) -> tuple[Encoding, Statistics]:
        """Batch norm before the biases of the stem; without scores and selected cells."""
        used: Statistics = {}
        layers = self.layers(int(images.shape[3]))
        maps = apply_stem(params, layers, as_pixels(images), normalise(statistics, used))
        return self._read(params, maps, _shape_of(images))[0], used

    def fold(self, params: Mapping[str, Array], statistics: Statistics) -> dict[str, Array]:
        """The statistics go into the weights and biases of the stem."""
        channels = params["stem.0.weight"].shape[1] // self.stem[0][1] ** 2
        return fold_stem(params, self.layers(channels), statistics)

    def _read(self, params: Mapping[str, Array], maps: Array, image_shape: Shape) -> tuple[Encoding, Array]:
        """The features of the heads with the logarithm of their maps, and their scores (n, heads, L)."""
        xp = namespace(maps=maps)
        count = maps.shape[0]
        cells = xp.reshape(maps, (count, -1, maps.shape[3]))
        queries, keys = (relu(cells @ params[f"{x}.weight"].T + params[f"{x}.bias"]) for x in ("query", "key"))
        pooled = xp.mean(queries, axis=1)[:, None, :] * params["gains"]  # (n, heads, d)
        scores = pooled @ xp.matrix_transpose(keys)
        weights = soft_top_k(scores, self.top_k) ** 2
        centres = like(scaled_centres(self.window(image_shape), image_shape[:2]), scores)
        features = weighted_moments(weights, centres, self.top_k)
        if self.values:
            features = xp.concat([features, self._mean_values(params, cells, weights)], axis=-1)
        return Encoding(xp.reshape(features, (count, -1)), log_maps=_log_softmax(scores)), scores

    def _mean_values(self, params: Mapping[str, Array], cells: Array, weights: Array) -> Array:
        """Each head's values of its mean cell, (n, heads, values): values are linear, so these are their means."""
        xp = namespace(cells=cells)
        mass = xp.sum(weights, axis=-1)[..., None]
        total = xp.where(mass > 0, mass, xp.ones_like(mass))
        means = (weights @ cells) / total  # (n, heads, C)
        matrices = xp.reshape(params["value.weight"], (self.heads, self.values, -1))
        biases = xp.reshape(params["value.bias"], (self.heads, self.values)) * (mass / total)
        return xp.sum(means[:, :, None, :] * matrices, axis=-1) + biases

    def compile(self, params: Mapping[str, np.ndarray], image_shape: Shape, dtype: np.dtype) -> "ResidualRankArrays":
        """The stem, and queries and keys as one layer."""
        layers = self.layers(image_shape[2])
        width = layers[-1].filters
        values = params["value.weight"] if self.values else np.empty((0, width), np.float32)
        return ResidualRankArrays(
            compile_stem(params, layers),
            (1 / 255, -0.5) if dtype == np.uint8 else (1.0, 0.0),
            np.concatenate([params["query.weight"], params["key.weight"]]),
            np.concatenate([params["query.bias"], params["key.bias"]]),
            np.array(params["gains"], np.float32),
            self.top_k,
            np.array(values, np.float32).reshape(self.heads, self.values, width),
            np.array(params["value.bias"] if self.values else [], np.float32).reshape(self.heads, self.values),
            scaled_centres(self.window(image_shape), image_shape[:2]).astype(np.float64),
        )


def _shape_of(images: Array) -> Shape:
    height, width, channels = (int(side) for side in images.shape[1:])
    return height, width, channels


def _log_softmax(scores: Array) -> Array:
    xp = namespace(scores=scores)
    shifted = scores - xp.max(scores, axis=-1, keepdims=True)
    return shifted - xp.log(xp.sum(xp.exp(shifted), axis=-1, keepdims=True))
