"""Where evolution starts: at a random policy, the best of many, one whose eyes were taught, one trained before."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
from jaxtyping import Float

from iap.distillation.encoder_regression import teach_by_gradient
from iap.distillation.es_pretraining import teach
from iap.evaluation.evaluate import locate_policy
from iap.evolution import Search, start
from iap.policies import Normaliser, blocks, flatten, init
from iap.policies.serialization import PolicyFile, load
from iap.rollouts import Pool
from iap.training.checkpoints import Best, Progress, policy_file
from iap.training.config import Distillation, TrainConfig
from iap.training.returns import best_of, draw_seeds, finite, gather, run_candidates, run_held_out, summarise
from iap.training.run_directory import Row, RunDirectory

SCREENING = 1 << 31  # the stream that the screened policies are drawn from, far from those of the iterations
FINALS = SCREENING + 1  # the stream of the seeds that the best of them meet on
FINALISTS = 16  # how many of them; they have four times as many episodes as in the rounds before

Told = Callable[[str, float], None]


def begin(
    config: TrainConfig, pool: Pool, run: RunDirectory | None = None, tell: Told = lambda _what, _share: None
) -> Progress:
    """What the first iteration needs; the run keeps the policy that evolution starts from, if it was not drawn."""
    if config.warm_start is not None:
        return _from_policy(config, pool, run)
    if config.pretraining is not None:
        return _teach(config, pool, run, tell)
    if config.random_search > 0:
        return _screen(config, pool, run, tell)
    theta = flatten(init(config.policy, config.seed))
    return Progress(_search(config, theta), Normaliser.none(config.policy.inputs_size))


def first_row(progress: Progress) -> Row:
    """How evolution began as a row of metrics, number 0."""
    assert progress.begun is not None
    [facts] = progress.begun.values()
    told = {name: facts.get(name) for name in ("best", "mean", "failed", "steps", "held_out")}
    return {"iteration": 0, "episodes": progress.episodes, **told, "held_out_best": facts["held_out"]}


def start_policy(config: TrainConfig) -> PolicyFile:
    """The policy that the config starts from, once its parameters are known to be of the same shapes."""
    assert config.warm_start is not None
    policy, _ = locate_policy(config.warm_start)
    own, theirs = ({(b.part, b.name, b.shape) for b in blocks(spec)} for spec in (config.policy, policy.spec))
    if own != theirs:
        odd = sorted({f"{part} {name}" for part, name, _ in own ^ theirs})
        raise ValueError(f"{config.warm_start} cannot be started from, its shapes differ in {', '.join(odd)}")
    return policy


def _from_policy(config: TrainConfig, pool: Pool, run: RunDirectory | None) -> Progress:
    """The policy as it is, of which the run keeps a copy: the file may be another when the run is resumed."""
    copy = None if run is None else run.policy_file("start")
    policy = load(copy) if copy is not None and copy.exists() else start_policy(config)
    if run is not None:
        run.save_policy("start", policy)
    normaliser = policy.normaliser or Normaliser.none(config.policy.inputs_size)
    facts = {"policy": config.warm_start, "facts": dict(policy.facts), "failed": 0, "steps": 0}
    return _begun(config, pool, policy.theta, normaliser, "started_from", facts)


def _teach(config: TrainConfig, pool: Pool, run: RunDirectory | None, tell: Told) -> Progress:
    """A policy whose eyes know where things are, but not what to do: `taught.policy`."""
    by_gradient = isinstance(config.pretraining, Distillation)
    taught = teach_by_gradient(config, tell) if by_gradient else teach(config, tell)
    facts = {"r2_drawn": taught.drawn, "r2_taught": taught.taught, "failed": 0, "steps": 0}
    progress = _begun(config, pool, taught.theta, taught.normaliser, "taught", facts)
    if run is not None:
        run.save_policy("taught", policy_file(config, taught.theta, taught.normaliser, progress))
    return progress


def _screen(config: TrainConfig, pool: Pool, run: RunDirectory | None, tell: Told) -> Progress:
    """The best of many random policies, a baseline of its own: `screened.policy`.

    Nobody knows what controllers receive before some have looked. A first round gathers the statistics; all candidates
    are then judged by the same ones, and evolution goes on with them. The best of many on a few episodes is lucky more
    than good, so many are tried on half the episodes, and the best of them compared on twice as many.
    """
    drawn = [config.seed, *draw_seeds(config.seed, SCREENING, config.random_search - 1)]
    thetas = np.stack([flatten(init(config.policy, seed)) for seed in drawn])
    rounds = np.split(thetas, range(config.strategy.population, len(thetas), config.strategy.population))
    normaliser, returns, ran = Normaliser.none(config.policy.inputs_size), [], []
    heats = replace(config, episodes=(config.episodes + 1) // 2)
    if config.policy.normalise:
        tell("statistics of random policies", 0.0)
        _, ran = run_candidates(heats, pool, rounds[0], normaliser, iteration=0)
        normaliser = gather(normaliser, ran)
    for candidates in rounds:
        best = f", best {returns[best_of(returns)]:.4g}" if returns else ""
        tell(f"screening {len(thetas):,} random policies{best}", len(returns) / len(thetas))
        more, episodes = run_candidates(heats, pool, candidates, normaliser, iteration=0)
        returns, ran = returns + more, ran + episodes
    tell("finals of the best", 1.0)
    finalists = np.argsort(-np.nan_to_num(returns, nan=-np.inf), kind="stable")[:FINALISTS]
    finals = replace(config, episodes=2 * config.episodes)
    more, episodes = run_candidates(finals, pool, thetas[finalists], normaliser, iteration=FINALS)
    ran += episodes
    chosen = int(finalists[best_of(more)])
    facts = {"candidates": config.random_search, "seed": drawn[chosen], "final": finite(more[best_of(more)])}
    facts |= summarise(returns, ran)
    progress = _begun(config, pool, thetas[chosen], normaliser, "screened", facts, len(ran))
    if run is not None:
        run.save_policy("screened", policy_file(config, thetas[chosen], normaliser, progress))
    return progress


def _begun(
    config: TrainConfig,
    pool: Pool,
    theta: Float[np.ndarray, " p"],
    normaliser: Normaliser,
    how: str,
    facts: dict[str, Any],
    episodes: int = 0,
) -> Progress:
    """Evolution about to start at θ, which is the best so far, with its return on held-out seeds."""
    [held_out] = run_held_out(config, pool, theta[None], normaliser)
    best = Best(theta, normaliser, held_out) if finite(held_out) is not None else None
    begun = {how: facts | {"held_out": finite(held_out)}}
    return Progress(_search(config, theta), normaliser, best, episodes=episodes, begun=begun)


def _search(config: TrainConfig, theta: Float[np.ndarray, " p"]) -> Search:
    scales = np.ones(len(theta), np.float32)
    for block in blocks(config.policy):
        scales[block.start : block.stop] = getattr(config.sigma_multipliers, block.part)
    return start(config.strategy, theta, scales, config.seed)
