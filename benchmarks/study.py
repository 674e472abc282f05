"""Train and measure the arms of a study, each with several seeds; what is there already is not done again.

Run it: python benchmarks/study.py obstacle_course [--arms patch-1 cnn] [--seeds 0 1 2] [--workers 2]

A study is a module in benchmarks/studies with ARMS, a training config by name; it may have STARTS_FROM (the arm that
an arm goes on from), EVALUATE_WITH (options of the environment that policies are evaluated in) and EVALUATE_FROM (the
first of the seeds that they are evaluated on). Each run's config, curve, best policy and return over 100 episodes that
training never saw go to benchmarks/results/STUDY/ARM-seedN.
"""

import argparse
import importlib
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from iap.training.config import TrainConfig
from iap.evaluation.evaluate import evaluate, locate_policy, policy_job
from iap.cli.tables import write_json
from iap.training.sweep import train_the_rest
from iap.rollouts import LocalPool

RESULTS = Path(__file__).parent / "results"
EPISODES = 100


def run_arm(name: str, config: TrainConfig, path: Path, workers: int, env_options: Mapping, first_seed: int) -> dict:
    """Train what is left to train of a run, then evaluate its best policy."""
    train_the_rest(
        config,
        path,
        lambda job: LocalPool(job, workers),
        lambda row: print(f"{name}: {progress(row)}", flush=True),
    )
    measured = path / "evaluation.json"
    if not measured.exists():
        policy, _ = locate_policy(str(path), env_options=env_options)
        with LocalPool(policy_job(policy), workers) as pool:
            write_json(evaluate(policy, pool, EPISODES, first_seed), measured)
    return json.loads(measured.read_text())


def progress(row: Mapping) -> str:
    """One row of metrics in a line."""
    told = {key: row[key] for key in ("iteration", "episodes", "best", "mean", "held_out", "seconds") if row.get(key)}
    return "  ".join(f"{key} {value:.4g}" for key, value in told.items())


def main() -> None:
    """Run all arms and seeds that were asked for, arm after arm, the first seed of all of them first."""
    sys.path.insert(0, str(Path(__file__).parent))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study")
    parser.add_argument("--arms", nargs="*")
    parser.add_argument("--seeds", nargs="*", type=int, default=[0, 1, 2])
    parser.add_argument("--workers", type=int, default=2)
    asked = parser.parse_args()
    study = importlib.import_module(f"studies.{asked.study}")
    arms: dict[str, TrainConfig] = study.ARMS
    starts, env_options = getattr(study, "STARTS_FROM", {}), getattr(study, "EVALUATE_WITH", {})
    first_seed = getattr(study, "EVALUATE_FROM", 0)
    for seed in asked.seeds:
        for name in asked.arms or arms:
            path = RESULTS / asked.study / f"{name}-seed{seed}"
            config = replace(arms[name], seed=seed)
            if name in starts:
                before = path.parent / f"{starts[name]}-seed{seed}"
                config = replace(config, warm_start=os.path.relpath(before))
            result = run_arm(f"{name} seed {seed}", config, path, asked.workers, env_options, first_seed)
            print(f"{name} seed {seed}: {result['mean']:.4g} ± {result['ci95']:.2g}", flush=True)


if __name__ == "__main__":
    main()
