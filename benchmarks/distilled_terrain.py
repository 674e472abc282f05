"""Write docs/distillation.md from the runs in benchmarks/results/distilled_terrain.

Run it: python benchmarks/distilled_terrain.py [--measure ARM ...]

--measure first runs the ablations of these policies and films an episode of each.
"""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from animation import write_animation
from pages import markdown, write_page
from runs import EPISODES, Runs, ablations_table
from studies import distilled_suite as suite_study
from studies.distilled_terrain import ARMS, TERRAINS

from iap.cli.tables import write_json
from iap.evaluation.ablations import run_ablations
from iap.policies import describe
from iap.rollouts import LocalPool
from iap.training.config import fit_to_env

RUNS, ORACLE = Runs("distilled_terrain", (0, 1, 2)), Runs("terrain", ())
SUITE, TEACHERS = Runs("distilled_suite", (0, 1, 2)), Runs("teachers", (0,))
VIDEO_SEED, VIDEO_STEPS, VIDEO_EVERY, STEP_MS = 3, 160, 2, 50


def measure(arm: str) -> None:
    """Ablations of the best policy of an arm."""
    blind = f"{arm.removesuffix('-trans')}-blind"
    given = RUNS.best_policy(blind) if RUNS.paths(blind) else None
    rows = run_ablations(RUNS.best_policy(arm), LocalPool, EPISODES, blind=given, report=print)
    write_json(rows, RUNS.folder / f"ablations-{arm}.json")


def animate(arm: str) -> None:
    """An episode of the best policy of an arm."""
    write_animation(RUNS.best_policy(arm), arm, VIDEO_SEED, VIDEO_STEPS, VIDEO_EVERY, STEP_MS)


def suite() -> str:
    """Returns of the suite's distilled policies beside their teachers'."""
    lines = []
    for arm in filter(SUITE.paths, suite_study.ARMS):
        [teacher] = TEACHERS.evaluations(f"{arm}-state-teacher")
        sizes = describe(fit_to_env(suite_study.ARMS[arm]).policy)
        each = ", ".join(f"{result['mean']:.0f} ± {result['ci95']:.0f}" for result in SUITE.evaluations(arm))
        cpu = [result["cpu_minutes"] for result in SUITE.evaluations(arm, "cost.json")]
        minutes = f"{sum(cpu) / len(cpu):.0f}"
        lines.append([arm, sizes.parts["encoder"], sizes.total, minutes, f"{teacher['mean']:.0f}", each])
    return markdown(["task", "encoder parameters", "all parameters", "CPU minutes", "teacher", "each seed"], lines)


def arms() -> str:
    """Returns of all arms that have run, beside the oracle's."""
    oracle = {row["terrain"]: row["mean"] for row in ORACLE.read("baselines.json") if row["baseline"] == "oracle"}
    lines = []
    for arm in filter(RUNS.paths, ARMS):
        results = RUNS.evaluations(arm)
        means = [result["mean"] for result in results]
        terrain = next(name for name in TERRAINS if arm.startswith(name))
        sizes = describe(fit_to_env(ARMS[arm]).policy)
        each = ", ".join(f"{result['mean']:.2f} ± {result['ci95']:.2f}" for result in results)
        mean = sum(means) / len(means)
        share = f"{mean / oracle[terrain]:.2f}"
        lines.append([arm, sizes.parts.get("encoder", 0), sizes.total, f"{mean:.2f}", share, each])
    header = ["policy", "encoder parameters", "all parameters", "mean return", "share of the oracle's", "each seed"]
    return markdown(header, lines)


def ablations() -> str:
    """The ablations of all arms that were measured."""
    measured = [arm for arm in ARMS if (RUNS.folder / f"ablations-{arm}.json").exists()]
    return "\n".join(f"### {arm}\n\n{ablations_table(RUNS.read(f'ablations-{arm}.json'))}" for arm in measured)


def main() -> None:
    """Measure if requested, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", nargs="*", metavar="ARM", help="arms to measure")
    for arm in parser.parse_args().measure or ():
        measure(arm)
        animate(arm)
    write_page("distillation.md", episodes=EPISODES, arms=arms(), suite=suite(), ablations=ablations())


if __name__ == "__main__":
    main()
