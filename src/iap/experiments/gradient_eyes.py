"""Eyes with gradients: the mathematics of a policy's own vision, in JAX, for `gradient_teaching`."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, UInt8

from iap.policies import CNN, MultiRank, PolicySpec
from iap.policies.readout import scaled_centres
from iap.policies.sizes import Shape, layers_of
from iap.rollouts.episodes import one_thread

NOTHING = 1e-12  # instead of 0 where that would divide
LAYOUT = ("NHWC", "HWIO", "NHWC")  # of images, filters, and what comes of them

Parts = dict[str, Array]
Read = Callable[[Parts, UInt8[Array, "n H W C"]], Float[Array, "n r"]]  # θ's arrays, and what is seen → readouts


def eyes_of(spec: PolicySpec) -> Read:
    """The eyes of a policy."""
    if isinstance(spec.vision, CNN):
        return _convolving_eyes(spec.vision, spec.seen_shape)
    assert isinstance(spec.vision, MultiRank)
    return _ranking_eyes(spec.vision, spec.seen_shape)


def _ranking_eyes(vision: MultiRank, seen_shape: Shape) -> Read:
    row, column = scaled_centres(vision, seen_shape).T
    moments = np.stack([np.ones_like(row), row, column, row * row, row * column, column * column], axis=1)
    project = _projection(vision.patch, vision.stride)

    def read(parts: Parts, seen: Array) -> Array:
        sides = [parts[f"vision.{side}.{what}"] for what in ("weight", "bias") for side in ("query", "key")]
        weights, biases = jnp.concatenate(sides[:2]), jnp.concatenate(sides[2:])
        features = jax.nn.relu(project(weights, _pixels(seen)) + biases)
        queries, keys = features[..., : vision.d], features[..., vision.d :]
        heads = queries.mean(axis=1)[:, None] * parts["vision.gains"]
        scores = jnp.einsum("nld,nhd->nhl", keys, heads)
        # Of a sorted list whose ends alone are wanted XLA would sort everything: ten times as long.
        kept = jax.lax.optimization_barrier(jax.lax.top_k(scores, vision.keep)[0])
        least, most = kept[..., -1:], kept[..., :1]
        shares = jax.nn.relu(scores - least) / jnp.maximum(most - least, NOTHING)
        sums = shares**2 @ moments
        total = jnp.maximum(sums[..., 0], NOTHING)
        y, x, yy, yx, xx = jnp.moveaxis(sums[..., 1:], -1, 0) / total
        told = [y, x, yy - y * y, yx - y * x, xx - x * x, total / vision.keep]
        return jnp.stack(told, axis=-1).reshape(len(seen), -1)

    return jax.jit(read)


def _projection(patch: int, stride: int) -> Callable[[Array, Array], Array]:
    """Every patch times weights, (k, c) and (n, H, W, C) → (n, L, k), with a gradient of the weights alone.

    XLA takes several times as long for that gradient on a CPU as for the product; BLAS, image by image, does not.
    """

    @jax.custom_vjp
    def project(weights: Array, images: Array) -> Array:
        kernel = weights.T.reshape(patch, patch, images.shape[-1], -1)
        out = jax.lax.conv_general_dilated(images, kernel, (stride, stride), "VALID", dimension_numbers=LAYOUT)
        return out.reshape(len(images), -1, len(weights))

    def forward(weights: Array, images: Array) -> tuple[Array, tuple[Array, Array]]:
        return project(weights, images), (weights, images)

    def backward(kept: tuple[Array, Array], slopes: Array) -> tuple[Array, Array]:
        weights, images = kept
        return jax.pure_callback(slope_of_weights, weights, images, slopes), jnp.zeros_like(images)

    @one_thread  # threads wait for each other longer than they work, once something else runs
    def slope_of_weights(images: Array, slopes: Array) -> np.ndarray:
        pairs = zip(np.asarray(images), np.asarray(slopes), strict=True)
        return np.sum([slope.T @ _patches(image, patch, stride) for image, slope in pairs], axis=0)

    project.defvjp(forward, backward)
    return project


def _patches(image: np.ndarray, patch: int, stride: int) -> np.ndarray:
    """`extract` of one image, with whole rows of a patch copied at a time."""
    height, width, channels = image.shape
    rows = image.reshape(height, width * channels)
    windows = np.lib.stride_tricks.sliding_window_view(rows, (patch, patch * channels))
    return windows[::stride, :: stride * channels].reshape(-1, patch * patch * channels)


def _convolving_eyes(vision: CNN, seen_shape: Shape) -> Read:
    layers = layers_of(vision, seen_shape)

    def read(parts: Parts, seen: Array) -> Array:
        x = _pixels(seen)
        for i, (filters, size, stride) in enumerate(layers):
            kernel = parts[f"vision.layers.{i}.weight"].T.reshape(size, size, -1, filters)
            x = jax.lax.conv_general_dilated(x, kernel, (stride, stride), "VALID", dimension_numbers=LAYOUT)
            x = jax.nn.relu(x + parts[f"vision.layers.{i}.bias"])
        return x.reshape(len(seen), -1)

    return jax.jit(read)


def _pixels(seen: Array) -> Array:
    return seen.astype(jnp.float32) / 255 - 0.5
