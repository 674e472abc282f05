"""IAP-trans: the attention P·A·V of a Transformer, in time linear in the number of patches."""

from jaxtyping import Float

from iap.attention.arrays import Array, Scaled, namespace, require_floats, require_same_dtype
from iap.attention.ranking import check_pooling, per_feature, with_unit_rows

LAYER_NORM_EPSILON = 1e-5


def mix(
    pooling: Float[Array, "*batch l L"],
    queries: Scaled,
    keys: Scaled,
    values: Float[Array, "*batch L v"],
    *,
    normalise_rows: bool = False,
    residual: bool = False,
) -> Float[Array, "*batch l v"]:
    """P·A·V without forming A = φ(Q)φ(K)ᵀ: an image of L patches becomes l rows.

    The product is evaluated from the left if l < v, else from the right. With `residual` it is P·(A·V + V), the
    residual connection of a Transformer under the same pooling.
    """
    require_floats("values", values, least_rank=2)
    require_floats("pooling", pooling, least_rank=2)
    require_same_dtype(pooling=pooling, values=values, keys=keys.log_scale)
    namespace(pooling=pooling, queries=queries.log_scale, keys=keys.log_scale, values=values)
    count = values.shape[-2]
    check_pooling(pooling, count)
    if normalise_rows:
        queries = with_unit_rows(queries, keys)
    compressed, width = pooling.shape[-2], values.shape[-1]
    order = _left_to_right if compressed < width else _right_to_left
    mixed = order(pooling, queries, keys, values)
    return mixed + pooling @ values if residual else mixed


def layer_norm(
    x: Float[Array, "*batch l v"],
    gain: Float[Array, " v"] | None = None,
    offset: Float[Array, " v"] | None = None,
    epsilon: float = LAYER_NORM_EPSILON,
) -> Float[Array, "*batch l v"]:
    """Each row normalised to mean 0 and variance 1, then gain and offset."""
    xp = namespace(x=require_floats("x", x, least_rank=1))
    centred = x - xp.mean(x, axis=-1, keepdims=True)
    normal = centred / xp.sqrt(xp.mean(centred * centred, axis=-1, keepdims=True) + epsilon)
    normal = normal if gain is None else normal * gain
    return normal if offset is None else normal + offset


def merge_heads(x: Float[Array, "*batch heads l v"]) -> Float[Array, "*batch l heads*v"]:
    """The outputs of all heads, concatenated along the last axis."""
    xp = namespace(x=x)
    if x.ndim < 3:  # noqa: PLR2004
        raise ValueError(f"x must be (…, heads, l, v), not of shape {tuple(x.shape)}")
    *batch, heads, rows, width = x.shape
    return xp.reshape(xp.moveaxis(x, -3, -2), (*batch, rows, heads * width))


def _left_to_right(pooling: Array, queries: Scaled, keys: Scaled, values: Array) -> Array:
    """((P·Q′)·K′ᵀ)·V."""
    xp = namespace(pooling=pooling)
    query_weights, query_peak = per_feature(queries)
    exponents = keys.log_scale + query_peak
    peak = xp.max(exponents, axis=(-2, -1), keepdims=True)
    attention = (pooling @ query_weights) @ xp.matrix_transpose(keys.values * xp.exp(exponents - peak))
    return (attention @ values) * xp.exp(peak)


def _right_to_left(pooling: Array, queries: Scaled, keys: Scaled, values: Array) -> Array:
    """P·(Q′·(K′ᵀ·V))."""
    xp = namespace(pooling=pooling)
    key_weights, key_peak = per_feature(keys)
    exponents = queries.log_scale + key_peak
    peak = xp.max(exponents, axis=(-2, -1), keepdims=True)
    summary = xp.matrix_transpose(key_weights) @ values
    return (pooling @ ((queries.values * xp.exp(exponents - peak)) @ summary)) * xp.exp(peak)
