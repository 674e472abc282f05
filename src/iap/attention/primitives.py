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

BATCH_NORM_EPSILON = 1e-5
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
    images: Float[Array, "n H W C"],
    weights: Float[Array, "filters c"],
    stride: int,
    *,
    dilation: int = 1,
    padding: int = 0,
) -> Float[Array, "n rows columns filters"]:
    """The product of every patch with every row of `weights`.

    Args:
        images: a batch of images.
        weights: one filter a row, its entries in the order (row, column, channel) of `extract`: c = size²·C.
        stride: the distance between neighbouring patches in pixels.
        dilation: the distance between neighbouring pixels of a patch.
        padding: zeros that are added on each side of the images.
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
    side = dilation * (size - 1) + 1
    grid = grid_of(height + 2 * padding, width + 2 * padding, side, stride)
    if is_jax_array(images):
        import jax

        kernel = xp.reshape(weights.T, (size, size, channels, filters))
        sides = [(padding, padding)] * 2
        return jax.lax.conv_general_dilated(
            images, kernel, (stride, stride), sides, rhs_dilation=(dilation, dilation), dimension_numbers=JAX_LAYOUT
        )
    if is_torch_array(images):
        import torch

        kernel = xp.permute_dims(xp.reshape(weights, (filters, size, size, channels)), (0, 3, 1, 2))
        outputs = torch.nn.functional.conv2d(
            xp.permute_dims(images, (0, 3, 1, 2)), kernel, stride=stride, padding=padding, dilation=dilation
        )
        return xp.permute_dims(outputs, (0, 2, 3, 1))
    images = np.pad(images, ((0, 0), (padding, padding), (padding, padding), (0, 0))) if padding else images
    patches = extract(images, side, stride) if dilation == 1 else _extract_dilated(images, size, stride, dilation)
    return (patches @ weights.T).reshape(n, grid.rows, grid.columns, filters)


def batch_norm(
    x: Float[Array, "n H W C"], bias: Float[Array, " C"], statistics: tuple[Array, Array] | None = None
) -> tuple[Float[Array, "n H W C"], tuple[Array, Array]]:
    """(x − mean) / √(variance + 1e-5) + bias of each channel; and mean and variance, without gradients.

    Args:
        x: a batch of maps.
        bias: added to the normalised channels.
        statistics: mean and variance of each channel; by default those of the batch, through which gradients flow.
    """
    xp = namespace(x=x, bias=bias)
    if is_torch_array(x):
        return _torch_batch_norm(x, bias, statistics)
    if statistics is None:
        mean = xp.mean(x, axis=(0, 1, 2))
        statistics = mean, xp.mean((x - mean) ** 2, axis=(0, 1, 2))
    mean, variance = statistics
    normalised = (x - mean) * (1 / xp.sqrt(variance + BATCH_NORM_EPSILON)) + bias
    return normalised, (stop_gradient(mean), stop_gradient(variance))


def _torch_batch_norm(
    x: Array, bias: Array, statistics: tuple[Array, Array] | None
) -> tuple[Array, tuple[Array, Array]]:
    """PyTorch's own batch norm, which is faster than its parts."""
    import torch

    mean, variance = statistics or (torch.zeros_like(bias), torch.ones_like(bias))
    mean, variance = mean.detach(), variance.detach()
    outputs = torch.nn.functional.batch_norm(
        x.permute(0, 3, 1, 2),
        mean,
        variance,
        bias=bias,
        training=statistics is None,  # if so, it writes the batch's mean and variance to `mean` and `variance`
        momentum=1.0,
        eps=BATCH_NORM_EPSILON,
    )
    count = x.numel() // x.shape[-1]
    divisor = 1 if statistics is not None else count / (count - 1)  # the written variance is divided by count − 1
    return outputs.permute(0, 2, 3, 1), (mean, variance / divisor)


def _extract_dilated(
    images: Float[np.ndarray, "n H W C"], size: int, stride: int, dilation: int
) -> Float[np.ndarray, "n L c"]:
    """`extract` of patches whose pixels are `dilation` apart."""
    side = dilation * (size - 1) + 1
    windows = np.lib.stride_tricks.sliding_window_view(images, (side, side), (1, 2))
    patches = windows[:, ::stride, ::stride, :, ::dilation, ::dilation]  # (n, rows, columns, C, size, size)
    return np.moveaxis(patches, 3, -1).reshape(len(images), -1, size * size * images.shape[-1])


def _check_count(scores: Array, k: int) -> None:
    require_floats("scores", scores, least_rank=1)
    require_count("k", k, most=scores.shape[-1], why=" (the number of scores)")
