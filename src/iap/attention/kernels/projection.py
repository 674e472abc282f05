"""Image → queries and keys, compiled: a strided convolution plus a share of each row and column of patches.

Arrays are feature-major: `x` is (rows of weights, L), so that the innermost loops run over patches and become vector
code.
"""

from typing import NamedTuple

import numpy as np

from iap._compile import compiled

BLOCK = 512  # patches in a block: the memory that a block uses fits the first-level cache
UNROLLED_STEP = 16  # strided reads are unrolled up to this distance between neighbouring patches, in numbers

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
    """Every `step`-th number of `line`, as float32."""
    if len(steps) > 0:
        for j in range(len(out)):
            out[j] = np.float32(line[j * len(steps)])
    else:
        for j in range(len(out)):
            out[j] = np.float32(line[j * step])


@compiled(fastmath=FAST)
def _add_products(w, tokens, out):
    """Add w·tokens to `out`, six rows of tokens at a time, to read and write `out` less often."""
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
