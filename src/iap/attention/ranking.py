"""IAP-rank: how much attention each patch receives, in time linear in the number of patches."""

from jaxtyping import Float

from iap.attention.arrays import Array, Scaled, namespace, require_finite, require_floats, require_same_dtype

LARGEST_EXPONENT = 80.0  # e⁸⁰ is still a float32


def rank_scores(
    queries: Scaled,
    keys: Scaled,
    *,
    pooling: Float[Array, "*batch L"] | None = None,
    normalise_rows: bool = False,
) -> Scaled:
    """R = (1/L)·P·A in O(L·m), with A = φ(Q)φ(K)ᵀ never formed.

    The result has one scale for all patches, so `.values` ranks them and `.true()` is r itself.

    Args:
        queries: φ(Q), (…, L, m).
        keys: φ(K), (…, L, m).
        pooling: P, the weight of each query; all ones if not given.
        normalise_rows: whether each query's attention is made to sum to one (AttentionAgent); the paper's is not.
    """
    if normalise_rows:
        queries = with_unit_rows(queries, keys)
    return with_one_scale(score_keys(pool_queries(queries, pooling), keys))


def pool_queries(queries: Scaled, pooling: Float[Array, "*batch L"] | None = None) -> Scaled:
    """(1/L)·P·φ(Q), the one vector (…, 1, m) that stands for all queries: pool first, and no L×L matrix exists."""
    xp = namespace(queries=queries.log_scale)
    if pooling is None:
        weights, peak = per_feature(queries)
        return Scaled(xp.mean(weights, axis=-2, keepdims=True), peak)
    count = max(queries.values.shape[-2], queries.log_scale.shape[-2])
    check_pooling(pooling, count)
    namespace(pooling=pooling, queries=queries.log_scale)
    require_same_dtype(pooling=pooling, queries=queries.log_scale)
    # a query without weight must not set the scale, but keeps its own: the gradient by its weight is not 0
    lowest = xp.min(queries.log_scale, axis=-2, keepdims=True)
    peak = xp.max(xp.where(pooling[..., None] != 0, queries.log_scale, lowest), axis=-2, keepdims=True)
    weights = queries.values * xp.exp(xp.clip(queries.log_scale - peak, None, LARGEST_EXPONENT))
    return Scaled(pooling[..., None, :] @ weights / count, peak)


def score_keys(pooled: Scaled, keys: Scaled) -> Scaled:
    """Each key's product with the pooled queries, (…, L), each with a scale of its own."""
    xp = namespace(pooled=pooled.values, keys=keys.log_scale)
    exponents = keys.log_scale + pooled.log_scale
    peak = xp.max(exponents, axis=-1, keepdims=True)
    products = keys.values * pooled.values * xp.exp(exponents - peak)
    return Scaled(xp.sum(products, axis=-1), peak[..., 0])


def with_one_scale(scores: Scaled) -> Scaled:
    """The same numbers under one scale a batch entry, (…, 1); what is e⁸⁷ times smaller than the largest becomes 0."""
    xp = namespace(scores=scores.values)
    peak = xp.max(scores.log_scale, axis=-1, keepdims=True)
    return Scaled(scores.values * xp.exp(scores.log_scale - peak), peak)


def sum_heads(scores: Scaled) -> Scaled:
    """The scores of several heads (…, heads, L), added into one ranking (…, L)."""
    xp = namespace(scores=scores.values)
    peak = xp.max(scores.log_scale, axis=-2)
    return Scaled(xp.sum(scores.values * xp.exp(scores.log_scale - peak[..., None, :]), axis=-2), peak)


def check_pooling(pooling: Array, count: int) -> None:
    """Refuse a P that does not weigh exactly the queries there are."""
    require_finite("pooling", require_floats("pooling", pooling, least_rank=1))
    if pooling.shape[-1] != count:
        raise ValueError(f"pooling has {pooling.shape[-1]} weights (shape {tuple(pooling.shape)}) for {count} queries")


def per_feature(features: Scaled) -> Scaled:
    """Features under one scale per feature, shared by all patches: (…, L, m) and (…, 1, m)."""
    xp = namespace(features=features.log_scale)
    peak = xp.max(features.log_scale, axis=-2, keepdims=True)
    return Scaled(features.values * xp.exp(features.log_scale - peak), peak)


def with_unit_rows(queries: Scaled, keys: Scaled) -> Scaled:
    """Queries divided by their rows' sums, P = 1/(Q′(K′ᵀ1)), in linear time as well; a row that sums to 0 stays 0."""
    xp = namespace(queries=queries.values)
    count = max(keys.values.shape[-2], keys.log_scale.shape[-2])
    rows = score_keys(pool_queries(keys), queries)
    sums = count * rows.values[..., None]
    dead = sums == 0
    shares = xp.where(dead, xp.zeros_like(sums), 1 / xp.where(dead, xp.ones_like(sums), sums))
    return Scaled(queries.values * shares, queries.log_scale - rows.log_scale[..., None])
