"""Training, top to bottom: ask for candidates, run their episodes, tell their returns; check, save, go on."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float

import iap
from iap.evolution import Search, ask, from_arrays, mean, start, tell, to_arrays
from iap.experiments.config import HELD_OUT_SEEDS, TRAINING_SEEDS, TrainConfig
from iap.experiments.run_directory import Row, RunDirectory
from iap.policies import Normaliser, blocks, flatten, init
from iap.policies.files import PolicyFile
from iap.policies.files import save as save_policy
from iap.rollouts import Episode, Pool


@dataclass(frozen=True)
class Best:
    """The policy that did best on held-out seeds so far."""

    theta: Float[np.ndarray, " p"]
    normaliser: Normaliser
    held_out: float


@dataclass(frozen=True)
class Progress:
    """All that the next iteration needs: what a checkpoint holds."""

    search: Search
    normaliser: Normaliser
    best: Best | None = None
    iteration: int = 0
    episodes: int = 0


def train(
    config: TrainConfig, pool: Pool, run: RunDirectory, report: Callable[[Row], None] = lambda _row: None
) -> Progress:
    """Run the iterations that are left, each ending with a checkpoint; `report` is called with each row of metrics."""
    progress = resume(config, run) or begin(config, pool)
    run.keep_metrics(progress.iteration)
    while progress.iteration < config.iterations:
        begun = time.perf_counter()
        progress, row = step(config, pool, progress)
        row["seconds"] = round(time.perf_counter() - begun, 3)
        run.append_metrics(row)
        save(config, run, progress)
        report(row)
    return progress


def step(config: TrainConfig, pool: Pool, progress: Progress) -> tuple[Progress, Row]:
    """One generation."""
    iteration = progress.iteration + 1
    thetas, search = ask(progress.search)
    seeds = [TRAINING_SEEDS + seed for seed in draw_seeds(config.seed, iteration, config.episodes)]
    results = pool.evaluate(thetas, [seeds] * len(thetas), progress.normaliser)
    returns = np.array([mean_return(episodes) for episodes in results])
    search = tell(search, thetas, returns)
    ran = [episode for episodes in results for episode in episodes]
    normaliser = gather(progress.normaliser, ran) if config.policy.normalise else progress.normaliser
    progress = replace(
        progress, search=search, normaliser=normaliser, iteration=iteration, episodes=progress.episodes + len(ran)
    )
    returned = [float(x) for x in returns if math.isfinite(x)]
    row: Row = {
        "iteration": iteration,
        "episodes": progress.episodes,
        "best": _number(max(returned, default=math.nan)),
        "mean": _number(float(np.mean(returned)) if returned else math.nan),
        "failed": int(np.isnan(returns).sum()),
        "steps": sum(episode.steps for episode in ran),
        "held_out": None,
        "held_out_best": None if progress.best is None else _number(progress.best.held_out),
    }
    if iteration % config.evaluate_every == 0 or iteration == config.iterations:
        progress, held_out = check(config, pool, progress, thetas, returns)
        assert progress.best is not None
        row |= {"held_out": _number(held_out), "held_out_best": _number(progress.best.held_out)}
    return progress, row


def check(
    config: TrainConfig, pool: Pool, progress: Progress, thetas: np.ndarray, returns: np.ndarray
) -> tuple[Progress, float]:
    """The mean policy and this generation's best candidate on held-out seeds; the better may become the best so far."""
    best_of_generation = thetas[int(np.nanargmax(returns))] if np.isfinite(returns).any() else thetas[0]
    candidates = np.stack([mean(progress.search), best_of_generation]).astype(np.float32)
    seeds = [HELD_OUT_SEEDS + seed for seed in draw_seeds(config.seed, 0, config.evaluate_episodes)]
    results = pool.evaluate(candidates, [seeds] * len(candidates), progress.normaliser)
    held_out = [mean_return(episodes) for episodes in results]
    for theta, value in zip(candidates, held_out, strict=True):
        if np.isfinite(value) and (progress.best is None or value > progress.best.held_out):
            progress = replace(progress, best=Best(theta, progress.normaliser, value))
    if progress.best is None:
        progress = replace(progress, best=Best(candidates[0], progress.normaliser, -np.inf))
    return progress, held_out[0]


def begin(config: TrainConfig, pool: Pool) -> Progress:
    """Before the first iteration: a random policy, or the best of `config.screen` random ones."""
    scales = np.ones(blocks(config.policy)[-1].stop, np.float32)
    for block in blocks(config.policy):
        scales[block.start : block.stop] = getattr(config.scales, block.part)
    normaliser = Normaliser.none(inputs_size(config))
    thetas = np.stack([flatten(init(config.policy, config.seed + i)) for i in range(max(1, config.screen))])
    theta = thetas[0]
    if config.screen > 0:
        seeds = [TRAINING_SEEDS + seed for seed in draw_seeds(config.seed, 0, config.episodes)]
        results = pool.evaluate(thetas, [seeds] * len(thetas), normaliser)
        returns = np.array([mean_return(episodes) for episodes in results])
        theta = thetas[int(np.nanargmax(returns))] if np.isfinite(returns).any() else theta
    return Progress(start(config.strategy, theta, scales, config.seed), normaliser)


def save(config: TrainConfig, run: RunDirectory, progress: Progress) -> None:
    """Checkpoint and policies."""
    arrays = {f"search.{name}": x for name, x in to_arrays(progress.search).items()}
    arrays |= {f"normaliser.{name}": x for name, x in progress.normaliser.to_arrays().items()}
    facts: dict[str, Any] = {"iteration": progress.iteration, "episodes": progress.episodes, "best": None}
    save_policy(run.policy_file("last"), policy_file(config, mean(progress.search), progress.normaliser, progress))
    if progress.best is not None:
        best = progress.best
        arrays |= {"best.theta": best.theta}
        arrays |= {f"best.normaliser.{name}": x for name, x in best.normaliser.to_arrays().items()}
        facts["best"] = float(best.held_out) if np.isfinite(best.held_out) else None
        save_policy(run.policy_file("best"), policy_file(config, best.theta, best.normaliser, progress))
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
        facts=facts,
    )


def gather(normaliser: Normaliser, episodes: Sequence[Episode]) -> Normaliser:
    """The statistics of before and of these episodes, merged in the order of the candidates."""
    for episode in episodes:
        if episode.error is None:
            normaliser = normaliser.merge(episode.moments)
    return normaliser


def draw_seeds(seed: int, stream: int, count: int) -> list[int]:
    """`count` seeds below 2²⁹ that depend on nothing but these numbers."""
    return [int(x) % HELD_OUT_SEEDS for x in np.random.SeedSequence([seed, stream]).generate_state(count)]


def mean_return(episodes: Sequence[Episode]) -> float:
    """NaN if one of them failed for good."""
    return float(np.mean([episode.total for episode in episodes]))


def inputs_size(config: TrainConfig) -> int:
    """How many numbers the controller receives."""
    from iap.policies import Policy

    return Policy(config.policy, init(config.policy, 0)).inputs_size


def _number(x: float) -> float | None:
    """A float for JSON, which has no NaN."""
    return x if math.isfinite(x) else None
