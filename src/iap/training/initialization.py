"""Where the search starts: a random policy, the best of many, a pretrained one, or one that was trained before."""

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from iap.distillation import DAgger, Distillation, Pretrained, pretrain
from iap.distillation.dataset import teacher_policy
from iap.distillation.teachers import TeacherConfig
from iap.evolution import Search, start
from iap.policies import Normaliser, PolicyFile, blocks, flatten, init
from iap.policies.serialization import load
from iap.rollouts import Pool, draw_seeds
from iap.training.checkpoints import Best, Progress, policy_file
from iap.training.config import TrainConfig
from iap.training.returns import best_of, finite, merge_statistics, run_candidates, run_held_out, summarise
from iap.training.run_directory import DISTILLATION, Row, RunDirectory
from iap.zoo.locate import locate_policy

RANDOM_SEARCH = 1 << 31  # the stream that random policies are drawn from, far from those of the iterations
FINALS = RANDOM_SEARCH + 1  # the stream of the seeds of the final comparison
FINALISTS = 16  # policies in the final comparison, which has four times as many episodes as the rounds before

Report = Callable[[str, float], None]  # what is being done, and which share of it is done


def initialize(
    config: TrainConfig,
    pool: Pool,
    run: RunDirectory | None = None,
    report: Report = lambda _what, _share: None,
    teacher: TeacherConfig | None = None,
) -> Progress:
    """The progress before the first iteration; the run keeps the policy that the search starts from.

    Args:
        config: what is trained.
        pool: where the episodes run.
        run: the folder of the run.
        report: called with what is being done and which share of it is done.
        teacher: of a distillation, if it is another than the config's, such as a function.
    """
    if config.warm_start is not None:
        return _warm_start(config, pool, run)
    if config.pretraining is not None:
        return _pretrain(config, pool, run, report, teacher)
    if config.random_search > 0:
        return _random_search(config, pool, run, report)
    theta = flatten(init(config.policy, config.seed))
    return Progress(_search(config, theta), Normaliser.none(config.policy.inputs_size))


def first_row(progress: Progress) -> Row:
    """The start of the search as a row of metrics, iteration 0."""
    assert progress.start is not None
    [facts] = progress.start.values()
    numbers = {name: facts.get(name) for name in ("best", "mean", "failed", "steps", "held_out")}
    return {"iteration": 0, "episodes": progress.episodes, **numbers, "held_out_best": facts["held_out"]}


def check_start(config: TrainConfig, teacher: TeacherConfig | None = None) -> None:
    """Refuse a warm start or a teacher that does not fit the policy, before anything is written."""
    if isinstance(config.pretraining, DAgger):
        env = config.env.make()
        try:
            (teacher or TeacherConfig(config.pretraining.teacher)).check(env, config.policy.actions)
        finally:
            env.close()
    if config.warm_start is not None:
        warm_start_policy(config)
    if isinstance(config.pretraining, Distillation):
        teacher_policy(config.pretraining, config.policy)


def warm_start_policy(config: TrainConfig) -> PolicyFile:
    """The policy of `warm_start`, if its parameters have the shapes of the config's."""
    assert config.warm_start is not None
    policy, _ = locate_policy(config.warm_start)
    own, theirs = ({(b.part, b.name, b.shape) for b in blocks(c)} for c in (config.policy, policy.config))
    if own != theirs:
        different = sorted({f"{part} {name}" for part, name, _ in own ^ theirs})
        raise ValueError(f"warm_start {config.warm_start} has other shapes: {', '.join(different)} differ")
    return policy


def _warm_start(config: TrainConfig, pool: Pool, run: RunDirectory | None) -> Progress:
    """The policy as it is. The run keeps a copy, since the file may be another one when the run is resumed."""
    copy = None if run is None else run.policy_file("start")
    policy = load(copy) if copy is not None and copy.exists() else warm_start_policy(config)
    if run is not None:
        run.save_policy("start", policy)
    normaliser = policy.normaliser or Normaliser.none(config.policy.inputs_size)
    facts = {"policy": config.warm_start, "facts": dict(policy.facts), "failed": 0, "steps": 0}
    return _start_at(config, pool, policy.theta, normaliser, "warm_start", facts)


