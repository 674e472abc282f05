"""How long model-predictive control and an episode on uneven terrain take on one core, and where the time goes.

Run it on a quiet machine: taskset -c 0 python benchmarks/walking_speed.py

The numbers go to benchmarks/results/terrain/speed.json, from which benchmarks/terrain.py makes the page.
"""

import os
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

os.environ.update(OMP_NUM_THREADS="1", LP_NUM_THREADS="0")

import numpy as np

from iap.evaluation.evaluate import locate_policy, policy_job
from iap.cli.tables import write_json
from iap.policies import build_policy, unflatten
from iap.rollouts import run_episode

OUT = Path(__file__).parent / "results" / "terrain" / "speed.json"
POLICIES = ("step-stones", "stone-grid", "stairs")
FIRST_SEED, EPISODES = 1000, 10
TEN_SECONDS = 200  # actions, each with an image


class Watch:
    """A method that is timed whenever it is called."""

    def __init__(self, owner: Any, name: str) -> None:
        self._call: Callable = getattr(owner, name)
        self.seconds: list[float] = []
        setattr(owner, name, self)

    def __call__(self, *args: Any) -> Any:
        begun = perf_counter()
        try:
            return self._call(*args)
        finally:
            self.seconds.append(perf_counter() - begun)

    def take(self) -> float:
        """The sum since it was last asked."""
        total = sum(self.seconds)
        self.seconds.clear()
        return total


def measure(name: str) -> dict[str, Any]:
    """Milliseconds of a solution of the MPC, and of ten simulated seconds by part, medians over episodes."""
    policy, _ = locate_policy(f"zoo:{name}")
    env = policy_job(policy).env.make()
    task: Any = env.unwrapped
    actor = build_policy(policy.spec, unflatten(policy.spec, policy.theta), policy.normaliser)
    mpc, walker = Watch(task.walker.mpc, "forces"), Watch(task.walker, "step")
    physics, cameras = Watch(task._simulator, "step"), Watch(task._cameras, "around")
    whole_env = Watch(task, "step")
    solutions, rows = [], []
    for seed in range(FIRST_SEED, FIRST_SEED + EPISODES + 1):
        begun = perf_counter()
        episode = run_episode(env, actor, seed)
        whole = perf_counter() - begun
        solved = list(mpc.seconds)
        parts = [watch.take() for watch in (mpc, walker, physics, cameras, whole_env)]
        if seed > FIRST_SEED:  # which compiled what was not yet
            solutions += solved
            rows.append([1000 * TEN_SECONDS / episode.steps * part for part in (whole, *parts)])
    env.close()
    whole, mpc_ms, walker_ms, physics_ms, cameras_ms, env_ms = map(median, zip(*rows, strict=True))
    return {
        "terrain": name,
        "mpc_median_ms": 1000 * float(np.median(solutions)),
        "mpc_p99_ms": 1000 * float(np.quantile(solutions, 0.99)),
        "solutions": len(solutions),
        "ten_seconds_ms": whole,
        "mpc_ms": mpc_ms,
        "rest_of_walker_ms": walker_ms - mpc_ms,
        "physics_ms": physics_ms,
        "cameras_ms": cameras_ms,
        "rest_of_environment_ms": env_ms - walker_ms - physics_ms - cameras_ms,
        "policy_ms": whole - env_ms,
        "episodes": EPISODES,
    }


def main() -> None:
    rows = [measure(name) for name in POLICIES]
    for row in rows:
        print("  ".join(f"{key} {value:.4g}" if isinstance(value, float) else f"{value}" for key, value in row.items()))
    write_json(rows, OUT)


if __name__ == "__main__":
    main()
