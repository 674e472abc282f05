"""Eyes with gradients: the mathematics of a policy's own encoder, in JAX, for `gradient_teaching`."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt8

from iap.policies import CNN, MultiHeadRank, PolicyConfig
from iap.policies.readout import scaled_centres
from iap.policies.sizes import Shape, layers_of
from iap.rollouts.episode import one_thread

NOTHING = 1e-12  # instead of 0 where that would divide
LAYOUT = ("NHWC", "HWIO", "NHWC")  # of images, filters, and what comes of them

Parts = dict[str, Array]
Seen = UInt8[np.ndarray, "n looks H W C"]


class Eyes(NamedTuple):
    """What is seen, at one look or several → their readouts, one after the other, in two steps.

    XLA takes several times as long for the gradient of patches times weights on a CPU as for the product; BLAS, image
    by image, does not. Hence that product is a step of its own where images are, which are the largest.

    Attributes:
        project: θ's arrays, and what is seen → projections.
        read: θ's arrays, and projections → readouts.
        slopes: what is seen, and the gradient of projections → the gradient of what `project` takes of θ.
    """

    project: Callable[[Parts, Seen], Array]
    read: Callable[[Parts, Array], Float[Array, "n r"]]
    slopes: Callable[[Seen, Array], dict[str, np.ndarray]]


class Convolution(NamedTuple):
    """One after which comes ReLU; its rows of weights are those of one or more layers of θ, one after the other."""

    names: tuple[str, ...]
    size: int
    stride: int

    def weights(self, parts: Parts) -> Array:
        """(size, size, channels, filters)."""
        rows = jnp.concatenate([parts[f"{name}.weight"] for name in self.names])
        return rows.T.reshape(self.size, self.size, -1, len(rows))

    def biases(self, parts: Parts) -> Array:
        """One a filter."""
        return jnp.concatenate([parts[f"{name}.bias"] for name in self.names])

    def __call__(self, parts: Parts, x: Array) -> Array:
        """Patches times weights."""
        strides = self.stride, self.stride
        return jax.lax.conv_general_dilated(x, self.weights(parts), strides, "VALID", dimension_numbers=LAYOUT)


def eyes_of(spec: PolicyConfig) -> Eyes:
    """The eyes of a policy."""
    if isinstance(spec.encoder, CNN):
        layers = [
            Convolution((f"encoder.layers.{i}",), size, stride)
            for i, (_, size, stride) in enumerate(layers_of(spec.encoder, spec.input_shape))
        ]
        return _convolving_eyes(layers, lambda _parts, outputs: outputs.reshape(len(outputs), -1))
    assert isinstance(spec.encoder, MultiHeadRank)
    encoder = spec.encoder
    stem = [Convolution((f"encoder.stem.{i}",), size, stride) for i, (_, size, stride) in enumerate(encoder.stem)]
    both = Convolution(("encoder.query", "encoder.key"), encoder.patch, encoder.stride)
    return _convolving_eyes([*stem, both], _ranking(encoder, spec.input_shape))


def _convolving_eyes(layers: list[Convolution], finish: Callable[[Parts, Array], Array]) -> Eyes:
    """Convolutions, the first of them of images, and what comes after them for each look."""
    first, *others = layers

    def project(parts: Parts, seen: Array) -> Array:
        out = first(parts, _pixels(seen))
        return out.reshape(*seen.shape[:2], *out.shape[1:])

    def read(parts: Parts, projections: Array) -> Array:
        x = jax.nn.relu(projections.reshape(-1, *projections.shape[2:]) + first.biases(parts))
        for layer in others:
            x = jax.nn.relu(layer(parts, x) + layer.biases(parts))
        return finish(parts, x).reshape(len(projections), -1)

    @one_thread  # several wait for each other longer than they work, once something else runs
    def slopes(seen: Seen, of_projections: Array) -> dict[str, np.ndarray]:
        slopes = np.asarray(of_projections)
        pairs = zip(_pixels(seen), slopes.reshape(-1, math.prod(slopes.shape[2:4]), slopes.shape[4]), strict=True)
        rows = np.sum([slope.T @ _patches(image, first.size, first.stride) for image, slope in pairs], axis=0)
        return dict(zip((f"{name}.weight" for name in first.names), np.split(rows, len(first.names)), strict=True))

    return Eyes(jax.jit(project), jax.jit(read), slopes)


def _ranking(encoder: MultiHeadRank, input_shape: Shape) -> Callable[[Parts, Array], Array]:
    """Features of queries and keys → what the heads tell."""
    row, column = scaled_centres(encoder, input_shape).T
    moments = np.stack([np.ones_like(row), row, column, row * row, row * column, column * column], axis=1)

    def tell(parts: Parts, features: Array) -> Array:
        queries, keys = jnp.split(features.reshape(len(features), -1, 2 * encoder.d), 2, axis=-1)
        heads = queries.mean(axis=1)[:, None] * parts["encoder.gains"]
        scores = jnp.einsum("nld,nhd->nhl", keys, heads)
        # Of a sorted list whose ends alone are wanted XLA would sort everything, which takes twenty times as long.
        kept = jax.lax.optimization_barrier(jax.lax.top_k(scores, encoder.top_k)[0])
        least, most = kept[..., -1:], kept[..., :1]
        shares = jax.nn.relu(scores - least) / jnp.maximum(most - least, NOTHING)
        sums = shares**2 @ moments
        total = jnp.maximum(sums[..., 0], NOTHING)
        y, x, yy, yx, xx = jnp.moveaxis(sums[..., 1:], -1, 0) / total
        return jnp.stack([y, x, yy - y * y, yx - y * x, xx - x * x, total / encoder.top_k], axis=-1)

    return tell


def _patches(image: np.ndarray, patch: int, stride: int) -> np.ndarray:
    """`extract` of one image, with whole rows of a patch copied at a time."""
    height, width, channels = image.shape
    rows = image.reshape(height, width * channels)
    windows = np.lib.stride_tricks.sliding_window_view(rows, (patch, patch * channels))
    return windows[::stride, :: stride * channels].reshape(-1, patch * patch * channels)


def _pixels(seen: Any) -> Any:
    """All images, of all looks, one after the other."""
    return seen.reshape(-1, *seen.shape[2:]).astype(np.float32) / 255 - 0.5
