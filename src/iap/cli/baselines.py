"""A trained policy beside its baselines on the same episodes: zero action, random actions, a blind policy."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from iap.distillation import DAgger
from iap.evaluation.ablations import zero_action
from iap.evaluation.evaluate import summarise
from iap.policies import PolicyFile, blind_baseline
from iap.policies.serialization import load
from iap.rollouts import EVALUATION_SEEDS, Episode, Job, Pool
from iap.training.config import SigmaMultipliers, TrainConfig
from iap.training.loop import train
from iap.training.run_directory import RunDirectory

OpenPool = Callable[[Job], AbstractContextManager[Pool]]
Row = dict[str, Any]

BLIND_SHARE = 5  # the blind policy is trained for one of so many iterations: it has few parameters
FEWEST_ITERATIONS = 2
CI95 = 1.96


def compare_with_baselines(
    run: RunDirectory,
    config: TrainConfig,
    open_pool: OpenPool,
    episodes: int,
    report: Callable[[str], object] = lambda _what: None,
) -> list[Row]:
    """A row for the best policy and one for each baseline, with the mean difference of their returns by episode.

    Args:
        run: a finished run; the blind policy is trained in its folder `blind`.
        config: of the run.
        open_pool: opens a pool for a job.
        episodes: number of episodes of each.
        report: called with what is being done.
    """
    policy = load(run.policy_file("best"))
    seeds = range(EVALUATION_SEEDS, EVALUATION_SEEDS + episodes)
    rows: list[Row] = []
    returns: dict[str, np.ndarray] = {}
    for name, job, file in _policies(run, config, policy, open_pool, report):
        report(f"{episodes} episodes: {name}")
        with open_pool(job) as pool:
            [ran] = pool.evaluate(file.theta[None], [seeds], file.normaliser)
        returns[name] = np.array([episode.total for episode in ran])
        rows.append(_row(name, ran, returns["trained"] - returns[name]))
    return rows


def _policies(
    run: RunDirectory, config: TrainConfig, policy: PolicyFile, open_pool: OpenPool, report: Callable[[str], object]
) -> Iterator[tuple[str, Job, PolicyFile]]:
    yield "trained", config.job, policy
    zero = zero_action(policy)
    still = replace(config.job, policy=zero.config)
    yield "zero action", still, zero
    yield "random actions", replace(still, random_actions=True), zero
    if policy.config.encoder.uses_image:
        blind = blind_config(config)
        report(f"training a blind policy, {blind.iterations} iterations")
        yield f"blind, {blind.iterations} iterations", blind.job, _train_blind(blind, run.path / "blind", open_pool)


def blind_config(config: TrainConfig) -> TrainConfig:
    """The same training without images, for a fifth of the iterations."""
    policy = replace(blind_baseline(config.policy), image_format=None)
    if isinstance(config.pretraining, DAgger):  # distilled by the same recipe
        return replace(config, policy=policy, pretraining=replace(config.pretraining, encoder=None))
    iterations = max(FEWEST_ITERATIONS, config.iterations // BLIND_SHARE)
    return replace(
        config,
        policy=policy,
        sigma_multipliers=SigmaMultipliers(controller=1.0, low_level=config.sigma_multipliers.low_level or 0.1),
        iterations=iterations,
        random_search=0,
        pretraining=None,
        warm_start=None,
        freeze_normaliser=False,
        evaluate_every=iterations,
    )


def _train_blind(config: TrainConfig, path: Path, open_pool: OpenPool) -> PolicyFile:
    """The blind policy; one that was trained before is used again, if the run was not extended since."""
    run = RunDirectory(path)
    if run.config_file.exists():
        before = RunDirectory.open(path)[1]
        if before.iterations < config.iterations:
            run.extend(config)
    else:
        run = RunDirectory.create(path, config)
    with open_pool(config.job) as pool:
        train(config, pool, run)
    best = run.policy_file("best")
    return load(best if best.exists() else run.policy_file("last"))


def _row(name: str, episodes: list[Episode], differences: np.ndarray) -> Row:
    result = summarise(episodes)
    known = differences[np.isfinite(differences)]
    is_baseline = name != "trained" and len(known) > 0
    spread = CI95 * float(np.std(known, ddof=1)) / np.sqrt(len(known)) if len(known) > 1 else None
    return {
        "policy": name,
        "return": result.mean,
        "± (95 %)": result.ci95,
        "difference": float(known.mean()) if is_baseline else None,
        "± (95 %) ": spread if is_baseline else None,
        "failed": result.failed or None,
    }
