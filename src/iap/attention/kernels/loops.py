"""The loops behind `fused`, compiled: each runs over patches in its innermost loop, so that it becomes vector code.

Arrays are feature-major: `x` is (D, L), one row a dimension, D a multiple of 4. Exponents are base 2: queries and keys
carry a factor √(log₂ e), and `half_norms` is log₂(e)·‖x‖²/2.
"""

import math

import numpy as np

from iap._compile import compiled
from iap.attention.kernels.elementary import cosine, exp2, sine

BLOCK = 512  # patches at a time: what a block touches stays in the first-level cache
HALF = np.float32(0.5)

# Sums may be reordered, and no NaN is expected: inputs are checked before.
FAST = {"contract", "reassoc", "nsz", "nnan", "ninf", "arcp"}


@compiled(fastmath=FAST)
def project_image(image, patch, stride, steps, weights, row_shares, column_shares, x):
    """x = W·patch + the position's share, for queries and keys of all heads at once: rows of `weights`.

    `steps` is a tuple whose length, which the compiler knows, is how many numbers lie from one patch to the next (or
    an empty one where they are many): with it strided reads become wide reads and shuffles.
    """
    height, width, channels = image.shape
    lines = image.reshape(height, width * channels)
    rows, columns = row_shares.shape[1], column_shares.shape[1]
    together = max(1, BLOCK // columns)  # rows of patches, so that loops are long
    tokens = np.empty((weights.shape[1], together * columns), np.float32)
    for first in range(0, rows, together):
        count = min(together, rows - first)
        for i in range(count):
            for y in range(patch):
                line = lines[(first + i) * stride + y]
                for o in range(patch * channels):
                    token = tokens[y * patch * channels + o, i * columns : (i + 1) * columns]
                    _take_every(line[o:], stride * channels, steps, token)
        start, length = first * columns, count * columns
        for e in range(len(weights)):
            out = x[e, start : start + length]
            for i in range(count):
                row, column = row_shares[e, first + i], column_shares[e]
                for j in range(columns):
                    out[i * columns + j] = row + column[j]
            _add_products(weights[e], tokens, out)


@compiled(fastmath=FAST)
def _take_every(line, step, steps, out):
    if len(steps) > 0:
        for j in range(len(out)):
            out[j] = np.float32(line[j * len(steps)])
    else:
        for j in range(len(out)):
            out[j] = np.float32(line[j * step])


@compiled(fastmath=FAST)
def _add_products(w, tokens, out):
    """Add w·tokens to `out`, six rows of tokens at a time: fewer trips to memory, and all in registers."""
    whole = len(w) // 6 * 6
    for k in range(0, whole, 6):
        t0, t1, t2, t3, t4, t5 = tokens[k], tokens[k + 1], tokens[k + 2], tokens[k + 3], tokens[k + 4], tokens[k + 5]
        w0, w1, w2, w3, w4, w5 = w[k], w[k + 1], w[k + 2], w[k + 3], w[k + 4], w[k + 5]
        for j in range(len(out)):
            out[j] += w0 * t0[j] + w1 * t1[j] + w2 * t2[j] + w3 * t3[j] + w4 * t4[j] + w5 * t5[j]
    for k in range(whole, len(w)):
        t0, w0 = tokens[k], w[k]
        for j in range(len(out)):
            out[j] += w0 * t0[j]


@compiled(fastmath=FAST)
def halve_norms(x, half_norms):
    """½‖x‖² of each patch."""
    half_norms[:] = 0
    for e in range(len(x)):
        row = x[e]
        for j in range(len(row)):
            half_norms[j] += HALF * row[j] * row[j]


@compiled(fastmath=FAST)
def put_on_sphere(x, half_norms, length):
    """Each patch's x scaled to `length`, and 0 where it is 0."""
    for j in range(len(half_norms)):
        squared = 2 * half_norms[j]
        half_norms[j] = length / math.sqrt(squared) if squared > 0 else np.float32(0)
    for e in range(len(x)):
        row = x[e]
        for j in range(len(row)):
            row[j] *= half_norms[j]
    halve_norms(x, half_norms)


@compiled(fastmath=FAST)
def _gather_rest(x, half_norms, omega, start, rest):
    """The exponents' negative without the bias and without the first four dimensions, which the callers add."""
    rest[:] = half_norms[start : start + len(rest)]
    for e in range(4, len(x), 4):
        x0, x1, x2, x3 = x[e, start:], x[e + 1, start:], x[e + 2, start:], x[e + 3, start:]
        w0, w1, w2, w3 = omega[e], omega[e + 1], omega[e + 2], omega[e + 3]
        for j in range(len(rest)):
            rest[j] -= w0 * x0[j] + w1 * x1[j] + w2 * x2[j] + w3 * x3[j]


@compiled(fastmath=FAST)
def pool_positive(x, half_norms, omega, bias, weights):
    """Σ over patches of weight·2^(ω·x + bias − half_norm), one sum a feature; no weights mean ones."""
    sums = np.zeros(len(omega), np.float64)
    buffer = np.empty(BLOCK, np.float32)
    for start in range(0, len(half_norms), BLOCK):
        n = min(BLOCK, len(half_norms) - start)
        x0, x1, x2, x3 = x[0, start:], x[1, start:], x[2, start:], x[3, start:]
        for f in range(len(omega)):
            w0, w1, w2, w3, c = omega[f, 0], omega[f, 1], omega[f, 2], omega[f, 3], bias[f]
            rest = half_norms[start : start + n]
            if len(x) > 4:  # noqa: PLR2004
                rest = buffer[:n]
                _gather_rest(x, half_norms, omega[f], start, rest)
            total = np.float32(0)
            if len(weights) > 0:
                weight = weights[start:]
                for j in range(n):
                    total += weight[j] * exp2(c - rest[j] + w0 * x0[j] + w1 * x1[j] + w2 * x2[j] + w3 * x3[j])
            else:
                for j in range(n):
                    total += exp2(c - rest[j] + w0 * x0[j] + w1 * x1[j] + w2 * x2[j] + w3 * x3[j])
            sums[f] += total
    return sums


@compiled
def to_signs_and_exponents(sums, exponents):
    """The numbers sums·2^exponents as signs and exponents alone; the smallest |sum| tells if they can be trusted."""
    signs, sizes, smallest = np.empty(len(sums), np.float32), np.empty(len(sums), np.float32), np.inf
    for f in range(len(sums)):
        signs[f] = np.sign(sums[f])
        size = abs(sums[f])
        smallest = min(smallest, size)
        sizes[f] = exponents[f] + (math.log2(size) if size > 0 else 0.0)
    return signs, sizes, smallest


@compiled(fastmath=FAST)
def extreme_sizes(values):
    """The smallest and the largest of |values|."""
    smallest, largest = abs(values[0]), abs(values[0])
    for j in range(len(values)):
        smallest = min(smallest, abs(values[j]))
        largest = max(largest, abs(values[j]))
    return smallest, largest


@compiled(fastmath=FAST)
def score_positive(x, half_norms, omega, bias, signs, scores):
    """Σ over features of sign·2^(ω·x + bias − half_norm), one sum a patch."""
    buffer = np.empty(BLOCK, np.float32)
    for start in range(0, len(half_norms), BLOCK):
        n = min(BLOCK, len(half_norms) - start)
        x0, x1, x2, x3 = x[0, start:], x[1, start:], x[2, start:], x[3, start:]
        out = scores[start : start + n]
        out[:] = 0
        for f in range(len(omega)):
            w0, w1, w2, w3, c, sign = omega[f, 0], omega[f, 1], omega[f, 2], omega[f, 3], bias[f], signs[f]
            rest = half_norms[start : start + n]
            if len(x) > 4:  # noqa: PLR2004
                rest = buffer[:n]
                _gather_rest(x, half_norms, omega[f], start, rest)
            for j in range(n):
                out[j] += sign * exp2(c - rest[j] + w0 * x0[j] + w1 * x1[j] + w2 * x2[j] + w3 * x3[j])


@compiled(fastmath=FAST)
def peak_exponents(x, half_norms, omega, bias):
    """The largest exponent of each feature over patches, and of each patch over features."""
    per_feature = np.full(len(omega), np.float32(-3e38))
    per_patch = np.full(len(half_norms), np.float32(-3e38))
    buffer = np.empty(BLOCK, np.float32)
    for start in range(0, len(half_norms), BLOCK):
        n = min(BLOCK, len(half_norms) - start)
        x0, x1, x2, x3 = x[0, start:], x[1, start:], x[2, start:], x[3, start:]
        rest, peak = buffer[:n], per_patch[start : start + n]
        for f in range(len(omega)):
            w0, w1, w2, w3, c = omega[f, 0], omega[f, 1], omega[f, 2], omega[f, 3], bias[f]
            _gather_rest(x, half_norms, omega[f], start, rest)
            largest = per_feature[f]
            for j in range(n):
                exponent = c - rest[j] + w0 * x0[j] + w1 * x1[j] + w2 * x2[j] + w3 * x3[j]
                peak[j] = max(peak[j], exponent)
                largest = max(largest, exponent)
            per_feature[f] = largest
    return per_feature, per_patch


@compiled(fastmath=FAST)
def _turn_block(x, omega, start, turns):
    """ω·x of a block, in turns, brought to [−½, ½]."""
    turns[:] = 0
    for e in range(0, len(x), 4):
        x0, x1, x2, x3 = x[e, start:], x[e + 1, start:], x[e + 2, start:], x[e + 3, start:]
        w0, w1, w2, w3 = omega[e], omega[e + 1], omega[e + 2], omega[e + 3]
        for j in range(len(turns)):
            turns[j] += w0 * x0[j] + w1 * x1[j] + w2 * x2[j] + w3 * x3[j]
    for j in range(len(turns)):
        turns[j] -= np.floor(turns[j] + HALF)


@compiled(fastmath=FAST)
def pool_trigonometric(x, omega, weights):
    """Σ over patches of weight·(sin, cos)(2π·ω·x), sines first."""
    m = len(omega)
    sums = np.zeros(2 * m, np.float64)
    buffer = np.empty(BLOCK, np.float32)
    for start in range(0, len(weights), BLOCK):
        turns = buffer[: min(BLOCK, len(weights) - start)]
        weight = weights[start : start + len(turns)]
        for f in range(m):
            _turn_block(x, omega[f], start, turns)
            sines, cosines = np.float32(0), np.float32(0)
            for j in range(len(turns)):
                sines += weight[j] * sine(turns[j])
                cosines += weight[j] * cosine(turns[j])
            sums[f] += sines
            sums[m + f] += cosines
    return sums


@compiled(fastmath=FAST)
def score_trigonometric(x, omega, pooled, scores):
    """Each patch's (sin, cos)(2π·ω·x) times `pooled`."""
    m = len(omega)
    buffer = np.empty(BLOCK, np.float32)
    for start in range(0, len(scores), BLOCK):
        turns = buffer[: min(BLOCK, len(scores) - start)]
        out = scores[start : start + len(turns)]
        out[:] = 0
        for f in range(m):
            _turn_block(x, omega[f], start, turns)
            for j in range(len(turns)):
                out[j] += pooled[f] * sine(turns[j]) + pooled[m + f] * cosine(turns[j])


@compiled(fastmath=FAST)
def pool_relu(x, weights):
    """Σ over patches of weight·relu(x), one sum a dimension; no weights mean ones."""
    sums = np.zeros(len(x), np.float64)
    for e in range(len(x)):
        for start in range(0, x.shape[1], BLOCK):
            row = x[e, start : start + BLOCK]
            total = np.float32(0)
            if len(weights) > 0:
                weight = weights[start:]
                for j in range(len(row)):
                    total += weight[j] * max(row[j], np.float32(0))
            else:
                for j in range(len(row)):
                    total += max(row[j], np.float32(0))
            sums[e] += total
    return sums


@compiled(fastmath=FAST)
def score_relu(x, pooled, scores):
    """Each patch's relu(x) times `pooled`."""
    for start in range(0, len(scores), BLOCK):
        out = scores[start : start + BLOCK]
        out[:] = 0
        for e in range(len(x)):
            row, weight = x[e, start:], pooled[e]
            for j in range(len(out)):
                out[j] += weight * max(row[j], np.float32(0))


@compiled(fastmath=FAST)
def times_powers_of_two(values, exponents):
    """values·2^exponents, in place; exponents are at most 127."""
    for j in range(len(values)):
        values[j] *= exp2(exponents[j])


@compiled
def rank_relu(queries, keys, weights):
    """Pool and score with relu features, the largest score made 1 (all 0 if all are); and log₂ of what it was."""
    scores, exponent = np.empty(keys.shape[1], np.float32), np.zeros(1, np.float32)
    score_relu(keys, pool_relu(queries, weights).astype(np.float32), scores)
    _, largest = extreme_sizes(scores)
    if largest > 0:
        exponent[0] = math.log2(np.float64(largest))
        for j in range(len(scores)):
            scores[j] /= largest
    return scores, exponent


@compiled
def rank_image_relu(image, patch, stride, steps, weights, row_shares, column_shares, x, pooling):
    """`project_image`, then `rank_relu` of its first half, the queries, and the second, the keys."""
    project_image(image, patch, stride, steps, weights, row_shares, column_shares, x)
    half = len(x) // 2
    return rank_relu(x[:half], x[half:], pooling)
