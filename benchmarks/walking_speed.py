"""Time of model-predictive control and of an episode on uneven terrain, by part, on one core.

Run it on a quiet machine: taskset -c 0 python benchmarks/walking_speed.py

The results go to benchmarks/results/terrain/speed.json; benchmarks/terrain.py writes them into the page.
"""

import os
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

os.environ.update(OMP_NUM_THREADS="1", LP_NUM_THREADS="0")

import numpy as np

from iap.cli.tables import write_json
from iap.evaluation.evaluate import policy_job
from iap.policies import Policy
from iap.rollouts import run_episode
from iap.zoo.locate import locate_policy

OUT = Path(__file__).parent / "results" / "terrain" / "speed.json"
TERRAINS = ("step-stones", "stone-grid", "stairs")
FIRST_SEED, EPISODES = 1000, 10
TEN_SECONDS = 200  # actions, each with an image


class Timer:
    """Replaces a method of an object and times its calls."""

    def __init__(self, owner: Any, name: str) -> None:
        self._call: Callable = getattr(owner, name)
        self.seconds: list[float] = []
        setattr(owner, name, self)

    def __call__(self, *args: Any) -> Any:
        """Call the method."""
        start = perf_counter()
        try:
            return self._call(*args)
        finally:
            self.seconds.append(perf_counter() - start)

    def take(self) -> float:
        """The sum of the calls since the last `take`."""
        total = sum(self.seconds)
        self.seconds.clear()
        return total


def measure(terrain: str) -> dict[str, Any]:
    """Milliseconds of one MPC solution and of ten simulated seconds by part, medians over episodes."""
    policy, _ = locate_policy(f"zoo:{terrain}-single-foot")
    env = policy_job(policy).env.make()
    task: Any = env.unwrapped
    actor = Policy.of(policy)
    mpc, locomotion = Timer(task.walker.mpc, "forces"), Timer(task.walker, "step")
    physics, cameras = Timer(task._simulator, "step"), Timer(task._cameras, "window")
    environment = Timer(task, "step")
    solutions, rows = [], []
    for seed in range(FIRST_SEED, FIRST_SEED + EPISODES + 1):
        start = perf_counter()
        episode = run_episode(env, actor, seed)
        total = perf_counter() - start
        solved = list(mpc.seconds)
        parts = [timer.take() for timer in (mpc, locomotion, physics, cameras, environment)]
        if seed > FIRST_SEED:  # the first episode compiles
            solutions += solved
            rows.append([1000 * TEN_SECONDS / episode.steps * part for part in (total, *parts)])
    env.close()
    total, mpc_ms, locomotion_ms, physics_ms, cameras_ms, env_ms = map(median, zip(*rows, strict=True))
    return {
        "terrain": terrain,
        "mpc_median_ms": 1000 * float(np.median(solutions)),
        "mpc_p99_ms": 1000 * float(np.quantile(solutions, 0.99)),
        "solutions": len(solutions),
        "total_ms": total,
        "mpc_ms": mpc_ms,
        "other_locomotion_ms": locomotion_ms - mpc_ms,
        "physics_ms": physics_ms,
        "cameras_ms": cameras_ms,
        "other_environment_ms": env_ms - locomotion_ms - physics_ms - cameras_ms,
        "policy_ms": total - env_ms,
        "episodes": EPISODES,
    }


def main() -> None:
    """Measure all terrains."""
    rows = [measure(terrain) for terrain in TERRAINS]
    for row in rows:
        print("  ".join(f"{key} {value:.4g}" if isinstance(value, float) else f"{value}" for key, value in row.items()))
    write_json(rows, OUT)


if __name__ == "__main__":
    main()
