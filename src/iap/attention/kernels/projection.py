"""Image → queries and keys, compiled: a strided convolution plus a share of each row and column of patches.

Arrays are feature-major: `x` is (rows of weights, L), so that the innermost loops run over patches and become vector
code.
"""

import sys
from typing import NamedTuple

import numpy as np

from iap._compile import compiled

BLOCK = 512  # patches in a block: the memory that a block uses fits the first-level cache
UNROLLED_STEP = 16  # strided reads are unrolled up to this distance between neighbouring patches, in numbers
GROUP = 6  # products that are added at once
WORD = 4  # bytes that are gathered at once
IS_LITTLE_ENDIAN = sys.byteorder == "little"

# The compiler may reorder sums and assume that there is no NaN: inputs are checked before.
FAST = {"contract", "reassoc", "nsz", "nnan", "ninf", "arcp"}


class Projection(NamedTuple):
    """Queries and keys of all heads for images of one dtype: x = weights·patch + row share + column share.

    Rows are ordered by side (queries, keys), head and dimension; each head has D dimensions, a multiple of 4.
    """

    patch: int
    stride: int
    steps: tuple[int, ...]  # see `project_image`
    heads: int
    weights: np.ndarray  # (2·heads·D, c)
    row_shares: np.ndarray  # (2·heads·D, rows)
    column_shares: np.ndarray  # (2·heads·D, columns)
    x: np.ndarray  # (2·heads·D, L), working memory


def unrolled_steps(step: int) -> tuple[int, ...]:
    """The argument `steps` of `project_image` for patches that are `step` numbers apart."""
    return (0,) * step if step <= UNROLLED_STEP else ()


@compiled
def project_queries_and_keys(projection, image):
    """Fill `x` with queries and keys of all heads."""
    p = projection
    project_image(image, p.patch, p.stride, p.steps, p.weights, p.row_shares, p.column_shares, p.x)


@compiled
def project_queries(projection, image):
    """Fill the first half of `x`."""
    p, half = projection, len(projection.x) // 2
    shares = p.row_shares[:half], p.column_shares[:half]
    project_image(image, p.patch, p.stride, p.steps, p.weights[:half], shares[0], shares[1], p.x[:half])


@compiled
def project_keys(projection, image):
    """Fill the second half of `x`."""
    p, half = projection, len(projection.x) // 2
    shares = p.row_shares[half:], p.column_shares[half:]
    project_image(image, p.patch, p.stride, p.steps, p.weights[half:], shares[0], shares[1], p.x[half:])


