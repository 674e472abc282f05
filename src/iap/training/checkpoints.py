"""The progress of a training run, kept in its folder as a checkpoint and as policies."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float

import iap
from iap._compile_cache import processor_name
from iap._validation import require_count, require_number, require_type
from iap.attention.arrays import require_finite
from iap.evolution import STRATEGIES, Search, from_arrays, mean, to_arrays
from iap.policies import Normaliser, PolicyFile, count_params
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
    arrays = with_prefix("search.", to_arrays(progress.search))
    arrays |= with_prefix("normaliser.", progress.normaliser.to_arrays())
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
        arrays |= {"best.theta": best.theta, **with_prefix("best.normaliser.", best.normaliser.to_arrays())}
        facts["best"] = float(best.held_out) if np.isfinite(best.held_out) else None
        run.save_policy("best", policy_file(config, best.theta, best.normaliser, progress, command))
    run.save_checkpoint(arrays, facts)


def resume(config: TrainConfig, run: RunDirectory) -> Progress | None:
    """The progress of the checkpoint; None if there is none yet."""
    loaded = run.load_checkpoint()
    if loaded is None:
        return None
    with run.explained_content(run.checkpoint_file):
        return _progress(config, *loaded)


def _progress(config: TrainConfig, arrays: Mapping[str, np.ndarray], facts: dict[str, Any]) -> Progress:
    facts = upgrade_checkpoint(facts)
    params = count_params(config.policy)
    for name in ("search.origin", "best.theta"):
        if name in arrays:
            require_shape(name, arrays[name], params)
    search = from_arrays(config.strategy, without_prefix("search.", arrays))
    normaliser = Normaliser.from_arrays(without_prefix("normaliser.", arrays))
    iteration, episodes = (require_count(name, facts[name], least=0) for name in ("iteration", "episodes"))
    if iteration != search.iteration:
        raise ValueError(f"iteration must be that of its search, {search.iteration}, not {iteration}")
    require_shape("normaliser.mean", normaliser.mean, config.policy.inputs_size)
    best = None
    if "best.theta" in arrays:
        value = -np.inf if facts["best"] is None else require_number("best", facts["best"], -np.inf)
        best = Best(arrays["best.theta"], Normaliser.from_arrays(without_prefix("best.normaliser.", arrays)), value)
        require_shape("best.normaliser.mean", best.normaliser.mean, len(normaliser.mean))
    start = facts["start"]
    require_type("start", start, Mapping, type(None))
    return Progress(search, normaliser, best, iteration, episodes, start)


def with_prefix(prefix: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays of a part, as they are named in a checkpoint."""
    return {f"{prefix}{name}": x for name, x in arrays.items()}


def without_prefix(prefix: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays of a part of a checkpoint."""
    return {name.removeprefix(prefix): x for name, x in arrays.items() if name.startswith(prefix)}


def require_shape(name: str, array: np.ndarray, size: int) -> None:
    """Refuse an array that is not a finite vector of this size."""
    if array.shape != (size,):
        raise ValueError(f"{name} must be of shape ({size},) for its config, not {array.shape}")
    require_finite(name, array)


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
        "processor": processor_name(),
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
