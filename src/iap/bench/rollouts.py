"""How much of the bare environment's speed training keeps, and what a second worker brings.

All is measured in turns, again and again, by one process that has one core: it steps the bare environment with random
actions; it trains with one worker on that same core, so that what asking and telling take counts too; and it trains
with two workers, the second on a core of its own. A computer's speed drifts: what is compared is of one round, and the
ratios are medians over rounds.
"""

import json
import os
import sys
import time
from collections.abc import Callable, Generator, Iterator
from contextlib import closing
from dataclasses import replace
from statistics import median
from typing import Any

import numpy as np

from iap.bench.one_core import answer, on_one_core
from iap.envs.core import action_map
from iap.policies import Rank
from iap.rollouts import EnvConfig, LocalPool, Pool
from iap.rollouts.pool import ONE_CORE
from iap.training.config import TrainConfig, config_from_json, config_to_json, fitted_to_env
from iap.training.loop import begin, step

ROUNDS = 8
TURN_S = 6.0  # at least, of each of the three in a round
WAYS = ("bare", "one_worker", "two_workers")
NEVER = 1 << 40

Advance = Callable[[], int]  # does some steps, and says how many


def with_patches(config: TrainConfig, size: tuple[int, int] | None, patch: int, top_k: int) -> TrainConfig:
    """The run with images, patches and whole episodes as they are to be measured, two a candidate."""
    encoder = config.policy.encoder
    if not isinstance(encoder, Rank):
        raise ValueError(f"patches are ranked by Rank, not by {type(encoder).__name__}")
    encoder = replace(encoder, patch=patch, stride=patch, top_k=top_k)
    env = config.env if size is None else EnvConfig.of(config.env.id, **{**dict(config.env.kwargs), "size": size})
    return replace(config, env=env, policy=replace(config.policy, encoder=encoder), max_steps=None, episodes=2)


def bench_rollouts(config: TrainConfig, rounds: int = ROUNDS, turn_s: float = TURN_S) -> dict[str, Any]:
    """The ratios, from one run: `training_over_bare` on one core, and `two_over_one` workers."""
    config = fitted_to_env(config)
    encoder = config.policy.encoder
    patches = {"patch": encoder.patch, "top_k": encoder.top_k} if isinstance(encoder, Rank) else None
    question = {"config": config_to_json(config), "cores": _cores(), "rounds": rounds, "turn_s": turn_s}
    measured: list[dict[str, float]] = []
    for speeds in on_one_core(__name__, question=question, environment=ONE_CORE):
        measured.append(speeds)
        each = ", ".join(f"{name.replace('_', ' ')} {speed:,.0f}" for name, speed in speeds.items())
        sys.stderr.write(f"round {len(measured)} of {rounds}: {each} steps a second\n")
    return {
        "env": config.env.id,
        "image": list(config.policy.image_shape),
        "patches": patches,
        "training_over_bare": median(speeds["one_worker"] / speeds["bare"] for speeds in measured),
        "two_over_one": median(speeds["two_workers"] / speeds["one_worker"] for speeds in measured),
        "steps_per_second": {way: median(speeds[way] for speeds in measured) for way in WAYS},
        "rounds": measured,
    }


def measure(config: TrainConfig, cores: list[int] | None, rounds: int, turn_s: float) -> Iterator[dict[str, float]]:
    """Steps a second of each way, round by round; a first turn, which warms up, does not count."""
    one, two = (None, None) if cores is None else (cores[:1], cores)
    with (
        closing(_random_steps(config)) as bare,
        LocalPool(config.job, 1, cores=one) as single,
        LocalPool(config.job, 2, cores=two) as double,
    ):
        advances = dict(
            zip(WAYS, (lambda: next(bare), _generations(config, single), _generations(config, double)), strict=True)
        )
        for advance in advances.values():
            advance()
        for _ in range(rounds):
            yield {way: _speed(advance, turn_s) for way, advance in advances.items()}


def _speed(advance: Advance, turn_s: float) -> float:
    steps, begun = 0, time.perf_counter()
    while time.perf_counter() - begun < turn_s:
        steps += advance()
    return steps / (time.perf_counter() - begun)


def _generations(config: TrainConfig, pool: Pool) -> Advance:
    """Whole generations of training, from ask to tell, and nothing else."""
    config = replace(config, iterations=NEVER, evaluate_every=NEVER, random_search=0, warm_start=None)
    progress = begin(config, pool)

    def advance() -> int:
        nonlocal progress
        progress, row = step(config, pool, progress)
        return row["steps"]

    return advance


def _random_steps(config: TrainConfig) -> Generator[int, None, None]:
    """Whole episodes of the environment alone, with random actions and the same rendering; how many steps each took."""
    with closing(config.env.make()) as env:
        raw = np.random.default_rng(0).uniform(-1, 1, (256, config.policy.actions)).astype(np.float32)
        actions = list(map(action_map(env.action_space), raw))
        for seed in range(NEVER):
            env.reset(seed=seed)
            steps, ended = 0, False
            while not ended and steps != config.max_steps:
                _, _, terminated, truncated, _ = env.step(actions[steps % len(actions)])
                steps, ended = steps + 1, terminated or truncated
            yield steps


def _cores() -> list[int] | None:
    """Two cores that this process may use, first the one that `on_one_core` takes; None where they cannot be chosen."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    return sorted(os.sched_getaffinity(0), reverse=True)[:2]


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    for speeds in measure(config_from_json(asked.pop("config")), **asked):
        answer(speeds)
