"""How much of the bare environment's speed training keeps, and what a second worker brings."""

import json
import sys
import time
from typing import Any

import numpy as np

from iap.envs.contract import to_action
from iap.evolution import ask, tell
from iap.experiments.config import TrainConfig, config_from_json, config_to_json, fitted_to_env
from iap.experiments.one_core import answer, on_one_core
from iap.experiments.train import begin, gather, mean_return
from iap.rollouts import LocalPool, Pool

BARE_SECONDS = 10.0


def bench_rollouts(config: TrainConfig, generations: int = 2) -> dict[str, Any]:
    """The ratios, from one run: `training_over_bare` on one core, and `two_over_one` workers."""
    config = fitted_to_env(config)
    speeds = {}
    [speeds["bare"]] = on_one_core(__name__, question=config_to_json(config))
    for name, workers in (("one_worker", 1), ("two_workers", 2)):
        with LocalPool(config.job, workers) as pool:
            speeds[name] = training_speed(config, pool, generations)
    return {
        "env": config.env.id,
        "image": list(config.policy.image_shape),
        "training_over_bare": speeds["one_worker"] / speeds["bare"],
        "two_over_one": speeds["two_workers"] / speeds["one_worker"],
        "steps_per_second": speeds,
    }


def training_speed(config: TrainConfig, pool: Pool, generations: int) -> float:
    """Steps a second of whole generations, from ask to tell; a first one, which warms up, does not count."""
    progress = begin(config, pool)
    search, normaliser = progress.search, progress.normaliser
    steps, begun = 0, 0.0
    for generation in range(generations + 1):
        if generation == 1:
            steps, begun = 0, time.perf_counter()
        thetas, search = ask(search)
        results = pool.evaluate(thetas, [range(config.episodes)] * len(thetas), normaliser)
        search = tell(search, thetas, np.array([mean_return(episodes) for episodes in results]))
        ran = [episode for episodes in results for episode in episodes]
        normaliser = gather(normaliser, ran)
        steps += sum(episode.steps for episode in ran)
    return steps / (time.perf_counter() - begun)


def bare_speed(config: TrainConfig, seconds: float = BARE_SECONDS) -> float:
    """Steps a second of the environment alone, with random actions and the same rendering."""
    env = config.env.make()
    raw = np.random.default_rng(0).uniform(-1, 1, (256, config.policy.actions)).astype(np.float32)
    actions = [to_action(env.action_space, x) for x in raw]
    env.reset(seed=0)
    taken, since_reset, begun = 0, 0, 0.0
    while begun == 0.0 or time.perf_counter() - begun < seconds:
        if taken == len(actions) and begun == 0.0:  # warm
            taken, begun = 0, time.perf_counter()
        _, _, terminated, truncated, _ = env.step(actions[taken % len(actions)])
        taken, since_reset = taken + 1, since_reset + 1
        if terminated or truncated or since_reset == config.max_steps:
            env.reset(seed=taken)
            since_reset = 0
    speed = taken / (time.perf_counter() - begun)
    env.close()
    return speed


if __name__ == "__main__":
    answer(bare_speed(config_from_json(json.load(sys.stdin))))
