"""Episodes → returns of candidates, on the seeds of training and of validation."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
from jaxtyping import Float

from iap.policies import Normaliser
from iap.rollouts import TRAINING_SEEDS, VALIDATION_SEEDS, Episode, Pool, draw_seeds
from iap.training.config import TrainConfig
from iap.training.failures import require_a_return


def run_candidates(
    config: TrainConfig, pool: Pool, thetas: Float[np.ndarray, "n p"], normaliser: Normaliser, iteration: int
) -> tuple[list[float], list[Episode]]:
    """The mean return of each candidate on the iteration's seeds, which all share; and all episodes.

    If all of them failed, this is an EpisodesFailedError.
    """
    seeds = draw_seeds(config.seed, iteration, config.episodes, TRAINING_SEEDS)
    results = pool.evaluate(thetas, [seeds] * len(thetas), normaliser)
    ran = [episode for own in results for episode in own]
    require_a_return(ran, iteration)
    return [mean_return(episodes) for episodes in results], ran


def run_held_out(
    config: TrainConfig, pool: Pool, thetas: Float[np.ndarray, "n p"], normaliser: Normaliser
) -> list[float]:
    """The mean return of each θ on validation seeds, which are the same at every evaluation and never trained on."""
    seeds = draw_seeds(config.seed, 0, config.evaluate_episodes, VALIDATION_SEEDS)
    return [mean_return(episodes) for episodes in pool.evaluate(thetas, [seeds] * len(thetas), normaliser)]


def mean_return(episodes: Sequence[Episode]) -> float:
    """NaN if one of the episodes failed."""
    return float(np.mean([episode.total for episode in episodes]))


def best_of(returns: Sequence[float]) -> int:
    """The index of the best candidate; 0 if all have failed."""
    return int(np.nanargmax(returns)) if np.isfinite(returns).any() else 0


def merge_statistics(normaliser: Normaliser, episodes: Iterable[Episode]) -> Normaliser:
    """The statistics so far and those of these episodes, merged in the order of the candidates."""
    for episode in episodes:
        if episode.error is None:
            normaliser = normaliser.merge(episode.moments)
    return normaliser


def summarise(returns: Sequence[float], episodes: Sequence[Episode]) -> dict[str, float | int | None]:
    """The returns of candidates as a row of metrics."""
    known = [x for x in returns if math.isfinite(x)]
    return {
        "best": max(known, default=None),
        "mean": float(np.mean(known)) if known else None,
        "failed": len(returns) - len(known),
        "steps": sum(episode.steps for episode in episodes),
    }


def finite(x: float) -> float | None:
    """A number for JSON, which has no NaN."""
    return x if math.isfinite(x) else None
