"""docs/obstacle-course.md with its plots, from the runs in benchmarks/results/obstacle_course alone.

Run it: python benchmarks/obstacle_course.py [--measure]

--measure first runs what is slow and depends on the trained policies: controls, and what they attend to.
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent))

from report import DOCS, RESULTS, markdown, write
from studies.obstacle_course import ARMS, PAPER, SIZES

from iap.experiments.attended import attended
from iap.experiments.config import fitted_to_env
from iap.experiments.controls import run_controls
from iap.experiments.evaluate import evaluate, find_policy, job_of
from iap.experiments.reports import write_json
from iap.experiments.run_directory import RunDirectory
from iap.policies import describe
from iap.rollouts import LocalPool
from iap.viz.curves import plot_curves

RUNS = RESULTS / "obstacle_course"
SEEDS = (0, 1, 2)
EPISODES, ATTENDED_EPISODES = 100, 10
MAIN = "patch-1-1"


def runs_of(arm: str) -> list[Path]:
    """The finished runs of an arm."""
    return [path for seed in SEEDS if (path := RUNS / f"{arm}-seed{seed}").joinpath("evaluation.json").exists()]


def returns_of(arm: str, file: str = "evaluation.json") -> list[dict]:
    return [json.loads((path / file).read_text()) for path in runs_of(arm)]


def best_run(arm: str) -> Path:
    return max(runs_of(arm), key=lambda path: json.loads((path / "evaluation.json").read_text())["mean"])


def measure() -> None:
    """Controls and attended things of the best policy, and what its screening alone had come to."""
    best = best_run(MAIN)
    policy, _ = find_policy(str(best))
    blind, _ = find_policy(str(best_run("blind")))
    write_json(run_controls(policy, LocalPool, EPISODES, blind=blind, report=print), RUNS / "controls.json")
    write_json(attended(policy, ATTENDED_EPISODES), RUNS / "attended.json")
    for path in runs_of(MAIN):
        screened, _ = find_policy(str(path / "screened.policy"))
        with LocalPool(job_of(screened)) as pool:
            write_json(evaluate(screened, pool, EPISODES, seed=0), path / "screened.json")


def spread(results: list[dict]) -> list[object]:
    """Mean over the seeds, the best seed, and each seed with its interval."""
    means = [result["mean"] for result in results]
    each = ", ".join(f"{result['mean']:.2f} ± {result['ci95']:.2f}" for result in results)
    return [
        f"{np.mean(means):.2f}",
        f"{max(means):.2f}",
        f"{max(max(result['returns']) for result in results):.1f}",
        each,
    ]


def sizes() -> str:
    lines = []
    for patch, stride in SIZES:
        arm = f"patch-{patch}-{stride}"
        parts = describe(fitted_to_env(ARMS[arm]).policy)
        line = [f"{patch}/{stride}", parts.parts["vision"], parts.total]
        lines.append([*line, *spread(returns_of(arm)), f"{PAPER[f'{patch}/{stride}']:.1f}"])
    heads = ["patch/stride", "vision", "all", "mean", "best seed", "best course", "each seed", "paper, best"]
    return markdown(heads, lines)


def arms() -> str:
    lines = []
    for arm in (MAIN, "cnn", "blind", "unmirrored"):
        parts = describe(fitted_to_env(ARMS[arm]).policy)
        lines.append([arm, parts.parts.get("vision", 0), parts.total, *spread(returns_of(arm))])
    parts = describe(fitted_to_env(ARMS[MAIN]).policy)
    lines.insert(1, ["screening alone", parts.parts["vision"], parts.total, *spread(returns_of(MAIN, "screened.json"))])
    return markdown(["policy", "vision", "all", "mean", "best seed", "best course", "each seed"], lines)


def controls() -> str:
    rows = json.loads((RUNS / "controls.json").read_text())
    lines = [[row["control"], f"{row['mean']:.2f} ± {row['ci95']:.2f}", row["share"], row["what"]] for row in rows]
    return markdown(["control", "return", "share", "what"], lines)


def things() -> str:
    rows = json.loads((RUNS / "attended.json").read_text())
    told = [row for row in rows if row["attention"] >= 0.01 or row["area"] >= 0.01]
    lines = [[row["thing"], f"{row['attention']:.1%}", f"{row['area']:.1%}", row["times_chance"]] for row in told]
    return markdown(["what", "of attention", "of the image", "times chance"], lines)


def plot() -> None:
    shown = {"IAP, patch 1": MAIN, "CNN": "cnn", "blind": "blind", "IAP, not mirrored": "unmirrored"}
    curves = {label: [RunDirectory(path).read_metrics() for path in runs_of(arm)] for label, arm in shown.items()}
    plot_curves(
        {label: seeds for label, seeds in curves.items() if seeds}, DOCS / "images" / "obstacle-course-curves.png"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true")
    if parser.parse_args().measure:
        measure()
    plot()
    write("obstacle-course.md", sizes=sizes(), arms=arms(), controls=controls(), attended=things())


if __name__ == "__main__":
    main()
