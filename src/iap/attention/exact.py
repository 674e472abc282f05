"""The explicit L×L attention matrix: the reference for tests of linear attention, and the baseline in benchmarks."""

from jaxtyping import Float

from iap._validation import require_count
from iap.attention.arrays import Array, Scaled, namespace, require_floats, require_same_dtype
from iap.attention.features import Kernel, ReLU, softmax_inputs
from iap.attention.primitives import relu
from iap.attention.ranking import LARGEST_EXPONENT, check_pooling, with_one_scale

LOWEST = -1e30  # stands for log 0
BLOCK_ENTRIES = 1 << 19  # of the matrix in memory at a time: 2 MB in float32, which fits the cache


def attention_matrix(
    kernel: Kernel,
    queries: Float[Array, "*batch L d"],
    keys: Float[Array, "*batch L d"],
    *,
    normalise_rows: bool = False,
) -> Scaled:
    """A(i, j) = K(q_i, k_j), each row with its own scale, or with rows that sum to one."""
    xp = namespace(queries=queries, keys=keys)
    peak, weights = _block(kernel, *_inputs(kernel, queries, keys))
    if normalise_rows:
        return Scaled(weights * _shares(weights)[..., None], xp.zeros_like(peak))
    return Scaled(weights, peak)


def exact_scores(
    kernel: Kernel,
    queries: Float[Array, "L d"],
    keys: Float[Array, "L d"],
    *,
    pooling: Float[Array, " L"] | None = None,
    normalise_rows: bool = False,
    block: int | None = None,
) -> Scaled:
    """R = (1/L)·P·A from the explicit matrix, a block of rows at a time: O(L²·d) time, O(block·L) memory.

    Args:
        kernel: the kernel; a softmax is exact here, its feature map is not used.
        queries: Q, (L, d).
        keys: K, (L, d).
        pooling: P, the weight of each query; all ones if not given.
        normalise_rows: whether each query's attention is scaled to sum to one.
        block: the number of rows in memory at a time; by default as many as fit the cache.
    """
    xp = namespace(queries=queries, keys=keys)
    require_floats("queries", queries, rank=2)
    x, y = _inputs(kernel, queries, keys)
    count = x.shape[0]
    if pooling is not None:
        check_pooling(pooling, count)
        namespace(pooling=pooling, queries=queries)
        require_same_dtype(pooling=pooling, queries=queries)
    if block is None:
        block = max(1, BLOCK_ENTRIES // y.shape[0])
    require_count("block", block)
    total = Scaled(xp.zeros_like(y[:, 0]), xp.full_like(y[:1, 0], LOWEST))
    for start in range(0, count, block):
        rows = slice(start, start + block)
        peak, weights = _block(kernel, x[rows], y)
        row_weights = xp.ones_like(peak[:, 0]) if pooling is None else pooling[rows]
        if normalise_rows:
            row_weights = row_weights * _shares(weights)
            peak = xp.zeros_like(peak)
        total = _add(total, Scaled(row_weights, peak[:, 0]), weights)
    return with_one_scale(Scaled(total.values / count, total.log_scale))


def _inputs(kernel: Kernel, queries: Array, keys: Array) -> tuple[Array, Array]:
    for name, x in (("queries", queries), ("keys", keys)):
        require_floats(name, x, least_rank=2)
    require_same_dtype(queries=queries, keys=keys)
    if queries.shape[-1] != keys.shape[-1]:
        raise ValueError(f"queries have {queries.shape[-1]} dimensions, but keys have {keys.shape[-1]}")
    if isinstance(kernel, ReLU):
        return relu(queries), relu(keys)
    return softmax_inputs(kernel, queries), softmax_inputs(kernel, keys)


def _block(kernel: Kernel, x: Array, y: Array) -> tuple[Array, Array]:
    """Rows of the matrix as (log of the row's scale, entries)."""
    xp = namespace(x=x)
    products = x @ xp.matrix_transpose(y)
    if isinstance(kernel, ReLU):
        return xp.zeros_like(products[..., :1]), products
    peak = xp.max(products, axis=-1, keepdims=True)
    return peak, xp.exp(products - peak)


def _add(total: Scaled, rows: Scaled, weights: Array) -> Scaled:
    """The sum of `total` and these weighted rows, with the scale of the largest row whose weight is not 0."""
    xp = namespace(weights=weights)
    weighted = xp.where(rows.values != 0, rows.log_scale, xp.full_like(rows.log_scale, LOWEST))
    top = xp.maximum(total.log_scale, xp.max(weighted, axis=0, keepdims=True))
    sizes = xp.exp(xp.clip(rows.log_scale - top, None, LARGEST_EXPONENT))
    return Scaled(total.values * xp.exp(total.log_scale - top) + (rows.values * sizes) @ weights, top)


def _shares(weights: Array) -> Array:
    """The factor by which each row sums to one; 0 for a row that sums to 0."""
    xp = namespace(weights=weights)
    sums = xp.sum(weights, axis=-1)
    empty = sums == 0
    return xp.where(empty, xp.zeros_like(sums), 1 / xp.where(empty, xp.ones_like(sums), sums))
