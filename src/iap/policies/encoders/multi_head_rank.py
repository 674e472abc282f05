"""IAP-rank with several heads that share queries and keys; each head gives the moments of its selected patches."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from iap._compile import compiled, implements
from iap._validation import require_count
from iap.attention.arrays import Array, like, namespace
from iap.attention.features import ReLU
from iap.attention.kernels.moments import differ, put_moments, shares_above_least
from iap.attention.kernels.projection import project_queries_and_keys
from iap.attention.kernels.ranker import compile_ranker
from iap.attention.kernels.relu import pool_relu, score_relu
from iap.attention.kernels.selection import select_top
from iap.attention.kernels.top_k import sort_best_first
from iap.attention.moments import MOMENTS, weighted_moments
from iap.attention.patches import as_pixels, grid_of
from iap.attention.positions import Positions
from iap.attention.primitives import convolve, relu, top_k_indices
from iap.attention.selection import soft_top_k, zero_to_one
from iap.policies.encoders.attention_config import MOST_DIMENSIONS, check_attention, layer_of, scaled_centres
from iap.policies.encoders.base import Encoder, Encoding, Shape, Window, encode
from iap.policies.encoders.convolutions import (
    Layers,
    apply_convolutions,
    check_layers,
    compile_convolutions,
    convolution_specs,
    convolve_all,
    map_shapes,
)
from iap.policies.params import ParamSpec, affine


@dataclass(frozen=True)
class MultiHeadRank(Encoder):
    """Each head ranks all patches, selects the best and gives their centroid, second moments and mass.

    Queries and keys are shared, with ReLU features; head h multiplies these features by its gains g_h,
    r_h = (1/L)·K′(g_h ∘ Q′ᵀ1). The weight of a selected patch is the square of its share, (score − smallest selected
    score) / (largest − smallest). So the features are continuous in the parameters, and have gradients.

    Attributes:
        patch: side of a patch, in pixels of the image or of the stem's output.
        stride: distance between patches, in the same unit.
        d: dimension of queries and keys, which have biases.
        heads: number of heads; each gives 6 features: centroid (2), second moments (3), mass (1).
        top_k: l, the number of patches that each head selects.
        stem: (filters, size, stride) of convolutions with ReLU before the attention: queries and keys become a deeper
            function of a larger patch.
    """

    patch: int = 4
    stride: int = 2
    d: int = 8
    heads: int = 4
    top_k: int = 20
    stem: Layers = ()

    def __post_init__(self) -> None:
        check_layers("stem", self.stem)
        check_attention(self.patch, self.stride, self.d, ReLU())
        require_count("heads", self.heads, most=MOST_DIMENSIONS)
        require_count("top_k", self.top_k)

    def check(self, image_shape: Shape) -> None:
        """Raise an error if there are fewer patches than are to be selected."""
        patches = self.window(image_shape).grid.patches
        require_count("top_k", self.top_k, most=patches, why=f" (the patches of an image of {image_shape})")

    def window(self, image_shape: Shape) -> Window:
        """The receptive fields of the attention's patches in the image, through the stem."""
        side = step = 1
        for size, stride in (*((size, stride) for _, size, stride in self.stem), (self.patch, self.stride)):
            side += (size - 1) * step
            step *= stride
        return Window(grid_of(image_shape[0], image_shape[1], side, step), side, step)

    def feature_size(self, image_shape: Shape) -> int:
        """Six features for each head."""
        return self.heads * MOMENTS

    def param_specs(self, image_shape: Shape) -> list[ParamSpec]:
        """The stem, queries, keys, and the heads' gains."""
        width = self.patch**2 * map_shapes(self.stem, image_shape)[-1][2]
        return [
            *convolution_specs("stem", self.stem, image_shape),
            *affine("query", width, self.d),
            *affine("key", width, self.d),
            ParamSpec("gains", (self.heads, self.d), 1.0),
        ]

    def forward(self, params: Mapping[str, Array], images: Array, uniforms: Array | None = None) -> Encoding:
        """The moments of each head's patches, weighed by squared soft top-l shares."""
        xp = namespace(images=images)
        count = images.shape[0]
        window = self.window((int(images.shape[1]), int(images.shape[2]), int(images.shape[3])))
        maps = apply_convolutions(params, "stem", self.stem, as_pixels(images))
        weights = xp.concat([params["query.weight"], params["key.weight"]], axis=0)
        biases = xp.concat([params["query.bias"], params["key.bias"]], axis=0)
        both = xp.reshape(relu(convolve(maps, weights, self.stride) + biases), (count, -1, 2 * self.d))
        queries, keys = both[..., : self.d], both[..., self.d :]
        pooled = xp.mean(queries, axis=1)[:, None, :] * params["gains"]  # (n, heads, d)
        scores = pooled @ xp.matrix_transpose(keys)
        shares = soft_top_k(scores, self.top_k)
        centres = like(scaled_centres(window, (int(images.shape[1]), int(images.shape[2]))), scores)
        features = weighted_moments(shares**2, centres, self.top_k)
        best = xp.max(zero_to_one(scores), axis=1)
        selected = top_k_indices(scores, self.top_k)
        return Encoding(xp.reshape(features, (count, -1)), best, xp.reshape(selected, (count, -1)))

    def compile(self, params: Mapping[str, np.ndarray], image_shape: Shape, dtype: np.dtype) -> "MultiHeadArrays":
        """The stem, and the shared ranker with the heads' gains."""
        stem_output = map_shapes(self.stem, image_shape)[-1]
        ranker = compile_ranker(
            ReLU(),
            layer_of(params, "query"),
            layer_of(params, "key"),
            stem_output,
            patch=self.patch,
            stride=self.stride,
            positions=Positions("none"),
        )
        input_dtype = np.dtype(np.float32) if self.stem else dtype
        centres = scaled_centres(self.window(image_shape), image_shape[:2]).astype(np.float64)
        return MultiHeadArrays(
            compile_convolutions(params, "stem", self.stem, image_shape, dtype),
            ranker.arrays(input_dtype),
            np.array(params["gains"], np.float32),
            self.top_k,
            centres,
        )


