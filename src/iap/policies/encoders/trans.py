"""IAP-trans: attention mixes the patches' values, and a learnt P compresses the L rows to a few."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from iap._compile import compiled, implements
from iap._validation import require_count, require_flags, require_type
from iap.attention.arrays import Array, namespace
from iap.attention.features import Kernel, Softmax, featurise
from iap.attention.kernels.features import put_features
from iap.attention.kernels.folding import compile_features
from iap.attention.mixing import LAYER_NORM_EPSILON, layer_norm, mix
from iap.attention.patches import grid_of
from iap.attention.positions import Positions
from iap.attention.ranking import rank_scores, with_unit_rows
from iap.policies.encoders.attention_config import (
    ProjectionArrays,
    check_attention,
    check_pixel_scale,
    compile_projection,
    project_patches,
    project_tokens,
    scaled_tokens,
    with_scaled_pixels,
)
from iap.policies.encoders.base import Encoder, Encoding, Shape, Window, encode
from iap.policies.params import ParamSpec, affine


@dataclass(frozen=True)
class Trans(Encoder):
    """IAP-trans.

    Attributes:
        patch: side of a patch in pixels.
        stride: pixels from one patch to the next.
        d: dimension of queries and keys.
        rows: l, the rows of P.
        value_size: v, the length of a value, a learnt projection of a patch.
        kernel: the attention kernel.
        positions: the position encoding of the patches.
        residual: whether the values themselves are added to the mixed values.
        layer_norm: whether each row is brought to mean 0 and variance 1; the controller has the gains.
        normalise_rows: whether each query's attention sums to one, so that the residual is of the same size.
        bias: whether queries, keys and values have biases.
        pixel_offset: queries, keys and values receive (pixel − pixel_offset)·pixel_scale.
        pixel_scale: for images whose pixels are not in ±0.5, such as depths in metres.
    """

    patch: int = 4
    stride: int = 4
    d: int = 4
    rows: int = 4
    value_size: int = 4
    kernel: Kernel = Softmax()
    positions: Positions = Positions()
    residual: bool = True
    layer_norm: bool = True
    normalise_rows: bool = True
    bias: bool = False
    pixel_offset: float = 0.0
    pixel_scale: float = 1.0

    def __post_init__(self) -> None:
        check_attention(self.patch, self.stride, self.d, self.kernel)
        check_pixel_scale(self.pixel_offset, self.pixel_scale)
        require_type("positions", self.positions, Positions)
        require_count("rows", self.rows)
        require_count("value_size", self.value_size)
        require_flags(self, "residual", "layer_norm", "normalise_rows", "bias")

    def check(self, image_shape: Shape) -> None:
        """Raise an error if patches are larger than the image."""
        self.window(image_shape)

    def window(self, image_shape: Shape) -> Window:
        """The patches."""
        return Window(grid_of(image_shape[0], image_shape[1], self.patch, self.stride), self.patch, self.stride)

    def feature_size(self, image_shape: Shape) -> int:
        """All rows of the compressed values."""
        return self.rows * self.value_size

    def param_specs(self, image_shape: Shape) -> list[ParamSpec]:
        """Queries, keys, values and P."""
        width = self.positions.width(self.patch**2 * image_shape[2])
        patches = self.window(image_shape).grid.patches
        return [
            *affine("query", width, self.d, bias=self.bias),
            *affine("key", width, self.d, bias=self.bias),
            *affine("value", width, self.value_size, bias=self.bias),
            ParamSpec("pooling", (self.rows, patches), 1 / math.sqrt(patches)),
        ]

    def forward(self, params: Mapping[str, Array], images: Array, uniforms: Array | None = None) -> Encoding:
        """P·(A·V + V); the scores are the attention that each patch receives, with P's signs ignored."""
        xp = namespace(images=images)
        tokens = scaled_tokens(self, images)
        queries, keys, values = project_tokens(params, ("query", "key", "value"), tokens)
        query_features, key_features = featurise(self.kernel, queries, keys)
        if self.normalise_rows:
            query_features = with_unit_rows(query_features, key_features)
        mixed = mix(params["pooling"], query_features, key_features, values, residual=self.residual)
        mixed = layer_norm(mixed) if self.layer_norm else mixed
        weights = xp.mean(xp.abs(params["pooling"]), axis=0)
        scores = rank_scores(query_features, key_features, pooling=weights).values
        return Encoding(xp.reshape(mixed, (images.shape[0], -1)), scores)

    def compile(self, params: Mapping[str, np.ndarray], image_shape: Shape, dtype: np.dtype) -> "TransArrays":
        """The projections to queries, keys and values, the kernel's features, and P."""
        names = ("query", "key", "value")
        folded, positions = with_scaled_pixels(params, names, self, image_shape[2])
        projection = compile_projection(folded, names, image_shape, self.patch, self.stride, positions, dtype)
        pooling = np.array(params["pooling"], np.float32)
        return TransArrays(
            projection,
            compile_features(self.kernel, self.d),
            self.d,
            pooling,
            np.abs(pooling).mean(axis=0),
            self.residual,
            self.layer_norm,
            self.normalise_rows,
        )


