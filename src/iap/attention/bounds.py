"""The number of random projections or hash bits that the paper's theorems require, with their errata."""

import math

from iap._validation import require_count

LARGEST_EXPONENT = 300.0  # of e, so that the square does not overflow


def projections_for_ranking(d: int, radius: float, epsilon: float, p: float) -> int:
    """The m for which all scores of trigonometric features are within ε of exact softmax, with probability ≥ 1 − p.

    For un-normalised queries and keys in a ball of this radius. The second theorem, first part, with an erratum: in
    its proof τ = exp(R²/√d), which turns an error of the Gaussian kernel into one of the softmax kernel, multiplies
    the *probability*. It multiplies the *error*, so that ε/τ replaces ε. As printed, the bound fails for large R (see
    `tests/paper`); for τ ≈ 1 the two agree.
    """
    require_count("d", d)
    _require_positive("radius", radius)
    _require_positive("epsilon", epsilon)
    _require_probability(p)
    exponent = radius**2 / math.sqrt(d)
    if exponent > LARGEST_EXPONENT:
        raise ValueError(f"radius is too large for any number of projections: exp(R²/√d) overflows at {radius}")
    tau = math.exp(exponent)
    return projections_for_ranking_as_printed(d, radius, epsilon / tau, p)


def projections_for_ranking_as_printed(d: int, radius: float, epsilon: float, p: float) -> int:
    """The m of `projections_for_ranking` as the paper prints it: 4(d+2)(10 + log(R²√d/pε²) + R²/√d)/ε²."""
    require_count("d", d)
    _require_positive("radius", radius)
    _require_positive("epsilon", epsilon)
    _require_probability(p)
    exponent = 10 + math.log(radius**2 * math.sqrt(d) / (p * epsilon**2)) + radius**2 / math.sqrt(d)
    return max(1, math.ceil(4 * (d + 2) * exponent / epsilon**2))


def projections_for_low_scores(
    d: int, alpha: float, epsilon: float, p: float, *, tokens: int = 1, steps: int = 1
) -> int:
    """The m for which positive features estimate low scores to within ε, over all steps.

    For normalised queries and keys, and `tokens` patches whose attention is at most exp(√d·cos(π − α)). The second
    theorem, second part. This uses the |P|² of the statement. The L² of the proof is not needed: a score is a mean of
    entries, so the variance of its error is at most that of the worst entry, and Chebyshev's inequality with a union
    bound over |P| ≤ |P|² scores suffices. "At most ε" must be read as "in error by at most ε".
    """
    require_count("d", d)
    require_count("tokens", tokens)
    require_count("steps", steps)
    if not 0 <= alpha <= math.pi:
        raise ValueError(f"alpha must be between 0 and π, not {alpha}")
    _require_positive("epsilon", epsilon)
    _require_probability(p)
    root, sine = math.sqrt(d), math.sin(alpha / 2) ** 2
    variance = math.exp(8 * root * sine - 2 * root) * -math.expm1(-4 * root * sine)
    return max(1, math.ceil(tokens**2 * steps * variance / (p * epsilon**2)))


def bits_for_hashing(patches: int, epsilon: float, p: float, *, steps: int = 1) -> int:
    """The m′ for which all hashed angles are within ε·π/2 at every step, with probability ≥ 1 − p.

    The first theorem. It prints (2/pε²)(log L + log I); its proof gives (2/ε²)(log L + log I + log(2/p)).
    """
    require_count("patches", patches)
    require_count("steps", steps)
    _require_positive("epsilon", epsilon)
    _require_probability(p)
    return math.ceil(2 / epsilon**2 * (math.log(patches) + math.log(steps) + math.log(2 / p)))


def hashing_error(d: int, epsilon: float) -> float:
    """The largest error of a score if hashed angles are within ε·π/2: exp(√d)·(π/2)·ε."""
    require_count("d", d)
    _require_positive("epsilon", epsilon)
    return math.exp(math.sqrt(d)) * math.pi / 2 * epsilon


def _require_positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be positive and finite, not {value}")


def _require_probability(p: float) -> None:
    if not 0 < p < 1:
        raise ValueError(f"p must be between 0 and 1, not {p}")
