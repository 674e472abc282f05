"""IAP-rank: linear attention scores every patch, and the best few become features."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from iap._compile import compiled, dispatched, implements
from iap._validation import require_count, require_flags, require_name, require_type
from iap.attention.arrays import Array, namespace
from iap.attention.features import Kernel, ReLU, featurise
from iap.attention.kernels.ranker import compile_ranker, image_keys, score_image, score_image_with_keys
from iap.attention.kernels.selection import FEW, select_sample, select_top
from iap.attention.kernels.top_k import best_first
from iap.attention.patches import grid_of
from iap.attention.positions import Positions
from iap.attention.primitives import stop_gradient, top_k_values
from iap.attention.ranking import rank_scores
from iap.attention.selection import check_samplable, sample, top
from iap.policies.encoders.attention_config import (
    check_attention,
    check_pixel_scale,
    layer_of,
    project_tokens,
    scaled_tokens,
    with_scaled_pixels,
)
from iap.policies.encoders.base import Context, Encoder, Encoding, Shape, Window, encode
from iap.policies.encoders.patch_features import PatchFeatures, patch_features
from iap.policies.encoders.pooled_moments import PooledMoments
from iap.policies.encoders.selected_patches import SelectedPatches
from iap.policies.encoders.separable_filters import SeparableFilters
from iap.policies.params import ParamSpec, affine

Select = Literal["top", "sample"]
SMALLEST_SCORE = 1e-12  # relative to the largest score of an image, so that logs are finite


@dataclass(frozen=True)
class Rank(Encoder):
    """IAP-rank.

    Attributes:
        patch: side of a patch in pixels.
        stride: pixels from one patch to the next.
        d: dimension of queries and keys.
        top_k: l, the number of patches that are selected.
        kernel: the attention kernel.
        positions: the position encoding of the patches.
        features: what the selected patches become: `SelectedPatches` (pixels, centres or a projection of each),
            `PooledMoments` (the moments of a few pooling heads) or `SeparableFilters` (filters over the masked image).
        select: the "top" scores, or a "sample" in proportion to them.
        keys_every: keys are recomputed every `keys_every` encoded frames, queries at every frame.
        learn_pooling: whether P, the weight of each query, is learnt; else all ones.
        normalise_rows: whether each query's attention sums to one.
        bias: whether queries and keys have biases.
        pixel_offset: queries and keys receive (pixel − pixel_offset)·pixel_scale; the features receive pixels.
        pixel_scale: for images whose pixels are not in ±0.5, such as depths in metres.
    """

    patch: int = 4
    stride: int = 4
    d: int = 4
    top_k: int = 10
    kernel: Kernel = ReLU()
    positions: Positions = Positions()
    features: SelectedPatches | PooledMoments | SeparableFilters = SelectedPatches()  # noqa: RUF009
    select: Select = "top"
    keys_every: int = 1
    learn_pooling: bool = False
    normalise_rows: bool = False
    bias: bool = False
    pixel_offset: float = 0.0
    pixel_scale: float = 1.0

    def __post_init__(self) -> None:
        check_attention(self.patch, self.stride, self.d, self.kernel)
        check_pixel_scale(self.pixel_offset, self.pixel_scale)
        require_type("positions", self.positions, Positions)
        require_count("top_k", self.top_k)
        require_count("keys_every", self.keys_every)
        require_type("features", self.features, PatchFeatures)
        require_name("select", self.select, Select)
        require_flags(self, "learn_pooling", "normalise_rows", "bias")
        if self.select == "sample":
            check_samplable(self.kernel)

    def check(self, image_shape: Shape) -> None:
        """Raise an error if there are fewer patches than are to be selected."""
        patches = self.window(image_shape).grid.patches
        self.features.param_specs(self.window(image_shape), image_shape[2])
        require_count("top_k", self.top_k, most=patches, why=f" (the patches of an image of {image_shape})")

    def window(self, image_shape: Shape) -> Window:
        """The patches."""
        return Window(grid_of(image_shape[0], image_shape[1], self.patch, self.stride), self.patch, self.stride)

    def feature_size(self, image_shape: Shape) -> int:
        """The number of features of the selected patches."""
        return self.features.size(self.window(image_shape), image_shape[2], self.top_k)

    def param_specs(self, image_shape: Shape) -> list[ParamSpec]:
        """Queries, keys, P if it is learnt, and the arrays of the features."""
        pixels = self.patch**2 * image_shape[2]
        width = self.positions.width(pixels)
        pooling = [ParamSpec("pooling", (self.window(image_shape).grid.patches,), 0.0)] if self.learn_pooling else []
        return [
            *affine("query", width, self.d, bias=self.bias),
            *affine("key", width, self.d, bias=self.bias),
            *pooling,
            *self.features.param_specs(self.window(image_shape), image_shape[2]),
        ]

    def forward(self, params: Mapping[str, Array], images: Array, uniforms: Array | None = None) -> Encoding:
        """Scores of all patches; the selected ones as features, with gradients through soft top-l shares."""
        tokens = scaled_tokens(self, images)
        queries, keys = project_tokens(params, ("query", "key"), tokens)
        return self._forward_with_keys(params, images, queries, keys, uniforms)

    def forward_soft(self, params: Mapping[str, Array], images: Array, softness: float) -> Encoding:
        """As `forward`; a patch is selected to the share σ((log r − log r_l)/softness), r_l the l-th largest score."""
        encoding = self.forward(params, images)
        if softness == 0:
            return encoding
        xp, scores = namespace(images=images), encoding.scores
        assert scores is not None
        logs = xp.log(xp.maximum(scores, xp.full_like(scores, SMALLEST_SCORE)))
        threshold = stop_gradient(top_k_values(logs, self.top_k)[..., -1:])
        gates = 0.5 * (1 + xp.tanh(0.5 * (logs - threshold) / softness))
        shape = (int(images.shape[1]), int(images.shape[2]), int(images.shape[3]))
        features = self.features.forward_gated(params, images, gates, self.window(shape))
        return encoding if features is None else encoding._replace(features=features)

    def forward_frame(
        self, params: Mapping[str, np.ndarray], image: np.ndarray, context: Context
    ) -> tuple[Encoding, np.ndarray]:
        """One frame, whose queries score the stored keys (1, L, d) if these are not due to be recomputed."""
        tokens = scaled_tokens(self, image[None])
        queries, keys = project_tokens(params, ("query", "key"), tokens)
        if context.keys.size > 0 and context.frame % self.keys_every > 0:
            keys = context.keys
        uniforms = context.uniforms[None] if context.uniforms.size else None
        stored = context.keys if self.keys_every == 1 else keys
        return self._forward_with_keys(params, image[None], queries, keys, uniforms), stored

    def _forward_with_keys(
        self, params: Mapping[str, Array], images: Array, queries: Array, keys: Array, uniforms: Array | None
    ) -> Encoding:
        queries, keys = featurise(self.kernel, queries, keys)
        pooling = 1 + params["pooling"] if self.learn_pooling else None  # so that P starts as all ones
        scores = rank_scores(queries, keys, pooling=pooling, normalise_rows=self.normalise_rows).values
        if self.select == "sample":
            if uniforms is None:
                raise ValueError('uniforms must be given with select="sample": one number from (0, 1) a patch')
            selected = sample(scores, self.top_k, uniforms, self.kernel)
        else:
            selected = top(scores, self.top_k)
        shape = (int(images.shape[1]), int(images.shape[2]), int(images.shape[3]))
        features = self.features.forward(params, images, scores, selected, self.window(shape))
        return Encoding(features, scores, selected)

    def compile(self, params: Mapping[str, np.ndarray], image_shape: Shape, dtype: np.dtype) -> "RankArrays":
        """The ranker and the features' arrays."""
        params, positions = with_scaled_pixels(params, ("query", "key"), self, image_shape[2])
        ranker = compile_ranker(
            self.kernel,
            layer_of(params, "query"),
            layer_of(params, "key"),
            image_shape,
            patch=self.patch,
            stride=self.stride,
            positions=positions,
            pooling=1 + params["pooling"] if self.learn_pooling else None,
            normalise_rows=self.normalise_rows,
        )
        arrays = ranker.arrays(dtype)
        scoring = FreshKeys(arrays) if self.keys_every == 1 else StoredKeys(arrays, self.keys_every)
        if self.select == "sample":
            selection: Any = SampleSelection(self.top_k)
        else:
            selection = FewSelection(self.top_k) if self.top_k <= FEW else TopSelection(self.top_k)
        features = self.features.compile(params, self.window(image_shape), image_shape, dtype)
        return RankArrays(scoring, selection, features)

    @property
    def samples(self) -> bool:
        """Whether patches are drawn at random."""
        return self.select == "sample"


