"""Selection of patches by the scores of one image, compiled."""

import math

import numpy as np

from iap._compile import compiled
from iap.attention.kernels.top_k import best_first, kth_largest, sort_best_first

FEW = 32  # selected patches; with more, a threshold is faster than keeping a sorted list
SMALLEST_UNIFORM = np.float32(1e-30)
LARGEST_UNIFORM = np.float32(1 - 1e-7)


@compiled
def select_top(scores, count):
    """The indices of the `count` largest scores, best first; of equal scores, the patch that comes first."""
    if count <= FEW:
        return best_first(scores, count)
    if np.isnan(scores).any():
        raise ValueError("scores must not hold NaN")
    threshold = kth_largest(scores.copy(), count)
    selected = np.empty(count, np.int64)
    found = 0
    for index in range(len(scores)):
        if scores[index] > threshold:
            selected[found] = index
            found += 1
    for index in range(len(scores)):
        if found == count:
            break
        if scores[index] == threshold:
            selected[found] = index
            found += 1
    sort_best_first(scores, selected)
    return selected


@compiled
def select_sample(scores, uniforms, count):
    """`count` different patches, each drawn in proportion to the scores of those left; best draws first.

    log score + Gumbel noise, largest first, is a draw without replacement. A score of 0 is drawn last.
    """
    noisy = np.empty(len(scores), np.float32)
    for index in range(len(scores)):
        score = scores[index]
        if score < 0:
            raise ValueError("scores must not be negative to sample by them")
        uniform = min(max(uniforms[index], SMALLEST_UNIFORM), LARGEST_UNIFORM)
        gumbel = np.float32(math.log(-math.log(uniform)))
        noisy[index] = np.float32(math.log(score)) - gumbel if score > 0 else -np.inf
    return select_top(noisy, count)
