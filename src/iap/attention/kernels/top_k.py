"""The top-k of the scores of one image, compiled."""

import numpy as np

from iap._compile import compiled

BLOCKS_A_PATCH = 4  # for each selected patch
SHORTEST_BLOCK = 8


@compiled
def best_first(scores, top_k):
    """The indices of the `top_k` largest of `scores`, best first, among equal ones the lower index first.

    `top_k` is at most the number of scores. The maxima of blocks of scores are computed first: the `top_k`-th largest
    maximum is a threshold that few scores reach, and those are inserted into a sorted list.
    """
    if np.isnan(scores).any():
        raise ValueError("scores must not hold NaN")
    length = max(SHORTEST_BLOCK, len(scores) // (BLOCKS_A_PATCH * top_k))
    peaks = _peaks(scores, length)
    threshold = kth_largest(peaks.copy(), top_k) if len(peaks) >= top_k else -np.inf
    best, selected = np.empty(top_k, scores.dtype), np.empty(top_k, np.int64)
    found = 0
    for block in range(len(peaks)):
        if peaks[block] < threshold:
            continue
        for index in range(block * length, min((block + 1) * length, len(scores))):
            score = scores[index]
            if score < threshold or (found == top_k and score <= best[top_k - 1]):
                continue
            found = min(found + 1, top_k)
            place = found - 1
            while place > 0 and best[place - 1] < score:
                best[place], selected[place] = best[place - 1], selected[place - 1]
                place -= 1
            best[place], selected[place] = score, index
    return selected


@compiled(fastmath={"nnan", "nsz"})
def _peaks(scores, length):
    """The maximum of each block of scores."""
    peaks = np.empty(-(-len(scores) // length), scores.dtype)
    for block in range(len(peaks)):
        peak = scores[block * length]
        for index in range(block * length, min((block + 1) * length, len(scores))):
            peak = max(peak, scores[index])
        peaks[block] = peak
    return peaks


@compiled
def kth_largest(values, k):
    """The k-th largest of `values`, which are reordered: quickselect, which compiles faster than `np.partition`."""
    low, high, place = 0, len(values) - 1, k - 1
    while low < high:
        pivot, left, right = values[(low + high) // 2], low, high
        while left <= right:
            while values[left] > pivot:
                left += 1
            while values[right] < pivot:
                right -= 1
            if left <= right:
                values[left], values[right] = values[right], values[left]
                left += 1
                right -= 1
        if place <= right:
            high = right
        elif place >= left:
            low = left
        else:
            break
    return values[place]


@compiled
def sort_best_first(scores, indices):
    """Sort `indices` in place by their scores, best first, among equal ones the lower index first: a shell sort."""
    gap = len(indices) // 2
    while gap > 0:
        for i in range(gap, len(indices)):
            index, place = indices[i], i
            while place >= gap and _is_better(scores, index, indices[place - gap]):
                indices[place] = indices[place - gap]
                place -= gap
            indices[place] = index
        gap //= 2


@compiled
def _is_better(scores, index, other):
    return scores[index] > scores[other] or (scores[index] == scores[other] and index < other)
