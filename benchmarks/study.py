"""Train and evaluate the arms of a study with several seeds; finished runs are skipped.

Run it: python benchmarks/study.py obstacle_course [--arms patch-1-1 cnn] [--seeds 0 1 2] [--workers 2]

A study is a module in benchmarks/studies. It defines ARMS, training configurations by name, and may define:

- WARM_STARTS: the arm whose run is the warm start of another arm;
- EVALUATE_WITH: environment options for the evaluation;
- EVALUATE_FROM: the first seed of the evaluation.

The configuration, metrics and policies of a run and its return over 100 held-out episodes go to
benchmarks/results/STUDY/ARM-seedN.
"""

import argparse
import importlib
import json
import os
import resource
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from iap.cli.tables import write_json
from iap.evaluation.evaluate import evaluate, policy_job
from iap.rollouts import LocalPool
from iap.training.config import TrainConfig
from iap.training.sweep import train_to_end
from iap.zoo.locate import locate_policy

RESULTS = Path(__file__).parent / "results"
EPISODES = 100


def run_arm(name: str, config: TrainConfig, path: Path, workers: int, env_options: Mapping, first_seed: int) -> dict:
    """Finish the training of a run and evaluate its best policy."""
    before = cpu_minutes()
    train_to_end(
        config,
        path,
        lambda job: LocalPool(job, workers),
        lambda row: print(f"{name}: {progress(row)}", flush=True),
        on_start=Start(name),
    )
    cost = path / "cost.json"
    if not cost.exists():
        write_json({"cpu_minutes": round(cpu_minutes() - before, 1)}, cost)
    evaluation = path / "evaluation.json"
    if not evaluation.exists():
        policy, _ = locate_policy(str(path), env_options=env_options)
        with LocalPool(policy_job(policy), workers) as pool:
            write_json(evaluate(policy, pool, EPISODES, first_seed).to_json(), evaluation)
    return json.loads(evaluation.read_text())


class Start:
    """Prints what is done before the first iteration, once for each hundredth of it."""

    def __init__(self, name: str) -> None:
        self._name, self._printed = name, -1

    def __call__(self, what: str, share: float) -> None:
        if int(100 * share) != self._printed:
            self._printed = int(100 * share)
            print(f"{self._name}: {share:.0%} {what}", flush=True)


def cpu_minutes() -> float:
    """Minutes of CPU time of this process and its workers that have ended."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used) / 60


def progress(row: Mapping) -> str:
    """A row of metrics on one line."""
    names = ("iteration", "episodes", "best", "mean", "held_out", "seconds")
    return "  ".join(f"{name} {row[name]:.4g}" for name in names if row.get(name))


def main() -> None:
    """Run the requested arms: all arms with the first seed, then all arms with the next."""
    sys.path.insert(0, str(Path(__file__).parent))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study")
    parser.add_argument("--arms", nargs="*")
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--workers", type=int, default=2)
    args = parser.parse_args()
    study = importlib.import_module(f"studies.{args.study}")
    warm_starts: dict[str, str] = getattr(study, "WARM_STARTS", {})
    env_options, first_seed = getattr(study, "EVALUATE_WITH", {}), getattr(study, "EVALUATE_FROM", 0)
    for seed in args.seeds:
        for name in args.arms or study.ARMS:
            path = RESULTS / args.study / f"{name}-seed{seed}"
            config = replace(study.ARMS[name], seed=seed)
            if name in warm_starts:
                start = path.with_name(f"{warm_starts[name]}-seed{seed}")
                config = replace(config, warm_start=os.path.relpath(start))
            result = run_arm(f"{name} seed {seed}", config, path, args.workers, env_options, first_seed)
            print(f"{name} seed {seed}: {result['mean']:.4g} ± {result['ci95']:.2g}", flush=True)


if __name__ == "__main__":
    main()
