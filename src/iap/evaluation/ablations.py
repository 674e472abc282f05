"""What a policy's return is worth: the same policy without its eyes, its training or its attention."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from iap.evaluation.evaluate import evaluate, policy_job, require_seeds, summary
from iap.policies import Blind, Linear, Normaliser, PolicyConfig, blocks, flatten, init
from iap.policies.serialization import PolicyFile
from iap.rollouts import Frames, Job, Pool

OpenPool = Callable[[Job], AbstractContextManager[Pool]]
Row = dict[str, Any]

DRAWS = 10  # of random attention, among which the episodes are shared out
ATTENTION = ("query", "key", "pooling")  # the parameters that decide where a policy looks


class Control(NamedTuple):
    """A policy to run in place of the trained one, and what is different about it."""

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
) -> list[Row]:
    """One row for the policy and one for each control, all on the same episodes."""
    require_seeds(episodes, seed)
    rows: list[Row] = []

    def add(name: str, what: str, result: Row) -> None:
        trained = rows[0]["mean"] if rows else result["mean"]
        share = result["mean"] / trained if trained and result["mean"] is not None else None
        numbers = {key: result[key] for key in ("mean", "ci95", "episodes", "failed")}
        rows.append({"control": name, **numbers, "share": share, "seed": seed, "what": what})
        report(rows[-1])

    for control in _controls(policy, blind):
        with open_pool(replace(policy_job(control.policy), frames=control.frames)) as pool:
            add(control.name, control.what, evaluate(control.policy, pool, episodes, seed))
    swapped = swapped_attention(policy)
    if swapped is not None:
        with open_pool(policy_job(policy)) as pool:
            shares = [list(range(seed + i, seed + episodes, len(swapped))) for i in range(len(swapped))]
            ran = pool.evaluate(swapped, shares, policy.normaliser)
            result = summary([episode for own in ran for episode in own])
            add("swapped attention", f"queries and keys drawn at random, {len(swapped)} draws", result)
    return rows


def _controls(policy: PolicyFile, blind: PolicyFile | None) -> Iterator[Control]:
    yield Control("trained", "the policy as it is", policy)
    yield Control("zero action", "0, the middle of each action's range", _zero_action(policy))
    yield _initial(policy)
    if not isinstance(policy.spec.encoder, Blind):
        yield Control("foreign frames", "shown the frames of another of its episodes", policy, "replayed")
        yield Control("shuffled frames", "shown its own frames in random order", policy, "shuffled")
    if blind is not None:
        yield Control("blind", "trained without an image", blind)


def swapped_attention(policy: PolicyFile, draws: int = DRAWS) -> np.ndarray | None:
    """The policy's θ with random queries and keys in place of the trained ones; None if it has none."""
    own = [block for block in blocks(policy.spec) if block.part == "encoder" and _decides_where(block.name)]
    if not own:
        return None
    thetas = np.repeat(policy.theta[None], draws, axis=0)
    for i, theta in enumerate(thetas):
        drawn = flatten(init(policy.spec, int(policy.facts.get("seed", 0)) + 1 + i))
        for block in own:
            theta[block.start : block.stop] = drawn[block.start : block.stop]
    return thetas


def _decides_where(name: str) -> bool:
    return name.partition(".")[0] in ATTENTION


def _zero_action(policy: PolicyFile) -> PolicyFile:
    spec = PolicyConfig(
        image_shape=policy.spec.image_shape,
        sensors=policy.spec.sensors,
        actions=policy.spec.actions,
        encoder=Blind(),
        controller=Linear(),
        normalise=False,
    )
    theta = np.zeros(blocks(spec)[-1].stop, np.float32)
    return replace(policy, spec=spec, theta=theta, normaliser=Normaliser.none(spec.inputs_size))


def _undone(policy: PolicyFile) -> PolicyFile:
    """The policy with the low level of its seed."""
    theta, drawn = policy.theta.copy(), flatten(init(policy.spec, int(policy.facts.get("seed", 0))))
    for block in blocks(policy.spec):
        if block.part == "low":
            theta[block.start : block.stop] = drawn[block.start : block.stop]
    return replace(policy, theta=theta)


def _initial(policy: PolicyFile) -> Control:
    """The draw of its seed, untrained; or the best of many draws, which had statistics already."""
    if "taught" in policy.facts:
        return Control("initial", "its taught eyes, and a low level as one is drawn", _undone(policy))
    screened = policy.facts.get("screened")
    if screened is None:
        theta = flatten(init(policy.spec, int(policy.facts.get("seed", 0))))
        start = replace(policy, theta=theta, normaliser=Normaliser.none(policy.spec.inputs_size))
        return Control("initial", "the random parameters of its seed", start)
    start = replace(policy, theta=flatten(init(policy.spec, int(screened["seed"]))))
    return Control("initial", f"the best of {screened['candidates']:,} draws, which training started from", start)
