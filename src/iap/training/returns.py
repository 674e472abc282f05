"""Episodes → numbers: which seeds are drawn for what, and what the episodes of a candidate come to."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Float

from iap.policies import Normaliser
from iap.rollouts import Episode, Pool
from iap.training.config import HELD_OUT_SEEDS, TRAINING_SEEDS, TrainConfig


def draw_seeds(seed: int, stream: int, count: int) -> list[int]:
    """`count` seeds below 2²⁹ that depend on nothing but these numbers."""
    return [int(x) % HELD_OUT_SEEDS for x in np.random.SeedSequence([seed, stream]).generate_state(count)]


def run_candidates(
    config: TrainConfig, pool: Pool, thetas: Float[np.ndarray, "n p"], normaliser: Normaliser, iteration: int
) -> tuple[list[float], list[Episode]]:
    """The mean return of each candidate on the iteration's seeds, which all share; and all episodes."""
    seeds = [TRAINING_SEEDS + seed for seed in draw_seeds(config.seed, iteration, config.episodes)]
    results = pool.evaluate(thetas, [seeds] * len(thetas), normaliser)
    return [mean_return(episodes) for episodes in results], [episode for own in results for episode in own]


def run_held_out(
    config: TrainConfig, pool: Pool, thetas: Float[np.ndarray, "n p"], normaliser: Normaliser
) -> list[float]:
    """The mean return of each θ on seeds that training never uses, the same at every check."""
    seeds = [HELD_OUT_SEEDS + seed for seed in draw_seeds(config.seed, 0, config.evaluate_episodes)]
    return [mean_return(episodes) for episodes in pool.evaluate(thetas, [seeds] * len(thetas), normaliser)]


def mean_return(episodes: Sequence[Episode]) -> float:
    """NaN if one of them failed for good."""
    return float(np.mean([episode.total for episode in episodes]))


def best_of(returns: Sequence[float]) -> int:
    """The number of the best candidate; of the first if all have failed."""
    return int(np.nanargmax(returns)) if np.isfinite(returns).any() else 0


def gather(normaliser: Normaliser, episodes: Iterable[Episode]) -> Normaliser:
    """The statistics of before and of these episodes, merged in the order of the candidates."""
    for episode in episodes:
        if episode.error is None:
            normaliser = normaliser.merge(episode.moments)
    return normaliser


def summarise(returns: Sequence[float], episodes: Sequence[Episode]) -> dict[str, float | int | None]:
    """The returns of candidates for a row of metrics."""
    known = [x for x in returns if math.isfinite(x)]
    return {
        "best": max(known, default=None),
        "mean": float(np.mean(known)) if known else None,
        "failed": len(returns) - len(known),
        "steps": sum(episode.steps for episode in episodes),
    }


def finite(x: float) -> float | None:
    """A float for JSON, which has no NaN."""
    return x if math.isfinite(x) else None
