"""The progress of a training run, kept in its folder as a checkpoint and as policies."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

import iap
from iap.evolution import STRATEGIES, Search, from_arrays, mean, to_arrays
from iap.policies import Normaliser, PolicyFile
from iap.training.config import TrainConfig
from iap.training.run_directory import RunDirectory
from iap.training.upgrades import CHECKPOINT_VERSION, upgrade_checkpoint


@dataclass(frozen=True)
class Best:
    """The policy with the best return on validation seeds so far."""

    theta: Float[np.ndarray, " p"]
    normaliser: Normaliser
    held_out: float


@dataclass(frozen=True)
class Progress:
    """All that the next iteration needs: the content of a checkpoint.

    Attributes:
        search: the state of the strategy.
        normaliser: of the controllers' inputs.
        best: the best policy so far; None before the first evaluation.
        iteration: number of completed generations.
        episodes: number of episodes of these and of the random search.
        start: facts about the θ that the search started from, if it was not simply drawn.
    """

    search: Search
    normaliser: Normaliser
    best: Best | None = None
    iteration: int = 0
    episodes: int = 0
    start: Mapping[str, Any] | None = None


def save(
    config: TrainConfig,
    run: RunDirectory,
    progress: Progress,
    command: str | None = None,
    *,
    has_return: bool = True,
) -> None:
    """Write the policies, then the checkpoint, so that the checkpoint is never ahead of them.

    A first policy is written only if there is a return, which says that it can act.
    """
    arrays = {f"search.{name}": x for name, x in to_arrays(progress.search).items()}
    arrays |= {f"normaliser.{name}": x for name, x in progress.normaliser.to_arrays().items()}
    facts: dict[str, Any] = {
        "version": CHECKPOINT_VERSION,
        "iteration": progress.iteration,
        "episodes": progress.episodes,
        "best": None,
        "start": progress.start,
    }
    if has_return or run.policy_file("last").exists():
        run.save_policy("last", policy_file(config, mean(progress.search), progress.normaliser, progress, command))
    if progress.best is not None:
        best = progress.best
        arrays |= {"best.theta": best.theta}
        arrays |= {f"best.normaliser.{name}": x for name, x in best.normaliser.to_arrays().items()}
        facts["best"] = float(best.held_out) if np.isfinite(best.held_out) else None
        run.save_policy("best", policy_file(config, best.theta, best.normaliser, progress, command))
    run.save_checkpoint(arrays, facts)


def resume(config: TrainConfig, run: RunDirectory) -> Progress | None:
    """The progress of the checkpoint; None if there is none yet."""
    loaded = run.load_checkpoint()
    if loaded is None:
        return None
    arrays, facts = loaded
    facts = upgrade_checkpoint(facts)

    def part(prefix: str) -> dict[str, np.ndarray]:
        return {name.removeprefix(prefix): x for name, x in arrays.items() if name.startswith(prefix)}

    best = None
    if "best.theta" in arrays:
        value = -np.inf if facts["best"] is None else facts["best"]
        best = Best(arrays["best.theta"], Normaliser.from_arrays(part("best.normaliser.")), value)
    return Progress(
        from_arrays(config.strategy, part("search.")),
        Normaliser.from_arrays(part("normaliser.")),
        best,
        facts["iteration"],
        facts["episodes"],
        facts["start"],
    )


def policy_file(
    config: TrainConfig, theta: np.ndarray, normaliser: Normaliser, progress: Progress, command: str | None = None
) -> PolicyFile:
    """A policy with all that is needed to run it, and the facts of its training."""
    facts = {
        "iap": iap.__version__,
        "seed": config.seed,
        "iterations": progress.iteration,
        "episodes": progress.episodes,
        "strategy": STRATEGIES.name_of(type(config.strategy)),
    }
    if command is not None:
        facts["command"] = command
    return PolicyFile(
        config=config.policy,
        theta=np.asarray(theta, np.float32),
        normaliser=normaliser,
        env_id=config.env.id,
        env_kwargs=dict(config.env.kwargs),
        facts=facts | dict(progress.start or {}),
    )
