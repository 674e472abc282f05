"""The loop behind `top` for the scores of one image, compiled."""

import numpy as np
from numba import njit


@njit(cache=True)
def best_first(scores, keep):
    """The indices of the `keep` largest of `scores`, best first, of equals the first; `keep` is at most their number.

    The best so far are kept in order: few of the scores that pass by ever enter.
    """
    best, chosen = np.empty(keep, scores.dtype), np.empty(keep, np.int64)
    held = 0
    for index in range(len(scores)):
        score = scores[index]
        if held == keep and score <= best[keep - 1]:
            continue
        if np.isnan(score):
            raise ValueError("scores must not hold NaN")
        held = min(held + 1, keep)
        place = held - 1
        while place > 0 and best[place - 1] < score:
            best[place], chosen[place] = best[place - 1], chosen[place - 1]
            place -= 1
        best[place], chosen[place] = score, index
    return chosen
