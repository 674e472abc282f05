"""The encoder of AttentionAgent (Tang et al. 2020): exact softmax attention, and the best patches' centres."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from iap._compile import compiled, dispatched, implements
from iap._validation import require_count, require_flags, require_name
from iap.attention.arrays import Array, like, namespace
from iap.attention.exact import attention_matrix
from iap.attention.features import Kernel, Softmax, featurise
from iap.attention.kernels.ranker import compile_ranker, score_image
from iap.attention.kernels.selection import select_top
from iap.attention.patches import centres_of, grid_of
from iap.attention.positions import Positions
from iap.attention.primitives import stop_gradient
from iap.attention.ranking import rank_scores
from iap.attention.selection import gather, soft_top_k, top
from iap.policies.encoders.attention_config import (
    check_attention,
    compile_projection,
    layer_of,
    project_patches,
    project_tokens,
    tokens_of,
)
from iap.policies.encoders.base import Encoder, Encoding, Shape, Window, encode
from iap.policies.params import ParamSpec, affine

ScaleBy = Literal["input", "d"]
CENTRE = 2
NO_POSITIONS = Positions("none")


@dataclass(frozen=True)
class AttentionAgent(Encoder):
    """Exact softmax attention; the features are the centres of the most important patches, best first.

    Attributes:
        patch: side of a patch in pixels.
        stride: pixels from one patch to the next.
        d: dimension of queries and keys, which have biases.
        top_k: K, the number of patches that are selected.
        scale_by: logits are divided by the root of the "input" dimension (as published), or of "d".
        linear: whether linear, row-normalised attention replaces the exact one.
        kernel: of the linear attention.
    """

    image_centre: ClassVar[float] = 0.0

    patch: int = 7
    stride: int = 4
    d: int = 4
    top_k: int = 10
    scale_by: ScaleBy = "input"
    linear: bool = False
    kernel: Kernel = Softmax("favor++", projections=256)

    def __post_init__(self) -> None:
        check_attention(self.patch, self.stride, self.d, self.kernel)
        require_count("top_k", self.top_k)
        require_name("scale_by", self.scale_by, ScaleBy)
        require_flags(self, "linear")

    def check(self, image_shape: Shape) -> None:
        """Raise an error if there are fewer patches than are to be selected."""
        patches = self.window(image_shape).grid.patches
        require_count("top_k", self.top_k, most=patches, why=f" (the patches of an image of {image_shape})")

    def window(self, image_shape: Shape) -> Window:
        """The patches."""
        return Window(grid_of(image_shape[0], image_shape[1], self.patch, self.stride), self.patch, self.stride)

    def feature_size(self, image_shape: Shape) -> int:
        """Row and column of each selected patch."""
        return self.top_k * CENTRE

    def param_specs(self, image_shape: Shape) -> list[ParamSpec]:
        """Queries and keys."""
        width = self.patch**2 * image_shape[2]
        return [*affine("query", width, self.d), *affine("key", width, self.d)]

    def forward(self, params: Mapping[str, Array], images: Array, uniforms: Array | None = None) -> Encoding:
        """The column sums of the row-normalised matrix; the centres of the largest, divided by the image's sides."""
        xp = namespace(images=images)
        shape = (int(images.shape[1]), int(images.shape[2]), int(images.shape[3]))
        tokens = tokens_of(images, self.patch, self.stride, NO_POSITIONS, centre=0)
        factor = self._factor(shape[2])
        queries, keys = (factor * x for x in project_tokens(params, ("query", "key"), tokens))
        if self.linear:
            scores = rank_scores(*featurise(self.kernel, queries, keys), normalise_rows=True).values
        else:
            scores = xp.mean(attention_matrix(Softmax(), queries, keys, normalise_rows=True).values, axis=-2)
        selected = top(scores, self.top_k)
        shares = soft_top_k(scores, self.top_k)
        centres = like(self._centres(shape), scores)
        values = centres * (1 + (shares - stop_gradient(shares)))[..., None]  # a factor of 1 that has a gradient
        return Encoding(xp.reshape(gather(values, selected), (images.shape[0], -1)), scores, selected)

    def compile(self, params: Mapping[str, np.ndarray], image_shape: Shape, dtype: np.dtype) -> "AttentionAgentArrays":
        """The linear ranker, or the projections to queries and keys."""
        factor = self._factor(image_shape[2])
        if self.linear:
            ranker = compile_ranker(
                self.kernel,
                layer_of(params, "query", factor),
                layer_of(params, "key", factor),
                image_shape,
                patch=self.patch,
                stride=self.stride,
                positions=NO_POSITIONS,
                centre=0,
                normalise_rows=True,
            )
            scoring: Any = LinearScoring(ranker.arrays(dtype))
        else:
            names = ("query", "key")
            sizes = image_shape, self.patch, self.stride
            scale = self.d**-0.25  # of the softmax kernel
            scoring = ExactScoring(
                compile_projection(params, names, *sizes, NO_POSITIONS, dtype, centre=0, factor=factor * scale)
            )
        return AttentionAgentArrays(scoring, self.top_k, self._centres(image_shape))

    def _factor(self, channels: int) -> float:
        """The softmax kernel divides logits by √d; this factor of queries and keys makes that √inputs."""
        return (self.d / (self.patch**2 * channels)) ** 0.25 if self.scale_by == "input" else 1.0

    def _centres(self, image_shape: Shape) -> np.ndarray:
        window = self.window(image_shape)
        return centres_of(window.grid, window.patch, window.stride) / np.array(image_shape[:2], np.float32)


class AttentionAgentArrays(NamedTuple):
    """How patches are scored, K, and the patches' centres."""

    scoring: Any
    top_k: Any
    centres: Any


class LinearScoring(NamedTuple):
    """Linear attention."""

    ranker: Any


class ExactScoring(NamedTuple):
    """The exact matrix, computed row by row."""

    projection: Any


@dispatched
def score(scoring, image) -> Any:
    """Compiled code: the scores of all patches, the largest magnitude 1."""


@implements(score, LinearScoring)
@compiled(inner=True)
def _score_linear(scoring, image):
    return score_image(scoring.ranker, image)


@implements(score, ExactScoring)
@compiled(inner=True)
def _score_exact(scoring, image):
    x = project_patches(scoring.projection, image)
    d, patches = len(x) // 2, x.shape[1]
    scores = np.zeros(patches)
    weights = np.empty(patches)
    for i in range(patches):
        weights[:] = 0
        for e in range(d):
            query = x[e, i]
            for j in range(patches):
                weights[j] += query * x[d + e, j]
        peak = np.max(weights)
        total = 0.0
        for j in range(patches):
            weights[j] = math.exp(weights[j] - peak)
            total += weights[j]
        for j in range(patches):
            scores[j] += weights[j] / total
    return (scores / np.max(scores)).astype(np.float32)


@implements(encode, AttentionAgentArrays)
@compiled(inner=True)
def encode_attention_agent(encoder, image, context):
    """The centres of the best patches, best first."""
    scores = score(encoder.scoring, image)
    selected = select_top(scores, encoder.top_k)
    features = np.empty(2 * len(selected), np.float32)
    for i in range(len(selected)):
        features[2 * i], features[2 * i + 1] = encoder.centres[selected[i], 0], encoder.centres[selected[i], 1]
    return features, scores, selected, context.keys
