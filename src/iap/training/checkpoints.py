"""How far a training run has come: kept in its folder as a checkpoint and as policies that can be run."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

import iap
from iap.evolution import Search, from_arrays, mean, to_arrays
from iap.policies import Normaliser
from iap.policies.serialization import PolicyFile
from iap.training.config import TrainConfig
from iap.training.run_directory import RunDirectory


@dataclass(frozen=True)
class Best:
    """The policy that did best on held-out seeds so far."""

    theta: Float[np.ndarray, " p"]
    normaliser: Normaliser
    held_out: float


@dataclass(frozen=True)
class Progress:
    """All that the next iteration needs: what a checkpoint holds.

    Attributes:
        search: where the strategy stands.
        normaliser: of what controllers receive.
        best: so far; None before the first check.
        iteration: how many generations are done.
        episodes: how many were run for them, and for screening.
        begun: how the θ that evolution started from was found, if it was not simply drawn.
    """

    search: Search
    normaliser: Normaliser
    best: Best | None = None
    iteration: int = 0
    episodes: int = 0
    begun: Mapping[str, Any] | None = None


def save(config: TrainConfig, run: RunDirectory, progress: Progress) -> None:
    """Policies, then the checkpoint: it never knows more than they do."""
    arrays = {f"search.{name}": x for name, x in to_arrays(progress.search).items()}
    arrays |= {f"normaliser.{name}": x for name, x in progress.normaliser.to_arrays().items()}
    facts = {"iteration": progress.iteration, "episodes": progress.episodes, "best": None, "begun": progress.begun}
    run.save_policy("last", policy_file(config, mean(progress.search), progress.normaliser, progress))
    if progress.best is not None:
        best = progress.best
        arrays |= {"best.theta": best.theta}
        arrays |= {f"best.normaliser.{name}": x for name, x in best.normaliser.to_arrays().items()}
        facts["best"] = float(best.held_out) if np.isfinite(best.held_out) else None
        run.save_policy("best", policy_file(config, best.theta, best.normaliser, progress))
    run.save_checkpoint(arrays, facts)


def resume(config: TrainConfig, run: RunDirectory) -> Progress | None:
    """The progress that the checkpoint holds; None if there is none yet."""
    loaded = run.load_checkpoint()
    if loaded is None:
        return None
    arrays, facts = loaded

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
        facts.get("begun"),
    )


def policy_file(config: TrainConfig, theta: np.ndarray, normaliser: Normaliser, progress: Progress) -> PolicyFile:
    """A policy with all that is needed to run it, and how it came to be."""
    facts = {
        "iap": iap.__version__,
        "seed": config.seed,
        "iterations": progress.iteration,
        "episodes": progress.episodes,
        "strategy": type(config.strategy).__name__,
    }
    return PolicyFile(
        spec=config.policy,
        theta=np.asarray(theta, np.float32),
        normaliser=normaliser,
        env_id=config.env.id,
        env_kwargs=dict(config.env.kwargs),
        facts=facts | dict(progress.begun or {}),
    )