class RankArrays(NamedTuple):
    """How patches are scored, selected and turned into features."""

    scoring: Any
    selection: Any
    features: Any


class FreshKeys(NamedTuple):
    """Scores by the keys of the same image."""

    ranker: Any


class StoredKeys(NamedTuple):
    """Scores by keys that are recomputed every `keys_every` frames."""

    ranker: Any
    keys_every: Any


class FewSelection(NamedTuple):
    """At most `FEW` largest scores; a separate class, because it compiles faster."""

    top_k: Any


class TopSelection(NamedTuple):
    """The largest scores."""

    top_k: Any


class SampleSelection(NamedTuple):
    """Draws in proportion to the scores."""

    top_k: Any


@dispatched
def score_frame(scoring, image, context) -> Any:
    """Compiled code: the scores of all patches, and the keys to store."""


@implements(score_frame, FreshKeys)
@compiled(inner=True)
def _score_with_fresh_keys(scoring, image, context):
    return score_image(scoring.ranker, image), context.keys


@implements(score_frame, StoredKeys)
@compiled(inner=True)
def _score_with_stored_keys(scoring, image, context):
    keys = context.keys
    if keys.size == 0 or context.frame % scoring.keys_every == 0:
        keys = image_keys(scoring.ranker, image)
    return score_image_with_keys(scoring.ranker, image, keys), keys


@dispatched
def select(selection, scores, context) -> Any:
    """Compiled code: the indices of the selected patches."""


@implements(select, FewSelection)
@compiled(inner=True)
def _select_few(selection, scores, context):
    return best_first(scores, selection.top_k)


@implements(select, TopSelection)
@compiled(inner=True)
def _select_top(selection, scores, context):
    return select_top(scores, selection.top_k)


@implements(select, SampleSelection)
@compiled(inner=True)
def _select_sample(selection, scores, context):
    return select_sample(scores, context.uniforms, selection.top_k)


@implements(encode, RankArrays)
@compiled(inner=True)
def encode_rank(encoder, image, context):
    """Score all patches, select, and compute the features."""
    scores, keys = score_frame(encoder.scoring, image, context)
    selected = select(encoder.selection, scores, context)
    return patch_features(encoder.features, image, scores, selected), scores, selected, keys