def _pretrain(
    config: TrainConfig, pool: Pool, run: RunDirectory | None, report: Report, teacher: TeacherConfig | None
) -> Progress:
    """A pretrained policy: `pretrained.policy`."""
    assert config.pretraining is not None
    if isinstance(config.pretraining, DAgger):
        result = _distil(config, config.pretraining, pool, run, report, teacher)
    else:
        result = pretrain(config.pretraining, config.env, config.policy, config.seed, report)
    facts = {**result.facts, "failed": 0, "steps": 0}
    progress = _start_at(config, pool, result.theta, result.normaliser, "pretrained", facts)
    if run is not None:
        run.save_policy("pretrained", policy_file(config, result.theta, result.normaliser, progress))
    return progress


def _distil(
    config: TrainConfig,
    dagger: DAgger,
    pool: Pool,
    run: RunDirectory | None,
    report: Report,
    teacher: TeacherConfig | None,
) -> Pretrained:
    """Distil a teacher; the dataset and the checkpoint are in the run's folder, or in a temporary one."""
    from iap.distillation.dagger.loop import distil_by_dagger

    if run is None:
        with tempfile.TemporaryDirectory() as folder:
            return distil_by_dagger(dagger, config.job, config.seed, pool, Path(folder), report, teacher)
    with run.explained():
        return distil_by_dagger(dagger, config.job, config.seed, pool, run.path / DISTILLATION, report, teacher)


def _random_search(config: TrainConfig, pool: Pool, run: RunDirectory | None, report: Report) -> Progress:
    """The best of many random policies, a baseline of its own: `random_search.policy`.

    A first round collects the statistics of the normaliser; all candidates are then compared with the same one, and the
    search goes on with it. The best of many on few episodes is often only lucky. So all are tried on half the episodes,
    and the best of them are compared on twice as many.
    """
    drawn = [config.seed, *draw_seeds(config.seed, RANDOM_SEARCH, config.random_search - 1)]
    thetas = np.stack([flatten(init(config.policy, seed)) for seed in drawn])
    rounds = np.split(thetas, range(config.strategy.population, len(thetas), config.strategy.population))
    normaliser, returns, ran = Normaliser.none(config.policy.inputs_size), [], []
    heats = replace(config, episodes=(config.episodes + 1) // 2)
    if config.policy.normalise:
        report("statistics of random policies", 0.0)
        _, ran = run_candidates(heats, pool, rounds[0], normaliser, iteration=0)
        normaliser = merge_statistics(normaliser, ran)
    for candidates in rounds:
        best = f", best {returns[best_of(returns)]:.4g}" if returns else ""
        report(f"random search over {len(thetas):,} policies{best}", len(returns) / len(thetas))
        more, episodes = run_candidates(heats, pool, candidates, normaliser, iteration=0)
        returns, ran = returns + more, ran + episodes
    report("comparison of the best policies", 1.0)
    finalists = np.argsort(-np.nan_to_num(returns, nan=-np.inf), kind="stable")[:FINALISTS]
    finals = replace(config, episodes=2 * config.episodes)
    more, episodes = run_candidates(finals, pool, thetas[finalists], normaliser, iteration=FINALS)
    ran += episodes
    winner = int(finalists[best_of(more)])
    facts = {"candidates": config.random_search, "seed": drawn[winner], "final": finite(more[best_of(more)])}
    facts |= summarise(returns, ran)
    progress = _start_at(config, pool, thetas[winner], normaliser, "random_search", facts, len(ran))
    if run is not None:
        run.save_policy("random_search", policy_file(config, thetas[winner], normaliser, progress))
    return progress


def _start_at(
    config: TrainConfig,
    pool: Pool,
    theta: Float[np.ndarray, " p"],
    normaliser: Normaliser,
    kind: str,
    facts: dict[str, Any],
    episodes: int = 0,
) -> Progress:
    """The search about to start at θ, which is the best policy so far, with its return on validation seeds."""
    [held_out] = run_held_out(config, pool, theta[None], normaliser)
    best = Best(theta, normaliser, held_out) if finite(held_out) is not None else None
    started = {kind: facts | {"held_out": finite(held_out)}}
    return Progress(_search(config, theta), normaliser, best, episodes=episodes, start=started)


def _search(config: TrainConfig, theta: Float[np.ndarray, " p"]) -> Search:
    multipliers = np.ones(len(theta), np.float32)
    for block in blocks(config.policy):
        multipliers[block.start : block.stop] = getattr(config.sigma_multipliers, block.part)
    return start(config.strategy, theta, multipliers, config.seed)
