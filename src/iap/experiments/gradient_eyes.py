"""Eyes with gradients: the mathematics of a policy's own vision, in JAX, for `gradient_teaching`."""

from collections.abc import Callable
from typing import Any, NamedTuple

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
Seen = UInt8[np.ndarray, "n looks H W C"]


class Eyes(NamedTuple):
    """What is seen, at one look or several → their readouts, one after the other, in two steps.

    XLA takes several times as long for the gradient of patches times weights on a CPU as for the product; BLAS, image
    by image, does not. Hence that product is a step of its own.

    Attributes:
        project: θ's arrays, and what is seen → projections.
        read: θ's arrays, and projections → readouts.
        slopes: what is seen, and the gradient of projections → the gradient of what `project` takes of θ.
    """

    project: Callable[[Parts, Seen], Array]
    read: Callable[[Parts, Array], Float[Array, "n r"]]
    slopes: Callable[[Seen, Array], dict[str, np.ndarray]]


def eyes_of(spec: PolicySpec) -> Eyes:
    """The eyes of a policy."""
    if isinstance(spec.vision, CNN):
        return _convolving_eyes(spec.vision, spec.seen_shape)
    assert isinstance(spec.vision, MultiRank)
    return _ranking_eyes(spec.vision, spec.seen_shape)


def _ranking_eyes(vision: MultiRank, seen_shape: Shape) -> Eyes:
    row, column = scaled_centres(vision, seen_shape).T
    moments = np.stack([np.ones_like(row), row, column, row * row, row * column, column * column], axis=1)
    patch, stride, d = vision.patch, vision.stride, vision.d

    def project(parts: Parts, seen: Array) -> Array:
        weights = jnp.concatenate([parts["vision.query.weight"], parts["vision.key.weight"]])
        kernel = weights.T.reshape(patch, patch, seen_shape[-1], -1)
        out = jax.lax.conv_general_dilated(_pixels(seen), kernel, (stride, stride), "VALID", dimension_numbers=LAYOUT)
        return out.reshape(*seen.shape[:2], -1, 2 * d)

    def read(parts: Parts, projections: Array) -> Array:
        biases = jnp.concatenate([parts["vision.query.bias"], parts["vision.key.bias"]])
        features = jax.nn.relu(projections + biases)
        queries, keys = features[..., :d], features[..., d:]
        heads = queries.mean(axis=2)[:, :, None] * parts["vision.gains"]
        scores = jnp.einsum("nkld,nkhd->nkhl", keys, heads)
        # Of a sorted list whose ends alone are wanted XLA would sort everything, which takes twenty times as long.
        kept = jax.lax.optimization_barrier(jax.lax.top_k(scores, vision.keep)[0])
        least, most = kept[..., -1:], kept[..., :1]
        shares = jax.nn.relu(scores - least) / jnp.maximum(most - least, NOTHING)
        sums = shares**2 @ moments
        total = jnp.maximum(sums[..., 0], NOTHING)
        y, x, yy, yx, xx = jnp.moveaxis(sums[..., 1:], -1, 0) / total
        told = [y, x, yy - y * y, yx - y * x, xx - x * x, total / vision.keep]
        return jnp.stack(told, axis=-1).reshape(len(projections), -1)

    @one_thread  # several wait for each other longer than they work, once something else runs
    def slopes(seen: Seen, of_projections: Array) -> dict[str, np.ndarray]:
        slopes = np.asarray(of_projections)
        pairs = zip(_pixels(seen), slopes.reshape(-1, *slopes.shape[2:]), strict=True)
        both = np.sum([slope.T @ _patches(image, patch, stride) for image, slope in pairs], axis=0)
        return {"vision.query.weight": both[:d], "vision.key.weight": both[d:]}

    return Eyes(jax.jit(project), jax.jit(read), slopes)


def _patches(image: np.ndarray, patch: int, stride: int) -> np.ndarray:
    """`extract` of one image, with whole rows of a patch copied at a time."""
    height, width, channels = image.shape
    rows = image.reshape(height, width * channels)
    windows = np.lib.stride_tricks.sliding_window_view(rows, (patch, patch * channels))
    return windows[::stride, :: stride * channels].reshape(-1, patch * patch * channels)


def _convolving_eyes(vision: CNN, seen_shape: Shape) -> Eyes:
    layers = layers_of(vision, seen_shape)

    def project(_parts: Parts, seen: Seen) -> Array:
        return jnp.asarray(_pixels(seen).reshape(seen.shape))

    def read(parts: Parts, pixels: Array) -> Array:
        x = jax.lax.stop_gradient(pixels.reshape(-1, *seen_shape))
        for i, (filters, size, stride) in enumerate(layers):
            kernel = parts[f"vision.layers.{i}.weight"].T.reshape(size, size, -1, filters)
            x = jax.lax.conv_general_dilated(x, kernel, (stride, stride), "VALID", dimension_numbers=LAYOUT)
            x = jax.nn.relu(x + parts[f"vision.layers.{i}.bias"])
        return x.reshape(len(pixels), -1)

    return Eyes(project, jax.jit(read), lambda _seen, _slopes: {})


def _pixels(seen: Any) -> Any:
    """All images, of all looks, one after the other."""
    return seen.reshape(-1, *seen.shape[2:]).astype(np.float32) / 255 - 0.5
