"""The progress of SAC, kept in the folder of a run as a checkpoint and as policies."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

import iap
from iap._validation import require_count, require_number
from iap.policies import Normaliser, PolicyConfig, PolicyFile, count_params
from iap.training.checkpoints import Best, require_shape, with_prefix, without_prefix
from iap.training.run_directory import RunDirectory
from iap.training.sac.config import SAC
from iap.training.sac.learner import Learner, first_learner
from iap.training.sac.networks import actor_theta
from iap.training.sac.replay import Replay

VERSION = 2  # 1 → 2: a checksum beside the facts
LEARNER, REPLAY, NORMALISER, BEST = "learner.", "replay.", "normaliser.", "best."


@dataclass(frozen=True)
class Progress:
    """All that the next iteration needs.

    Attributes:
        learner: networks and the state of the optimiser.
        replay: the transitions so far.
        normaliser: of the sensors.
        best: the best policy so far; None before the first evaluation.
        held_out: the last return on validation seeds.
        iteration: number of completed iterations.
        episodes: number of episodes of these.
    """

    learner: Learner
    replay: Replay
    normaliser: Normaliser
    best: Best | None = None
    held_out: float = math.nan
    iteration: int = 0
    episodes: int = 0


def save(config: SAC, policy: PolicyConfig, run: RunDirectory, progress: Progress, command: str | None = None) -> None:
    """Write the policies, then the checkpoint, so that the checkpoint is never ahead of them."""
    import jax

    assert progress.best is not None
    facts: dict[str, Any] = {
        "iap": iap.__version__,
        "seed": config.seed,
        "iterations": progress.iteration,
        "episodes": progress.episodes,
        "decisions": progress.replay.count,
        "algorithm": "sac",
        **({} if command is None else {"command": command}),
    }
    last = Best(actor_theta(policy, progress.learner.learnt.actor), progress.normaliser, progress.held_out)
    for which, actor in (("last", last), ("best", progress.best)):
        used = actor.normaliser if config.normalise else None
        run.save_policy(which, PolicyFile(policy, actor.theta, used, config.env.id, dict(config.env.kwargs), facts))
    arrays = {f"{LEARNER}{i}": np.asarray(leaf) for i, leaf in enumerate(jax.tree.leaves(progress.learner))}
    arrays |= with_prefix(REPLAY, progress.replay.to_arrays())
    arrays |= with_prefix(NORMALISER, progress.normaliser.to_arrays())
    arrays |= with_prefix(BEST, progress.best.normaliser.to_arrays())
    counts = {"version": VERSION, "iteration": progress.iteration, "episodes": progress.episodes}
    returns = {"best": _plain(progress.best.held_out), "held_out": _plain(progress.held_out)}
    run.save_checkpoint(arrays | {f"{BEST}theta": progress.best.theta}, counts | returns)


def resume(config: SAC, policy: PolicyConfig, run: RunDirectory) -> Progress:
    """The progress of the checkpoint, or that before the first iteration."""
    learner, replay = first_learner(config, policy.sensors, policy.actions), Replay(policy.sensors, policy.actions)
    loaded = run.load_checkpoint()
    if loaded is None:
        return Progress(learner, replay, Normaliser.none(policy.sensors))
    arrays, facts = loaded
    with run.explained_content(run.checkpoint_file):
        return _progress(policy, learner, replay, arrays, upgrade(facts))


def _progress(
    policy: PolicyConfig, learner: Learner, replay: Replay, arrays: Mapping[str, np.ndarray], facts: dict[str, Any]
) -> Progress:
    import jax

    leaves, structure = jax.tree.flatten(learner)
    found = [arrays[f"{LEARNER}{i}"] for i in range(len(leaves))]
    for i, (leaf, like) in enumerate(zip(found, leaves, strict=True)):
        if leaf.shape != np.shape(like):
            raise ValueError(f"{LEARNER}{i} must be of shape {np.shape(like)}, not {leaf.shape}")
    learner = jax.tree.unflatten(structure, found)
    replay.restore(without_prefix(REPLAY, arrays))
    best = without_prefix(BEST, arrays)
    theta, best_normaliser = best.pop("theta"), Normaliser.from_arrays(best)
    normaliser = Normaliser.from_arrays(without_prefix(NORMALISER, arrays))
    for name, array, size in (
        ("best.theta", theta, count_params(policy)),
        ("best.mean", best_normaliser.mean, policy.sensors),
        ("normaliser.mean", normaliser.mean, policy.sensors),
    ):
        require_shape(name, array, size)
    best_held_out, held_out = (
        math.nan if facts[name] is None else require_number(name, facts[name], -math.inf)
        for name in ("best", "held_out")
    )
    iteration, episodes = (require_count(name, facts[name], least=0) for name in ("iteration", "episodes"))
    return Progress(
        learner, replay, normaliser, Best(theta, best_normaliser, best_held_out), held_out, iteration, episodes
    )


def is_sac(arrays: Mapping[str, np.ndarray]) -> bool:
    """Whether these are the arrays of such a checkpoint."""
    return f"{REPLAY}count" in arrays


def upgrade(facts: dict[str, Any]) -> dict[str, Any]:
    """The facts of a checkpoint of any version as those of the newest."""
    version = facts.get("version")
    if type(version) is not int or not 1 <= version <= VERSION:
        raise ValueError(f"its version must be a whole number from 1 to {VERSION}, not {version!r}")
    return facts | {"version": VERSION}


def _plain(x: float) -> float | None:
    return x if math.isfinite(x) else None
