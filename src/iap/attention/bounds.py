"""How many random projections or hash bits the paper's theorems ask for, with their errata."""

import math

from iap.attention.arrays import require_count

LARGEST_EXPONENT = 300.0  # of e, so that its square is still a float


def projections_for_ranking(d: int, radius: float, epsilon: float, p: float) -> int:
    """M so that trigonometric features rank within ε of exact softmax, all scores at once, with probability ≥ 1 − p.

    For un-normalised queries and keys in a ball of this radius. The second theorem, first part, with an erratum: its
    proof lets τ = exp(R²/√d), which turns an error of the Gaussian kernel into one of the softmax kernel, multiply
    the *probability*; it multiplies the *error*, so ε/τ stands where ε does. As printed the bound fails for large R
    (`tests/paper` shows it); with τ ≈ 1 the two agree.
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
    """The same m as the paper prints it: 4(d+2)(10 + log(R²√d/pε²) + R²/√d)/ε²."""
    require_count("d", d)
    _require_positive("radius", radius)
    _require_positive("epsilon", epsilon)
    _require_probability(p)
    exponent = 10 + math.log(radius**2 * math.sqrt(d) / (p * epsilon**2)) + radius**2 / math.sqrt(d)
    return max(1, math.ceil(4 * (d + 2) * exponent / epsilon**2))


def projections_for_low_scores(
    d: int, alpha: float, epsilon: float, p: float, *, tokens: int = 1, steps: int = 1
) -> int:
    """M so that positive features keep the scores of unimportant patches within ε of the truth, over all steps.

    For normalised queries and keys, and `tokens` patches whose attention is at most exp(√d·cos(π − α)). The second
    theorem, second part. The statement's |P|² is what is built; the proof's L² is not needed, since a score is a mean
    of entries, so its error varies no more than the worst entry's, and Chebyshev with a union over |P| ≤ |P|² scores
    is enough. "At most ε" must be read as "off by at most ε".
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
    """m′ so that all hashed angles are within ε·π/2 at every step, with probability ≥ 1 − p.

    The first theorem. It prints (2/pε²)(log L + log I); its proof gives (2/ε²)(log L + log I + log(2/p)).
    """
    require_count("patches", patches)
    require_count("steps", steps)
    _require_positive("epsilon", epsilon)
    _require_probability(p)
    return math.ceil(2 / epsilon**2 * (math.log(patches) + math.log(steps) + math.log(2 / p)))


def hashing_error(d: int, epsilon: float) -> float:
    """How far scores can be off when hashed angles are within ε·π/2: exp(√d)·(π/2)·ε."""
    require_count("d", d)
    _require_positive("epsilon", epsilon)
    return math.exp(math.sqrt(d)) * math.pi / 2 * epsilon


def _require_positive(name: str, value: float) -> None:
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"{name} must be positive and finite, not {value}")


def _require_probability(p: float) -> None:
    if not 0 < p < 1:
        raise ValueError(f"p must be between 0 and 1, not {p}")
