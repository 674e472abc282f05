"""Ablations: what the return of a policy is without its images, its training or its attention."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from iap.envs.core import EnvConfig
from iap.evaluation.evaluate import Evaluation, evaluate, policy_job, require_seeds, summarise
from iap.policies import Blind, Linear, Normaliser, PolicyConfig, PolicyFile, blocks, count_params, flatten, init
from iap.rollouts import Frames, Job, Pool

OpenPool = Callable[[Job], AbstractContextManager[Pool]]
Row = dict[str, Any]

RANDOM_ATTENTIONS = 10  # among which the episodes are divided
ATTENTION = ("query", "key", "pooling")  # the arrays that decide which patches are selected


class Ablation(NamedTuple):
    """A policy to run instead of the trained one, and what is different about it."""

    name: str
    what: str
    policy: PolicyFile
    frames: Frames = "own"


def run_ablations(
    policy: PolicyFile,
    open_pool: OpenPool,
    episodes: int = 100,
    seed: int = 0,
    blind: PolicyFile | None = None,
    report: Callable[[Row], None] = lambda _row: None,
    env: EnvConfig | None = None,
) -> list[Row]:
    """One row for the policy and one for each ablation, all on the same episodes.

    Args:
        policy: the trained policy.
        open_pool: opens a pool for a job.
        episodes: of each ablation.
        seed: of the first episode.
        blind: a policy that was trained the same way without an image.
        report: called with each row.
        env: another environment than the policy's own.
    """
    require_seeds(episodes, seed)
    if blind is not None:
        require_blind(blind, policy)
    rows: list[Row] = []

    def job_of(policy: PolicyFile) -> Job:
        return policy_job(policy) if env is None else Job(env, policy.config)

    def add(name: str, what: str, result: Evaluation) -> None:
        trained = rows[0]["mean"] if rows else result.mean
        share = result.mean / trained if trained and result.mean is not None else None
        numbers = {"mean": result.mean, "ci95": result.ci95, "episodes": result.episodes, "failed": result.failed}
        rows.append({"ablation": name, **numbers, "share": share, "seed": seed, "what": what})
        report(rows[-1])

    for ablation in _ablations(policy, blind):
        with open_pool(replace(job_of(ablation.policy), frames=ablation.frames)) as pool:
            add(ablation.name, ablation.what, evaluate(ablation.policy, pool, episodes, seed))
    thetas = random_attention(policy)
    if thetas is not None:
        with open_pool(job_of(policy)) as pool:
            shares = [list(range(seed + i, seed + episodes, len(thetas))) for i in range(len(thetas))]
            ran = pool.evaluate(thetas, shares, policy.normaliser)
            result = summarise([episode for own in ran for episode in own])
            add("random attention", f"random queries and keys, {len(thetas)} draws", result)
    return rows


def _ablations(policy: PolicyFile, blind: PolicyFile | None) -> Iterator[Ablation]:
    yield Ablation("trained", "the policy as it is", policy)
    yield Ablation("zero action", "0, the middle of each action's range", zero_action(policy))
    yield _initial(policy)
    if policy.config.encoder.uses_image:
        yield Ablation("replayed frames", "images of another of its episodes", policy, "replayed")
        yield Ablation("shuffled frames", "its own images in random order", policy, "shuffled")
    if blind is not None:
        yield Ablation("blind", "trained without an image", blind)


def random_attention(policy: PolicyFile, draws: int = RANDOM_ATTENTIONS) -> np.ndarray | None:
    """The policy's θ with random queries and keys instead of the trained ones; None if it has none."""
    attention = [block for block in blocks(policy.config) if block.part == "encoder" and _is_attention(block.name)]
    if not attention:
        return None
    thetas = np.repeat(policy.theta[None], draws, axis=0)
    for i, theta in enumerate(thetas):
        drawn = flatten(init(policy.config, int(policy.facts.get("seed", 0)) + 1 + i))
        for block in attention:
            theta[block.start : block.stop] = drawn[block.start : block.stop]
    return thetas


def require_blind(blind: PolicyFile, policy: PolicyFile) -> None:
    """Refuse a policy that is no baseline of another: one with images, or of another environment."""
    if blind.config.encoder.uses_image:
        raise ValueError(
            f"blind must be a policy without images (iap train … --encoder blind), but its encoder is "
            f"{type(blind.config.encoder).__name__}"
        )
    if blind.env_id != policy.env_id:
        raise ValueError(f"blind must be a policy of {policy.env_id}, not of {blind.env_id}")
    own, theirs = ((p.config.sensors, p.config.actions) for p in (policy, blind))
    if own != theirs:
        raise ValueError(f"blind must have {own[0]} sensors and {own[1]} actions, not {theirs[0]} and {theirs[1]}")


def _is_attention(name: str) -> bool:
    return name.partition(".")[0] in ATTENTION


def zero_action(policy: PolicyFile) -> PolicyFile:
    """A policy whose action is always 0."""
    own = policy.config
    config = PolicyConfig(own.image_shape, own.sensors, own.actions, Blind(), Linear(), normalise=False)
    theta = np.zeros(count_params(config), np.float32)
    return replace(policy, config=config, theta=theta, normaliser=Normaliser.none(config.inputs_size))


def _initial(policy: PolicyFile) -> Ablation:
    """The policy that the search started from."""
    drawn = flatten(init(policy.config, int(policy.facts.get("seed", 0))))
    started = policy.facts.get("pretrained")
    if started is not None and (policy.config.hierarchy is None or "distillation" in started):  # all of it
        return Ablation("initial", "the random parameters of its seed", replace(policy, theta=drawn))
    if "pretrained" in policy.facts:
        theta = policy.theta.copy()
        for block in blocks(policy.config):
            if block.part == "low_level":
                theta[block.start : block.stop] = drawn[block.start : block.stop]
        return Ablation("initial", "its pretrained encoder and a random low level", replace(policy, theta=theta))
    searched = policy.facts.get("random_search")
    if searched is None:
        start = replace(policy, theta=drawn, normaliser=Normaliser.none(policy.config.inputs_size))
        return Ablation("initial", "the random parameters of its seed", start)
    start = replace(policy, theta=flatten(init(policy.config, int(searched["seed"]))))
    return Ablation("initial", f"the best of {searched['candidates']:,} random policies, where training started", start)
