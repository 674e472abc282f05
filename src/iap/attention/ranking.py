"""IAP-rank: the attention that each patch receives, in time linear in the number of patches."""

from jaxtyping import Float

from iap.attention.arrays import Array, Scaled, namespace, require_finite, require_floats, require_same_dtype

LARGEST_EXPONENT = 80.0  # e⁸⁰ does not overflow in float32


def rank_scores(
    queries: Scaled,
    keys: Scaled,
    *,
    pooling: Float[Array, "*batch L"] | None = None,
    normalise_rows: bool = False,
) -> Scaled:
    """R = (1/L)·P·A in O(L·m), without forming A = φ(Q)φ(K)ᵀ.

    The result has one scale for all patches: `.values` ranks them, and `.true()` is r itself.

    Args:
        queries: φ(Q), (…, L, m).
        keys: φ(K), (…, L, m).
        pooling: P, the weight of each query; all ones if not given.
        normalise_rows: whether each query's attention is scaled to sum to one (AttentionAgent; not in the paper).
    """
    if normalise_rows:
        queries = with_unit_rows(queries, keys)
    return with_one_scale(score_keys(pool_queries(queries, pooling), keys))


def pool_queries(queries: Scaled, pooling: Float[Array, "*batch L"] | None = None) -> Scaled:
    """(1/L)·P·φ(Q), one vector (…, 1, m) for all queries. Pooling first avoids the L×L matrix."""
    xp = namespace(queries=queries.log_scale)
    if pooling is None:
        weights, peak = per_feature(queries)
        return Scaled(xp.mean(weights, axis=-2, keepdims=True), peak)
    count = max(queries.values.shape[-2], queries.log_scale.shape[-2])
    check_pooling(pooling, count)
    namespace(pooling=pooling, queries=queries.log_scale)
    require_same_dtype(pooling=pooling, queries=queries.log_scale)
    # A query without weight must not set the scale, but keeps its value: the gradient of its weight is not 0.
    lowest = xp.min(queries.log_scale, axis=-2, keepdims=True)
    peak = xp.max(xp.where(pooling[..., None] != 0, queries.log_scale, lowest), axis=-2, keepdims=True)
    weights = queries.values * xp.exp(xp.clip(queries.log_scale - peak, None, LARGEST_EXPONENT))
    return Scaled(pooling[..., None, :] @ weights / count, peak)


def score_keys(pooled: Scaled, keys: Scaled) -> Scaled:
    """The product of each key with the pooled queries, (…, L), each with its own scale."""
    xp = namespace(pooled=pooled.values, keys=keys.log_scale)
    exponents = keys.log_scale + pooled.log_scale
    peak = xp.max(exponents, axis=-1, keepdims=True)
    products = keys.values * pooled.values * xp.exp(exponents - peak)
    return Scaled(xp.sum(products, axis=-1), peak[..., 0])


def with_one_scale(scores: Scaled) -> Scaled:
    """The same numbers with one scale a batch entry, (…, 1); those e⁸⁷ times smaller than the largest become 0."""
    xp = namespace(scores=scores.values)
    peak = xp.max(scores.log_scale, axis=-1, keepdims=True)
    return Scaled(scores.values * xp.exp(scores.log_scale - peak), peak)


def sum_heads(scores: Scaled) -> Scaled:
    """The sum of the scores of all heads, (…, heads, L) → (…, L)."""
    xp = namespace(scores=scores.values)
    peak = xp.max(scores.log_scale, axis=-2)
    return Scaled(xp.sum(scores.values * xp.exp(scores.log_scale - peak[..., None, :]), axis=-2), peak)


def check_pooling(pooling: Array, count: int) -> None:
    """Refuse a P whose length is not the number of queries."""
    require_finite("pooling", require_floats("pooling", pooling, least_rank=1))
    if pooling.shape[-1] != count:
        raise ValueError(f"pooling has {pooling.shape[-1]} weights (shape {tuple(pooling.shape)}) for {count} queries")


def per_feature(features: Scaled) -> Scaled:
    """Features with one scale for each feature, shared by all patches: (…, L, m) and (…, 1, m)."""
    xp = namespace(features=features.log_scale)
    peak = xp.max(features.log_scale, axis=-2, keepdims=True)
    return Scaled(features.values * xp.exp(features.log_scale - peak), peak)


def with_unit_rows(queries: Scaled, keys: Scaled) -> Scaled:
    """Queries divided by the sums of their rows, P = 1/(Q′(K′ᵀ1)), in linear time; a row that sums to 0 stays 0."""
    xp = namespace(queries=queries.values)
    count = max(keys.values.shape[-2], keys.log_scale.shape[-2])
    rows = score_keys(pool_queries(keys), queries)
    sums = count * rows.values[..., None]
    empty = sums == 0
    shares = xp.where(empty, xp.zeros_like(sums), 1 / xp.where(empty, xp.ones_like(sums), sums))
    return Scaled(queries.values * shares, queries.log_scale - rows.log_scale[..., None])
