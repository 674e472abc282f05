"""Returns → utilities: what a strategy weighs candidates by, whatever the returns' scale."""

from typing import Literal

import numpy as np
from jaxtyping import Float

Shaping = Literal["ranks", "standardised"]
SHAPINGS: tuple[Shaping, ...] = ("ranks", "standardised")


def shape(shaping: Shaping, returns: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Utilities, float32, the largest for the best; all are 0 when the returns tie.

    A return that is not finite is a failed candidate, the worst of all. It stays so among ranks; among standardised
    values, which need a number, it counts as much as the worst candidate that finished.
    """
    returns = np.where(np.isfinite(returns), returns, -np.inf)
    return centre_ranks(returns) if shaping == "ranks" else standardise(returns)


def centre_ranks(returns: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Ranks spread evenly over [−½, ½]; those of equal returns are their mean."""
    ordered = np.sort(returns)
    twice = np.searchsorted(ordered, returns, "left") + np.searchsorted(ordered, returns, "right") - 1
    most = len(returns) - 1
    return ((twice - most) / (2 * max(most, 1))).astype(np.float32)  # a difference of integers: exactly 0 at a tie


def standardise(returns: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Returns of mean 0 and standard deviation 1, worked out in float64; −∞ counts as the least finite return."""
    finite = returns[np.isfinite(returns)]
    if not finite.size or finite.min() == finite.max():
        return np.zeros(len(returns), dtype=np.float32)
    values = np.maximum(returns, finite.min())
    values = values / np.abs(values).max()  # so that no square overflows
    return ((values - values.mean()) / values.std()).astype(np.float32)
