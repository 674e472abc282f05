"""Train and evaluate the state teachers of the Distracting Control Suite; finished runs are skipped.

Run it: python benchmarks/teachers.py [TASK ...] [--seed 0]

The configuration, metrics and policy of a run and its return over 100 held-out episodes go to
benchmarks/results/teachers/NAME-seedN.
"""

import argparse
import json
import sys
import time
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from pages import RESULTS

from iap.cli.tables import write_json
from iap.evaluation.evaluate import evaluate, policy_job
from iap.rollouts import InlinePool
from iap.training.run_directory import RunDirectory
from iap.training.sac.config import SAC
from iap.training.sac.loop import train_sac
from iap.training.sac.presets import TEACHERS, full_name
from iap.zoo.locate import locate_policy

EPISODES = 100


def run_teacher(name: str, seed: int) -> dict:
    """Finish the training of a teacher and evaluate its best policy."""
    path = RESULTS / "teachers" / f"{name}-seed{seed}"
    config = replace(TEACHERS[name], seed=seed)
    run = RunDirectory(path) if (path / "config.json").exists() else RunDirectory.create(path, config)
    if RunDirectory.open(path, SAC)[1] != config:
        raise ValueError(f"{path} holds a run with another config: delete it")
    evaluation = path / "evaluation.json"
    if not evaluation.exists():
        train_sac(config, run, lambda row: print(f"{name}: {progress(row)}", flush=True))
        policy, _ = locate_policy(str(path))
        with InlinePool(policy_job(policy)) as pool:
            write_json(evaluate(policy, pool, EPISODES).to_json(), evaluation)
    return json.loads(evaluation.read_text())


def progress(row: dict) -> str:
    """A row of metrics on one line."""
    names = ("iteration", "episodes", "steps", "mean", "held_out", "seconds")
    return "  ".join(f"{name} {row[name]:.4g}" for name in names if row.get(name) is not None)


def main() -> None:
    """Run the requested teachers, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tasks", nargs="*")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    for name in [full_name(task) for task in args.tasks] or list(TEACHERS):
        before = time.process_time()
        result = run_teacher(name, args.seed)
        cpu_s = time.process_time() - before
        print(f"{name} seed {args.seed}: {result['mean']:.4g} ± {result['ci95']:.2g}, {cpu_s:.0f} CPU s", flush=True)


if __name__ == "__main__":
    main()
