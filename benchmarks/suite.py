"""Write docs/distracting-suite.md with its plots from the runs in benchmarks/results/suite.

Run it: python benchmarks/suite.py [--measure [TASK ...]]

--measure first runs the slow measurements on the trained policies of the given tasks (all tasks by default): ablations,
returns on the training backgrounds, attention statistics and animations.
"""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import intro
import sweep
from animation import write_animation
from pages import IMAGES, RESULTS, markdown, write_page
from runs import EPISODES, Runs, ablations_table, attention_table
from studies.suite import ARMS, EARLIER_RUN, EVALUATE_WITH, SEEDS, TASKS

from iap.cli.tables import write_json
from iap.evaluation.ablations import run_ablations
from iap.evaluation.attention_statistics import attention_statistics
from iap.evaluation.evaluate import evaluate, policy_job
from iap.policies import describe
from iap.rollouts import LocalPool
from iap.training.config import fit_to_env

RUNS = Runs("suite", SEEDS)
ATTENTION_EPISODES = 10
VIDEO_STEPS, VIDEO_EVERY, STEP_MS = 120, 3, 40
# Episodes in which the insets of the video do not cover the robot.
VIDEO_SEEDS = {
    "ball_in_cup-catch": 1,
    "cartpole-swingup": 3,
    "cheetah-run": 1,
    "finger-spin": 8,
    "reacher-easy": 39,
    "walker-walk": 1,
}
# Suffixes of a task's arms, in the order of the table.
VARIANTS = (
    "",
    "-cnn",
    "-blind",
    "-teacher",
    "-noisy-teacher",
    "-es-pretraining",
    "-es-pretraining-native",
    "-es-pretraining-cnn",
    "-es-pretraining-blind",
    "-native",
    "-no-pretraining",
    "-no-pretraining-cnn",
    "-no-pretraining-blind",
    "-plain",
    "-plain-cnn",
)


def trained_tasks() -> list[str]:
    """The tasks with a trained policy."""
    return [task for task in TASKS if RUNS.paths(task)]


def measure(task: str) -> None:
    """Ablations, attention statistics, return on the training backgrounds and animation of a task's best policy."""
    policy, blind = RUNS.best_policy(task, EVALUATE_WITH), f"{task}-blind"
    blind_policy = RUNS.best_policy(blind, EVALUATE_WITH) if RUNS.paths(blind) else None
    rows = run_ablations(policy, LocalPool, EPISODES, blind=blind_policy, report=print)
    write_json(rows, RUNS.folder / f"ablations-{task}.json")
    write_json(attention_statistics(policy, ATTENTION_EPISODES), RUNS.folder / f"attention-{task}.json")
    in_training_env = RUNS.best_policy(task)
    with LocalPool(policy_job(in_training_env)) as pool:
        result = evaluate(in_training_env, pool, EPISODES).to_json()
    write_json(result, RUNS.folder / f"train-backgrounds-{task}.json")
    animate(task)


def animate(task: str) -> None:
    """The first steps of an episode of a task's best policy."""
    policy = RUNS.best_policy(task, EVALUATE_WITH)
    write_animation(policy, task, VIDEO_SEEDS[task], VIDEO_STEPS, VIDEO_EVERY, STEP_MS)


def arms() -> str:
    """Returns of all arms on held-out backgrounds, by task."""
    lines = []
    for task in trained_tasks():
        for arm in (task + variant for variant in VARIANTS if task + variant in ARMS and RUNS.paths(task + variant)):
            sizes = describe(fit_to_env(ARMS[arm]).policy)
            each = ", ".join(f"{result['mean']:.0f} ± {result['ci95']:.0f}" for result in RUNS.evaluations(arm))
            lines.append([arm, sizes.parts.get("encoder", 0), sizes.total, training_episodes(arm), each])
    header = ["policy", "encoder parameters", "all parameters", "training episodes", "return of each seed"]
    return markdown(header, lines)


def training_episodes(arm: str) -> int:
    """Training episodes of the best seed's run and of the run before it."""
    episodes = RUNS.metrics(arm)[-1]["episodes"]
    return episodes + (training_episodes(EARLIER_RUN[arm]) if arm in EARLIER_RUN else 0)


def pretraining() -> str:
    """R² of the keypoints, before and after pretraining."""
    lines = []
    for task in trained_tasks():
        facts = RUNS.best_policy(task).facts.get("pretrained")
        if facts is not None:
            lines.append([task, f"{facts['r2_initial']:.2f}", f"{facts['r2_pretrained']:.2f}"])
    return markdown(["task", "R² before", "R² after"], lines)


def generalisation() -> str:
    """Returns of each task's best policy on both sets of backgrounds."""
    lines = []
    for task in trained_tasks():
        train, held_out = RUNS.read(f"train-backgrounds-{task}.json"), RUNS.read(f"ablations-{task}.json")[0]
        returns = [f"{result['mean']:.0f} ± {result['ci95']:.0f}" for result in (train, held_out)]
        lines.append([task, *returns, f"{held_out['mean'] / train['mean']:.0%}"])
    return markdown(["task", "training backgrounds", "held-out backgrounds", "ratio"], lines)


def frames() -> str:
    """Time of a step with its frame, here and in dm_control."""
    rows = json.loads((RESULTS / "frames.json").read_text())
    names = ["size", "distractions", "frame_ms", "dm_control_ms", "ratio"]
    return markdown([name.replace("_", " ") for name in names], [[row[name] for name in names] for row in rows])


def rollout_share(distractions: str) -> str:
    """Steps per second of training as a share of the environment's own."""
    return f"{json.loads((RESULTS / f'rollouts-240x320-{distractions}.json').read_text())['training_over_bare']:.0%}"


def per_task(file: str, table: Callable[[list[dict]], str]) -> str:
    """A table for each task with a trained policy."""
    return "\n".join(f"### {task}\n\n{table(RUNS.read(f'{file}-{task}.json'))}" for task in trained_tasks())


def main() -> None:
    """Measure if requested, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", nargs="*", metavar="TASK")
    requested = parser.parse_args().measure
    for task in [] if requested is None else requested or trained_tasks():
        measure(task)
    intro.plot()
    points = sweep.rows()
    sweep.plot(points)
    RUNS.plot({task: task for task in trained_tasks()}, IMAGES / "suite-curves.png")
    write_page(
        "distracting-suite.md",
        episodes=EPISODES,
        arms=arms(),
        pretraining=pretraining(),
        generalisation=generalisation(),
        ablations=per_task("ablations", ablations_table),
        attention=per_task("attention", attention_table),
        attention_episodes=ATTENTION_EPISODES,
        intro=intro.table(),
        sweep=sweep.table(points),
        sweep_seeds=" ".join(map(str, sweep.SEEDS)),
        sweep_episodes=sweep.training_episodes(),
        frames=frames(),
        share_plain=rollout_share("plain"),
        share_distracted=rollout_share("distracted"),
        videos="\n".join(f"![{task}; selected patches in red](images/{task}.gif)" for task in trained_tasks()),
    )


if __name__ == "__main__":
    main()
