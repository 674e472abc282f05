"""Speed of training compared with the environment alone, and of two workers compared with one.

One process on one core measures three modes in turn, in several rounds: the environment alone with random actions;
training with one worker on the same core, so that the time of the strategy counts; and training with two workers, the
second on another core. The speed of a computer varies over time, so ratios are taken within a round; the results are
medians over the rounds.
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

from iap.bench.one_core import run_on_one_core, send
from iap.envs.core import action_map
from iap.policies import Rank
from iap.rollouts import EnvConfig, LocalPool, Pool
from iap.rollouts.pool import ONE_CORE
from iap.training.config import TrainConfig, config_from_json, config_to_json, fit_to_env
from iap.training.initialization import initialize
from iap.training.loop import step

ROUNDS = 8
TURN_S = 6.0  # least duration of each mode in a round
MODES = ("bare", "one_worker", "two_workers")
NEVER = 1 << 40

Advance = Callable[[], int]  # runs some steps and returns their number


def with_patches(config: TrainConfig, size: tuple[int, int] | None, patch: int, top_k: int) -> TrainConfig:
    """The config with the given image size and patches, whole episodes, and two episodes per candidate."""
    encoder = config.policy.encoder
    if not isinstance(encoder, Rank):
        raise ValueError(f"the preset's encoder must be Rank, not {type(encoder).__name__}")
    encoder = replace(encoder, patch=patch, stride=patch, top_k=top_k)
    env = config.env if size is None else EnvConfig.of(config.env.id, **{**dict(config.env.kwargs), "size": size})
    return replace(config, env=env, policy=replace(config.policy, encoder=encoder), max_steps=None, episodes=2)


def bench_rollouts(config: TrainConfig, rounds: int = ROUNDS, turn_s: float = TURN_S) -> dict[str, Any]:
    """Steps per second of each mode, and the ratios `training_over_bare` (on one core) and `two_over_one` (workers)."""
    config = fit_to_env(config)
    encoder = config.policy.encoder
    patches = {"patch": encoder.patch, "top_k": encoder.top_k} if isinstance(encoder, Rank) else None
    request = {"config": config_to_json(config), "cores": _cores(), "rounds": rounds, "turn_s": turn_s}
    measured: list[dict[str, float]] = []
    for speeds in run_on_one_core(__name__, request=request, environment=ONE_CORE):
        measured.append(speeds)
        each = ", ".join(f"{name.replace('_', ' ')} {speed:,.0f}" for name, speed in speeds.items())
        sys.stderr.write(f"round {len(measured)} of {rounds}: {each} steps per second\n")
    return {
        "env": config.env.id,
        "image": list(config.policy.image_shape),
        "patches": patches,
        "training_over_bare": median(speeds["one_worker"] / speeds["bare"] for speeds in measured),
        "two_over_one": median(speeds["two_workers"] / speeds["one_worker"] for speeds in measured),
        "steps_per_second": {mode: median(speeds[mode] for speeds in measured) for mode in MODES},
        "rounds": measured,
    }


def measure(config: TrainConfig, cores: list[int] | None, rounds: int, turn_s: float) -> Iterator[dict[str, float]]:
    """Steps per second of each mode, round by round, after a first turn to warm up."""
    one, two = (None, None) if cores is None else (cores[:1], cores)
    with (
        closing(_random_steps(config)) as bare,
        LocalPool(config.job, 1, cores=one) as single,
        LocalPool(config.job, 2, cores=two) as double,
    ):
        advances = dict(
            zip(MODES, (lambda: next(bare), _generations(config, single), _generations(config, double)), strict=True)
        )
        for advance in advances.values():
            advance()
        for _ in range(rounds):
            yield {mode: _speed(advance, turn_s) for mode, advance in advances.items()}


def _speed(advance: Advance, turn_s: float) -> float:
    steps, start = 0, time.perf_counter()
    while time.perf_counter() - start < turn_s:
        steps += advance()
    return steps / (time.perf_counter() - start)


def _generations(config: TrainConfig, pool: Pool) -> Advance:
    """Whole generations of training, from ask to tell, without evaluation or initialisation."""
    config = replace(
        config,
        iterations=NEVER,
        evaluate_every=NEVER,
        random_search=0,
        pretraining=None,
        warm_start=None,
        freeze_normaliser=False,
    )
    progress = initialize(config, pool)

    def advance() -> int:
        nonlocal progress
        progress, row = step(config, pool, progress)
        return row["steps"]

    return advance


def _random_steps(config: TrainConfig) -> Generator[int, None, None]:
    """Whole episodes of the environment alone, with random actions and the same rendering; yields their lengths."""
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
    """Two cores that this process may use, first that of `run_on_one_core`; None on systems without this choice."""
    if not hasattr(os, "sched_getaffinity"):
        return None
    return sorted(os.sched_getaffinity(0), reverse=True)[:2]


if __name__ == "__main__":
    request = json.load(sys.stdin)
    for speeds in measure(config_from_json(request.pop("config")), **request):
        send(speeds)
