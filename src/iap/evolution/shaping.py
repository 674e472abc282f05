"""Returns → utilities, which do not depend on the scale of the returns."""

from typing import Literal

import numpy as np
from jaxtyping import Float

Shaping = Literal["ranks", "standardised"]
SHAPINGS: tuple[Shaping, ...] = ("ranks", "standardised")


def shape(shaping: Shaping, returns: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return float32 utilities, the largest for the best return; all are 0 if the returns are equal.

    A return that is not finite marks a failed candidate, which ranks last. Standardised values need a number: there a
    failed candidate counts as much as the worst one that finished.
    """
    returns = np.where(np.isfinite(returns), returns, -np.inf)
    return centre_ranks(returns) if shaping == "ranks" else standardise(returns)


def centre_ranks(returns: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return the ranks, spread evenly over [−½, ½]; equal returns share the mean of their ranks."""
    ordered = np.sort(returns)
    twice = np.searchsorted(ordered, returns, "left") + np.searchsorted(ordered, returns, "right") - 1
    highest = len(returns) - 1
    return ((twice - highest) / (2 * max(highest, 1))).astype(np.float32)  # integer difference: exactly 0 for ties


def standardise(returns: Float[np.ndarray, " n"]) -> Float[np.ndarray, " n"]:
    """Return values of mean 0 and standard deviation 1, computed in float64; −∞ becomes the least finite return."""
    finite = returns[np.isfinite(returns)]
    if not finite.size or finite.min() == finite.max():
        return np.zeros(len(returns), dtype=np.float32)
    values = np.maximum(returns, finite.min())
    values = values / np.abs(values).max()  # so that no square overflows
    return ((values - values.mean()) / values.std()).astype(np.float32)
