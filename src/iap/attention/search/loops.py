"""The loops behind `search`, compiled."""

import numpy as np
from numba.extending import intrinsic

from iap._compile import compiled

GROUP = 4  # features added up in one pass over the patches
BLOCK = 2048  # patches scored at a time, so that they stay in the cache


@intrinsic
def _popcount(_context, word):
    """How many bits of a word are 1: one instruction, for which Numba has no name."""
    return word(word), lambda _context, builder, _signature, arguments: builder.ctpop(arguments[0])


@compiled
def differing_bits(words, query):
    """The Hamming distance of each row of `words` to `query`."""
    distances = np.empty(len(words), np.int32)
    for i in range(len(words)):
        differing = np.uint64(0)
        for j in range(len(query)):
            differing += _popcount(words[i, j] ^ query[j])  # pyright: ignore[reportCallIssue]
        distances[i] = differing
    return distances


@compiled
def smallest(distances, top_k, largest):
    """The indices of the `top_k` smallest distances, in order: a counting sort that only writes what is kept."""
    places = np.zeros(largest + 2, np.int64)
    for distance in distances:
        places[distance + 1] += 1
    places = np.cumsum(places)
    chosen = np.empty(top_k, np.int64)
    for i in range(len(distances)):
        place = places[distances[i]]
        if place < top_k:
            chosen[place] = i
            places[distances[i]] += 1
    return chosen


@compiled
def weighted_sum(weights, matrix):
    """The sum of weighted rows, each column in the same order, so that equal keys tie: BLAS does not promise that."""
    sums = np.zeros(matrix.shape[1], np.float32)
    for start in range(0, len(sums), BLOCK):
        stop = min(start + BLOCK, len(sums))
        part = sums[start:stop]
        for i in range(0, len(weights), GROUP):
            a, b, c, d = weights[i], weights[i + 1], weights[i + 2], weights[i + 3]
            row_a, row_b = matrix[i, start:stop], matrix[i + 1, start:stop]
            row_c, row_d = matrix[i + 2, start:stop], matrix[i + 3, start:stop]
            for j in range(len(part)):
                part[j] += a * row_a[j] + b * row_b[j] + c * row_c[j] + d * row_d[j]
    return sums


@compiled(fastmath={"reassoc", "contract"})
def descend(nodes, weights, uniforms):
    """One walk from root to leaf a number, which is stretched to [0, 1) again after each turn."""
    patches = len(nodes) // 2
    drawn = np.empty(len(uniforms), np.int64)
    for i in range(len(uniforms)):
        uniform, node = uniforms[i], 1
        while node < patches:
            left_sums, right_sums = nodes[2 * node], nodes[2 * node + 1]
            left, right = np.float32(0), np.float32(0)
            for j in range(len(weights)):
                left += left_sums[j] * weights[j]
                right += right_sums[j] * weights[j]
            target = uniform * (np.float64(left) + np.float64(right))
            node *= 2
            if right == 0:  # nothing there, or so little on both sides that float32 has no number for it
                continue
            if target < left:
                uniform = target / left
            else:
                uniform = (target - left) / right
                node += 1
        drawn[i] = node - patches
    return drawn
