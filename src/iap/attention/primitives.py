"""The few operations that the array API lacks, with one entry a library.

JAX and PyTorch are imported only inside the entry that needs them, so that none of them has to be installed or loaded
for the others. All entries are differentiable where the operation is.
"""

import math

import numpy as np
from array_api_compat import is_jax_array, is_torch_array
from jaxtyping import Float, Int

from iap.attention.arrays import Array, namespace, require_count, require_floats, require_same_dtype
from iap.attention.patches import IMAGE_AXES, extract, grid_of

JAX_LAYOUT = ("NHWC", "HWIO", "NHWC")  # of images, weights and outputs


def relu(x: Array) -> Array:
    """max(x, 0), with gradient 0 at 0; NaN stays NaN."""
    xp = namespace(x=x)
    if is_torch_array(x):
        return xp.relu(x)  # a quarter of the time of `where`, with its gradient
    return xp.where(x <= 0, xp.zeros_like(x), x)


def stop_gradient(x: Array) -> Array:
    """`x` as a constant: no gradient flows back through it."""
    if is_jax_array(x):
        import jax

        return jax.lax.stop_gradient(x)
    return x.detach() if is_torch_array(x) else x


def top_k_values(scores: Float[Array, "*batch L"], k: int) -> Float[Array, "*batch k"]:
    """The k largest values along the last axis, largest first."""
    _check_count(scores, k)
    if is_jax_array(scores):
        import jax

        # Without the barrier XLA replaces a top-k, of which only the first and last entries are used, by a full sort,
        # which takes twenty times as long.
        return jax.lax.optimization_barrier(jax.lax.top_k(scores, k)[0])
    if is_torch_array(scores):
        import torch

        return torch.topk(scores, k, dim=-1).values
    first = scores.shape[-1] - k
    return -np.sort(-np.partition(scores, first, axis=-1)[..., first:], axis=-1)


def top_k_indices(scores: Float[Array, "*batch L"], k: int) -> Int[Array, "*batch k"]:
    """The indices of the k largest values along the last axis, largest first; among equal ones, the lower index."""
    _check_count(scores, k)
    if is_jax_array(scores):
        import jax

        return jax.lax.optimization_barrier(jax.lax.top_k(scores, k)[1])
    return namespace(scores=scores).argsort(-scores, axis=-1, stable=True)[..., :k]


def convolve(
    images: Float[Array, "n H W C"], weights: Float[Array, "filters c"], stride: int
) -> Float[Array, "n rows columns filters"]:
    """The product of every patch with every row of `weights`, without padding.

    Args:
        images: a batch of images.
        weights: one filter a row, its entries in the order (row, column, channel) of `extract`: c = size²·C.
        stride: the distance between neighbouring patches in pixels.
    """
    xp = namespace(images=images, weights=weights)
    require_floats("images", images, rank=IMAGE_AXES + 1)
    require_floats("weights", weights, rank=2)
    require_same_dtype(images=images, weights=weights)
    n, height, width, channels = images.shape
    filters, inputs = weights.shape
    size = math.isqrt(inputs // channels)
    if size * size * channels != inputs:
        raise ValueError(f"weights must have size²·{channels} columns for images of {channels} channels, not {inputs}")
    grid = grid_of(height, width, size, stride)
    if is_jax_array(images):
        import jax

        kernel = xp.reshape(weights.T, (size, size, channels, filters))
        return jax.lax.conv_general_dilated(images, kernel, (stride, stride), "VALID", dimension_numbers=JAX_LAYOUT)
    if is_torch_array(images):
        import torch

        kernel = xp.permute_dims(xp.reshape(weights, (filters, size, size, channels)), (0, 3, 1, 2))
        outputs = torch.nn.functional.conv2d(xp.permute_dims(images, (0, 3, 1, 2)), kernel, stride=stride)
        return xp.permute_dims(outputs, (0, 2, 3, 1))
    return (extract(images, size, stride) @ weights.T).reshape(n, grid.rows, grid.columns, filters)


def _check_count(scores: Array, k: int) -> None:
    require_floats("scores", scores, least_rank=1)
    require_count("k", k, most=scores.shape[-1], why=" (the number of scores)")