class TransArrays(NamedTuple):
    """Projections, features, d, P and the mean size of its columns, and the options."""

    projection: ProjectionArrays
    features: Any
    d: Any
    pooling: Any
    weights: Any
    residual: Any
    layer_norm: Any
    normalise_rows: Any


@implements(encode, TransArrays)
@compiled(inner=True)
def encode_trans(encoder, image, context):
    """P·(A·V + V) through (K′ᵀV), with A never formed."""
    x = project_patches(encoder.projection, image)  # (2d + v, L)
    d, patches = encoder.d, x.shape[1]
    values = x[2 * d :]
    queries, query_logs, keys, key_logs = put_features(encoder.features, x[:d], x[d : 2 * d])
    mixed, shares, key_weights = _mix(queries, query_logs, keys, key_logs, values, encoder)
    if encoder.residual:
        mixed += values
    out = np.zeros((len(encoder.pooling), len(values)), np.float32)
    for row in range(len(out)):
        for v in range(len(values)):
            total = np.float32(0)
            for j in range(patches):
                total += encoder.pooling[row, j] * mixed[v, j]
            out[row, v] = total
        if encoder.layer_norm:
            _normalise(out[row])
    scores = np.zeros(patches, np.float32)
    largest = np.float32(0)
    for j in range(patches):
        total = 0.0
        for f in range(len(shares)):
            total += key_weights[f, j] * shares[f]
        scores[j] = total
        largest = max(largest, abs(scores[j]))
    if largest > 0:
        scores /= largest
    return out.reshape(out.size), scores, np.empty(0, np.int64), context.keys


@compiled(inner=True)
def _mix(queries, query_logs, keys, key_logs, values, encoder):
    """A·V, (v, L); the weight that all queries together give to each feature of the keys; and the keys' features.

    Numbers are values·exp(logs): each feature of the keys is divided by its largest size, each query by its own.
    """
    features, patches = keys.shape
    size = len(values)
    key_weights, key_peaks, ones, summary = _summarise_keys(keys, key_logs, values)
    peaks = _query_peaks(query_logs, key_peaks)
    peak_of_all = np.max(peaks)
    mixed = np.zeros((size, patches), np.float32)
    shares = np.zeros(features)
    weights = np.empty(features)
    for i in range(patches):
        row = 0.0
        for f in range(features):
            weights[f] = queries[f, i] * math.exp(query_logs[f, i] + key_peaks[f] - peaks[i])
            row += weights[f] * ones[f]
        if encoder.normalise_rows:
            factor = 1 / row if row != 0 else 0.0
            counted = factor
        else:
            factor, counted = math.exp(peaks[i]), math.exp(peaks[i] - peak_of_all)
        for f in range(features):
            shares[f] += encoder.weights[i] * weights[f] * counted
        for v in range(size):
            total = 0.0
            for f in range(features):
                total += weights[f] * summary[f, v]
            mixed[v, i] = total * factor
    return mixed, shares, key_weights


@compiled(inner=True)
def _summarise_keys(keys, key_logs, values):
    """The keys' features, divided by the exponential of each feature's largest log; those logs; K′ᵀ1 and K′ᵀV."""
    features, patches = keys.shape
    key_weights, key_peaks = np.empty((features, patches)), np.empty(features)
    ones, summary = np.zeros(features), np.zeros((features, len(values)))
    for f in range(features):
        key_peaks[f] = np.max(key_logs[f])
        for j in range(patches):
            weight = keys[f, j] * math.exp(key_logs[f, j] - key_peaks[f])
            key_weights[f, j] = weight
            ones[f] += weight
            for v in range(len(values)):
                summary[f, v] += weight * values[v, j]
    return key_weights, key_peaks, ones, summary


@compiled(inner=True)
def _query_peaks(query_logs, key_peaks):
    """The largest log of each query's products with the keys' features."""
    features, patches = query_logs.shape
    peaks = np.full(patches, -np.inf)
    for f in range(features):
        for i in range(patches):
            peaks[i] = max(peaks[i], query_logs[f, i] + key_peaks[f])
    return peaks


@compiled(inner=True)
def _normalise(row):
    """Mean 0 and variance 1, in place."""
    mean = np.mean(row)
    variance = np.float32(0)
    for i in range(len(row)):
        row[i] -= mean
        variance += row[i] * row[i]
    scale = np.float32(1) / math.sqrt(variance / len(row) + LAYER_NORM_EPSILON)
    for i in range(len(row)):
        row[i] *= scale
