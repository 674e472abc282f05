"""The loop behind `top` for the scores of one image, compiled."""

import numpy as np

from iap._compile import compiled

BLOCKS_A_PATCH = 4  # that is kept
SHORTEST_BLOCK = 8


@compiled
def best_first(scores, top_k):
    """The indices of the `top_k` largest of `scores`, best first, of equals the first; `top_k` is at most their number.

    The largest of each block of scores come first: `top_k` of them set a bar that few scores reach, and those are kept
    in order while they pass by.
    """
    if np.isnan(scores).any():
        raise ValueError("scores must not hold NaN")
    length = max(SHORTEST_BLOCK, len(scores) // (BLOCKS_A_PATCH * top_k))
    peaks = _peaks(scores, length)
    bar = np.sort(peaks)[-top_k] if len(peaks) >= top_k else -np.inf
    best, chosen = np.empty(top_k, scores.dtype), np.empty(top_k, np.int64)
    held = 0
    for block in range(len(peaks)):
        if peaks[block] < bar:
            continue
        for index in range(block * length, min((block + 1) * length, len(scores))):
            score = scores[index]
            if score < bar or (held == top_k and score <= best[top_k - 1]):
                continue
            held = min(held + 1, top_k)
            place = held - 1
            while place > 0 and best[place - 1] < score:
                best[place], chosen[place] = best[place - 1], chosen[place - 1]
                place -= 1
            best[place], chosen[place] = score, index
    return chosen


@compiled(fastmath={"nnan", "nsz"})
def _peaks(scores, length):
    """The largest of each block of scores."""
    peaks = np.empty(-(-len(scores) // length), scores.dtype)
    for block in range(len(peaks)):
        peak = scores[block * length]
        for index in range(block * length, min((block + 1) * length, len(scores))):
            peak = max(peak, scores[index])
        peaks[block] = peak
    return peaks
