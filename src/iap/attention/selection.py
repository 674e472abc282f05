"""Scores → patches: the best l, or l drawn by their scores; gathered, or left in place with the others masked."""

import numpy as np
from jaxtyping import Float, Int

from iap.attention.arrays import Array, is_known_false, namespace, require_count, require_finite, require_floats
from iap.attention.features import Kernel
from iap.attention.primitives import relu, top_k_values

EQUAL = 1e-5  # relative difference up to which scores count as equal: sums of equal terms differ by their rounding
SMALLEST_UNIFORM, LARGEST_UNIFORM = 1e-30, 1 - 1e-7  # so that both logarithms of a Gumbel number are finite


def top(scores: Float[Array, "*batch L"], top_k: int) -> Int[Array, "*batch l"]:
    """The indices of the `top_k` largest scores, best first; among equal scores, the lower index first."""
    if isinstance(scores, np.ndarray) and scores.ndim == 1 and scores.dtype == np.float32:
        return _partitioned(scores, _check_top_k(top_k, scores))
    xp = namespace(scores=require_floats("scores", scores, least_rank=1))
    _check_top_k(top_k, scores)
    if is_known_false(~xp.isnan(scores).any()):
        raise ValueError("scores must not hold NaN")
    return xp.argsort(-scores, axis=-1, stable=True)[..., :top_k]


def _partitioned(scores: Float[np.ndarray, " L"], top_k: int) -> Int[np.ndarray, " l"]:
    """`top` of float32 scores without a full sort."""
    if np.isnan(scores).any():
        raise ValueError("scores must not hold NaN")
    threshold = np.partition(scores, -top_k)[-top_k]
    above = np.flatnonzero(scores > threshold)
    level = np.flatnonzero(scores == threshold)[: top_k - len(above)]
    selected = np.concatenate([above, level])
    return selected[np.argsort(-scores[selected], kind="stable")]


def soft_top_k(scores: Float[Array, "*batch L"], top_k: int) -> Float[Array, "*batch L"]:
    """The share of each patch in a soft top-k: (score − least selected) / (most − least selected), 0 for all others.

    The shares are continuous in the scores, and differentiable almost everywhere: a patch enters or leaves the
    selection with a share of 0. If all selected scores are equal, but for rounding, all shares are 0.
    """
    require_floats("scores", scores, least_rank=1)
    _check_top_k(top_k, scores)
    best = top_k_values(scores, top_k)
    least, most = best[..., -1:], best[..., :1]
    return relu(scores - least) / finite_span(least, most)


def zero_to_one(scores: Float[Array, "*batch L"]) -> Float[Array, "*batch L"]:
    """Scores scaled from 0, the smallest, to 1; all 0 if they are equal, but for rounding."""
    xp = namespace(scores=scores)
    least, most = xp.min(scores, axis=-1, keepdims=True), xp.max(scores, axis=-1, keepdims=True)
    return (scores - least) / finite_span(least, most)


def finite_span(least: Array, most: Array) -> Array:
    """The divisor of shares, most − least; infinity if they are equal, but for rounding."""
    xp = namespace(least=least, most=most)
    span = most - least
    differ = span > EQUAL * xp.maximum(xp.abs(least), xp.abs(most))
    return xp.where(differ, span, xp.full_like(span, float("inf")))


def sample(
    scores: Float[Array, "*batch L"], top_k: int, uniforms: Float[Array, "*batch L"], kernel: Kernel
) -> Int[Array, "*batch l"]:
    """`top_k` different patches, each drawn in proportion to the scores of those that remain (softmax sampling).

    The randomness is an argument, so that the same call works, and can be repeated, in every library: `uniforms` holds
    one number in (0, 1) a patch. A patch with score 0 is drawn only if no other remains.
    """
    xp = namespace(scores=require_floats("scores", scores, least_rank=1), uniforms=uniforms)
    _check_top_k(top_k, scores)
    check_samplable(kernel)
    if uniforms.shape[-1:] != scores.shape[-1:]:
        raise ValueError(f"uniforms must be one a patch, {scores.shape[-1]}, not of shape {tuple(uniforms.shape)}")
    require_finite("uniforms", require_floats("uniforms", uniforms))
    if is_known_false((scores >= 0).all()):
        raise ValueError(f"scores must not be negative to sample by them, but one is {float(xp.min(scores))}")
    # The largest of log score + Gumbel noise are a sample without replacement.
    positive = scores > 0
    logs = xp.log(xp.where(positive, scores, xp.ones_like(scores)))
    noisy = logs - xp.log(-xp.log(xp.clip(uniforms, SMALLEST_UNIFORM, LARGEST_UNIFORM)))
    return top(xp.where(positive, noisy, xp.full_like(noisy, -float("inf"))), top_k)


def gather(values: Float[Array, "*batch L d"], selected: Int[Array, "*batch l"]) -> Float[Array, "*batch l d"]:
    """The selected rows only: the paper's "no masking"."""
    xp = namespace(values=values, selected=selected)
    batch = selected.shape[:-1]
    values = xp.broadcast_to(values, (*batch, *values.shape[-2:]))
    index = xp.broadcast_to(selected[..., None], (*selected.shape, values.shape[-1]))
    return xp.take_along_axis(values, index, axis=-2)


def mask(values: Float[Array, "*batch L d"], selected: Int[Array, "*batch l"]) -> Float[Array, "*batch L d"]:
    """All rows, with those that are not selected set to zero."""
    xp = namespace(values=values, selected=selected)
    patches = xp.arange(values.shape[-2], dtype=selected.dtype)
    is_selected = xp.any(selected[..., :, None] == patches, axis=-2)
    return xp.where(is_selected[..., None], values, xp.zeros_like(values))


def check_samplable(kernel: Kernel) -> None:
    """Refuse a kernel whose scores can be negative."""
    if kernel.signed:
        raise ValueError(
            'kernel has features="trigonometric", whose scores can be negative and so are no probabilities: '
            'sample with "positive", "hyperbolic" or "favor++"'
        )


def _check_top_k(top_k: int, scores: Array) -> int:
    return require_count("top_k", top_k, most=scores.shape[-1], why=" (the number of patches)")