@compiled(fastmath=FAST)
def project_image(image, patch, stride, steps, weights, row_shares, column_shares, x):
    """x = weights·patch + row share + column share, for every row of `weights` and every patch.

    Args:
        image: (height, width, channels), contiguous.
        patch: the side of a patch in pixels.
        stride: the distance between neighbouring patches in pixels.
        steps: a tuple with one entry for each number between neighbouring patches, or an empty one if they are many.
            The compiler knows its length, which turns strided reads into wide reads and shuffles.
        weights: (rows of x, numbers a patch).
        row_shares: (rows of x, rows of patches).
        column_shares: (rows of x, columns of patches).
        x: the output, (rows of x, L).
    """
    height, width, channels = image.shape
    lines = image.reshape(height, width * channels)
    rows, columns = row_shares.shape[1], column_shares.shape[1]
    together = max(1, BLOCK // columns)  # rows of patches in a block, so that loops are long
    tokens = np.empty((weights.shape[1], together * columns), np.float32)
    spare = np.empty(together * columns, np.float32)  # where the second of two rows of x goes if there is only one
    is_whole = patch * channels % WORD == 0 and stride * channels % WORD == 0 and width * channels % WORD == 0
    by_words = image.itemsize == 1 and is_whole and stride * channels > WORD and IS_LITTLE_ENDIAN
    for first in range(0, rows, together):
        count = min(together, rows - first)
        block = lines[first * stride :]
        if by_words:
            _gather_words(block, count, columns, patch, stride, channels, tokens)
        else:
            _gather_numbers(block, count, columns, patch, stride, channels, steps, tokens)
        start, length = first * columns, count * columns
        for e in range(0, len(weights), 2):
            f = min(e + 1, len(weights) - 1)
            one, other = x[e, start : start + length], x[f, start : start + length]
            if f == e:
                other = spare[:length]
            _fill_shares(row_shares[e, first : first + count], column_shares[e], one)
            _fill_shares(row_shares[f, first : first + count], column_shares[f], other)
            _add_products(weights[e], weights[f], tokens, one, other)


@compiled(fastmath=FAST, inner=True)
def _fill_shares(rows, columns, out):
    """The positions' shares: one a row of patches plus one a column."""
    for i in range(len(rows)):
        row = rows[i]
        for j in range(len(columns)):
            out[i * len(columns) + j] = row + columns[j]


@compiled(fastmath=FAST, inner=True)
def _gather_numbers(lines, rows, columns, patch, stride, channels, steps, tokens):
    """Fill `tokens` (numbers a patch, patches) from the lines of some rows of patches."""
    for i in range(rows):
        for y in range(patch):
            line = lines[i * stride + y]
            for o in range(patch * channels):
                token = tokens[y * patch * channels + o, i * columns : (i + 1) * columns]
                _take_every(line[o:], stride * channels, steps, token)


@compiled(fastmath=FAST, inner=True)
def _gather_words(lines, rows, columns, patch, stride, channels, tokens):
    """The same from bytes, four at a time: words are gathered, then split into bytes by vector code."""
    words = lines.reshape(-1).view(np.uint32).reshape(len(lines), lines.shape[1] // WORD)
    across, step = patch * channels // WORD, stride * channels // WORD
    gathered = np.empty(rows * columns, np.uint32)
    for y in range(patch):
        for o in range(across):
            for i in range(rows):
                line = words[i * stride + y]
                for j in range(columns):
                    gathered[i * columns + j] = line[o + j * step]
            first = WORD * (y * across + o)
            _split_words(gathered, tokens[first], tokens[first + 1], tokens[first + 2], tokens[first + 3])


@compiled(fastmath=FAST, inner=True)
def _split_words(words, lowest, low, high, highest):
    """The four bytes of each word as float32, on a little-endian processor."""
    for j in range(len(words)):
        word = words[j]
        lowest[j] = np.float32(np.int32(word & np.uint32(0xFF)))  # signed numbers are converted faster
        low[j] = np.float32(np.int32((word >> np.uint32(8)) & np.uint32(0xFF)))
        high[j] = np.float32(np.int32((word >> np.uint32(16)) & np.uint32(0xFF)))
        highest[j] = np.float32(np.int32(word >> np.uint32(24)))


@compiled(fastmath=FAST)
def _take_every(line, step, steps, out):
    """Every `step`-th number of `line`, as float32."""
    if len(steps) > 0:
        for j in range(len(out)):
            out[j] = np.float32(line[j * len(steps)])
    else:
        for j in range(len(out)):
            out[j] = np.float32(line[j * step])


@compiled(fastmath=FAST)
def _add_products(v, w, tokens, one, other):
    """Add v·tokens to `one` and w·tokens to `other`, six rows of tokens at a time, to read and write less often."""
    whole = len(w) // GROUP * GROUP
    for k in range(0, whole, GROUP):
        t0, t1, t2, t3, t4, t5 = tokens[k], tokens[k + 1], tokens[k + 2], tokens[k + 3], tokens[k + 4], tokens[k + 5]
        v0, v1, v2, v3, v4, v5 = v[k], v[k + 1], v[k + 2], v[k + 3], v[k + 4], v[k + 5]
        w0, w1, w2, w3, w4, w5 = w[k], w[k + 1], w[k + 2], w[k + 3], w[k + 4], w[k + 5]
        for j in range(len(one)):
            one[j] += v0 * t0[j] + v1 * t1[j] + v2 * t2[j] + v3 * t3[j] + v4 * t4[j] + v5 * t5[j]
            other[j] += w0 * t0[j] + w1 * t1[j] + w2 * t2[j] + w3 * t3[j] + w4 * t4[j] + w5 * t5[j]
    for k in range(whole, len(w)):
        t0, v0, w0 = tokens[k], v[k], w[k]
        for j in range(len(one)):
            one[j] += v0 * t0[j]
            other[j] += w0 * t0[j]
