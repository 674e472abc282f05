"""The loops of a encoder with several heads, compiled."""

import numpy as np

from iap._compile import compiled
from iap.attention.kernels.projection import project_image
from iap.attention.kernels.relu import pool_relu, score_relu
from iap.attention.kernels.top_k import best_first
from iap.policies.kernels import MOMENTS, above_least


@compiled
def rank_heads(image, patch, stride, steps, weights, row_shares, column_shares, x, gains):
    """Each head's scores of all patches: queries are pooled once, and each head weighs what was pooled by its gains."""
    project_image(image, patch, stride, steps, weights, row_shares, column_shares, x)
    half = len(x) // 2
    pooled = pool_relu(x[:half], np.empty(0, np.float32)) / x.shape[1]
    heads, d = gains.shape
    scores, own = np.empty((heads, x.shape[1]), np.float32), np.zeros(half, np.float32)
    for head in range(heads):
        for e in range(d):
            own[e] = gains[head, e] * pooled[e]
        score_relu(x[half:], own, scores[head])
    return scores


@compiled
def read_heads(scores, top_k, centres):
    """What the heads tell, which patches each has chosen, and each patch's best score of all heads', 0 to 1.

    A patch's weight in a head is its share squared, and its share how far its score lies above the least that is kept.
    A head whose kept scores are all equal tells zeros.
    """
    heads, patches = scores.shape
    readout = np.zeros(heads * MOMENTS, np.float32)
    chosen = np.empty((heads, top_k), np.int64)
    best = np.zeros(patches, np.float32)
    for head in range(heads):
        chosen[head] = best_first(scores[head], top_k)
        least, most = np.min(scores[head]), scores[head, chosen[head, 0]]
        if most > least:
            for index in range(patches):
                best[index] = max(best[index], (scores[head, index] - least) / (most - least))
        if scores[head, chosen[head, 0]] == scores[head, chosen[head, top_k - 1]]:
            continue  # a head that prefers nothing tells nothing
        shares = above_least(scores[head], chosen[head])
        mass = row = column = rows = both = columns = 0.0
        for i in range(top_k):
            index = chosen[head, i]
            weight, y, x = shares[i] ** 2, centres[index, 0], centres[index, 1]
            mass += weight
            row += weight * y
            column += weight * x
            rows += weight * y * y
            both += weight * y * x
            columns += weight * x * x
        row, column = row / mass, column / mass
        out = readout[head * MOMENTS : (head + 1) * MOMENTS]
        out[0], out[1] = row, column
        out[2], out[3], out[4] = rows / mass - row * row, both / mass - row * column, columns / mass - column * column
        out[5] = mass / keep
    return readout, chosen, best
