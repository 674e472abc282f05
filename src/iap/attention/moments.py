"""Moments of weighted patches: their position, spread and mass."""

from jaxtyping import Float

from iap.attention.arrays import Array, namespace, require_floats, require_same_dtype

MOMENTS = 6  # centroid (2), second central moments (3), mass (1)


def weighted_moments(
    weights: Float[Array, "*batch heads L"], centres: Float[Array, "L 2"], divisor: float | Array
) -> Float[Array, "*batch heads 6"]:
    """Centroid (row, column), second central moments (row², row·column, column²) and mass/divisor of each head.

    All six are 0 for a head whose weights are all 0.

    Args:
        weights: the non-negative weight of each patch, for each head.
        centres: the (row, column) of each patch.
        divisor: what the mass, the sum of the weights, is divided by.
    """
    xp = namespace(weights=weights, centres=centres)
    require_floats("weights", weights, least_rank=1)
    require_same_dtype(weights=weights, centres=centres)
    if tuple(centres.shape) != (weights.shape[-1], 2):
        raise ValueError(f"centres must be ({weights.shape[-1]}, 2) for these weights, not {tuple(centres.shape)}")
    y, x = centres[:, 0], centres[:, 1]
    powers = xp.stack([xp.ones_like(y), y, x, y * y, y * x, x * x], axis=1)
    sums = weights @ powers
    mass = sums[..., 0]
    total = xp.where(mass > 0, mass, xp.ones_like(mass))
    row, column, rows, both, columns = (sums[..., i] / total for i in range(1, MOMENTS))
    central = [rows - row * row, both - row * column, columns - column * column]
    return xp.stack([row, column, *central, mass / divisor], axis=-1)