class MultiHeadArrays(NamedTuple):
    """The stem, the ranker, the heads' gains, l, and the patches' centres."""

    stem: Any
    ranker: Any
    gains: Any
    top_k: Any
    centres: Any


@implements(encode, MultiHeadArrays)
@compiled(inner=True)
def encode_multi_head_rank(encoder, image, context):
    """Each head's moments; the scores are each patch's best over the heads, 0 to 1."""
    scores = _score_heads(encoder.ranker, convolve_all(encoder.stem, image), encoder.gains)
    heads, patches = scores.shape
    features = np.zeros(heads * MOMENTS, np.float32)
    is_selected = np.zeros(patches, np.bool_)
    best = np.zeros(patches, np.float32)
    for head in range(heads):
        own = scores[head]
        selected = select_top(own, encoder.top_k)
        is_selected[selected] = True
        least, most = np.min(own), own[selected[0]]
        if differ(least, most):
            for index in range(patches):
                best[index] = max(best[index], (own[index] - least) / (most - least))
        if not differ(own[selected[-1]], most):
            continue  # all scores are equal: the features are zeros
        weights = shares_above_least(own, selected) ** 2
        put_moments(weights, encoder.centres, selected, float(encoder.top_k), features[head * MOMENTS :])
    indices = np.flatnonzero(is_selected)
    sort_best_first(best, indices)
    return features, best, indices, context.keys


@compiled
def _score_heads(ranker, image, gains):
    """Each head's scores, (heads, L): queries are pooled once, and each head weighs the result by its gains."""
    project_queries_and_keys(ranker.projection, image)
    x = ranker.projection.x
    half = len(x) // 2
    pooled = pool_relu(x[:half], np.empty(0, np.float32)) / x.shape[1]
    heads, d = gains.shape
    scores, own = np.empty((heads, x.shape[1]), np.float32), np.zeros(half, np.float32)
    for head in range(heads):
        for e in range(d):
            own[e] = gains[head, e] * pooled[e]
        score_relu(x[half:], own, scores[head])
    return scores
