"""Scores → patches: the best l, or l drawn by their scores; gathered, or left in place with the rest masked."""

import numpy as np
from jaxtyping import Float, Int

from iap.attention.arrays import Array, is_known_false, namespace, require_count, require_finite, require_floats
from iap.attention.features import Kernel

FEW = 32  # patches that are kept in order while the scores of an image pass by: with more, partitioning is faster


def top(scores: Float[Array, "*batch L"], top_k: int) -> Int[Array, "*batch l"]:
    """The indices of the `top_k` largest scores, best first; of equal scores, the patch that comes first."""
    if isinstance(scores, np.ndarray) and scores.ndim == 1 and scores.dtype == np.float32:
        return _partitioned(scores, _check_keep(top_k, scores))
    xp = namespace(scores=require_floats("scores", scores, least_rank=1))
    _check_keep(top_k, scores)
    if is_known_false(~xp.isnan(scores).any()):
        raise ValueError("scores must not hold NaN")
    return xp.argsort(-scores, axis=-1, stable=True)[..., :top_k]


def top_of_image(scores: Float[np.ndarray, " L"], top_k: int) -> Int[np.ndarray, " l"]:
    """`top` of one image's float32 scores, compiled where that is faster; `top_k` is not checked."""
    if top_k > FEW:
        return _partitioned(scores, top_k)
    from iap.attention.kernels.top_k import best_first  # who does not ask for it need not load a compiler

    return best_first(scores, top_k)


def _partitioned(scores: Float[np.ndarray, " L"], top_k: int) -> Int[np.ndarray, " l"]:
    """`top` of float32 scores without sorting all of them."""
    if np.isnan(scores).any():
        raise ValueError("scores must not hold NaN")
    threshold = np.partition(scores, -top_k)[-top_k]
    above = np.flatnonzero(scores > threshold)
    level = np.flatnonzero(scores == threshold)[: top_k - len(above)]
    chosen = np.concatenate([above, level])
    return chosen[np.argsort(-scores[chosen], kind="stable")]


def sample(
    scores: Float[Array, "*batch L"], top_k: int, uniforms: Float[Array, "*batch L"], kernel: Kernel
) -> Int[Array, "*batch l"]:
    """`top_k` different patches, each draw in proportion to the scores of those left (softmax sampling).

    The randomness is passed in, so that the same call works, and repeats, in every library: `uniforms` holds one
    number from (0, 1) a patch. A score of 0 is drawn only when nothing else is left.
    """
    xp = namespace(scores=require_floats("scores", scores, least_rank=1), uniforms=uniforms)
    _check_keep(top_k, scores)
    check_samplable(kernel)
    if uniforms.shape[-1:] != scores.shape[-1:]:
        raise ValueError(f"uniforms must be one a patch, {scores.shape[-1]}, not of shape {tuple(uniforms.shape)}")
    require_finite("uniforms", require_floats("uniforms", uniforms))
    if is_known_false((scores >= 0).all()):
        raise ValueError(f"scores must not be negative to sample by them, but one is {float(xp.min(scores))}")
    # log score + Gumbel noise, the largest first, is a draw without replacement
    positive = scores > 0
    logs = xp.log(xp.where(positive, scores, xp.ones_like(scores)))
    tiny = 1e-30
    noisy = logs - xp.log(-xp.log(xp.clip(uniforms, tiny, 1 - 1e-7)))
    return top(xp.where(positive, noisy, xp.full_like(noisy, -float("inf"))), top_k)


def gather(values: Float[Array, "*batch L d"], chosen: Int[Array, "*batch l"]) -> Float[Array, "*batch l d"]:
    """The chosen rows only: the paper's "no masking"."""
    xp = namespace(values=values, chosen=chosen)
    batch = chosen.shape[:-1]
    values = xp.broadcast_to(values, (*batch, *values.shape[-2:]))
    index = xp.broadcast_to(chosen[..., None], (*chosen.shape, values.shape[-1]))
    return xp.take_along_axis(values, index, axis=-2)


def mask(values: Float[Array, "*batch L d"], chosen: Int[Array, "*batch l"]) -> Float[Array, "*batch L d"]:
    """All rows, those not chosen set to zero."""
    xp = namespace(values=values, chosen=chosen)
    patches = xp.arange(values.shape[-2], dtype=chosen.dtype)
    kept = xp.any(chosen[..., :, None] == patches, axis=-2)
    return xp.where(kept[..., None], values, xp.zeros_like(values))


def check_samplable(kernel: Kernel) -> None:
    """Refuse to sample by scores that are not probabilities."""
    if kernel.signed:
        raise ValueError(
            'kernel has features="trigonometric", whose scores can be negative and so are no probabilities: '
            'sample with "positive", "hyperbolic" or "favor++"'
        )


def _check_keep(top_k: int, scores: Array) -> int:
    return require_count("top_k", top_k, most=scores.shape[-1], why=" (the number of patches)")
