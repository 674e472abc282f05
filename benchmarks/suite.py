"""docs/distracting-suite.md with its plots, from the runs in benchmarks/results/suite alone.

Run it: python benchmarks/suite.py [--measure [TASK ...]]

--measure first runs what is slow and depends on the trained policies, of these tasks or of all: controls, returns
before the backgrounds of training, what they attend to, and films.
"""

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path

from PIL import Image

sys.path.insert(0, str(Path(__file__).parent))

import intro
import sweep
from report import DOCS, RESULTS, markdown, write
from runs import EPISODES, Runs, attended_table, controls_table, frames_of
from studies.suite import ARMS, BEFORE, CHOSEN, EVALUATE_WITH, SEEDS, TASKS

from iap.evaluation.attention_statistics import attended
from iap.training.config import fitted_to_env
from iap.evaluation.ablations import run_ablations
from iap.evaluation.evaluate import evaluate, locate_policy, policy_job
from iap.cli.tables import write_json
from iap.policies import describe
from iap.rollouts import LocalPool

RUNS = Runs("suite", SEEDS, {})
IMAGES = DOCS / "images"
ATTENDED_EPISODES = 10
FILM_STEPS, FILM_EVERY = 120, 3
# Episodes in which the robot is not behind the insets.
FILM_SEEDS = {
    "ball_in_cup-catch": 1,
    "cartpole-swingup": 3,
    "cheetah-run": 1,
    "finger-spin": 8,
    "reacher-easy": 39,
    "walker-walk": 1,
}
EYES = (
    "-told",
    "-told-roughly",
    "-plain",
    "-plain-cnn",
    "",
    "-taught",
    "-native",
    "-cnn",
    "-blind",
    "-taught-cnn",
    "-taught-blind",
)


def trained() -> list[str]:
    """The tasks that have a trained policy."""
    return [task for task in TASKS if RUNS.of(CHOSEN[task])]


def measure(task: str) -> None:
    """Controls and attended things of a task's best policy, and its return before the backgrounds of training."""
    path, blind = str(RUNS.best_of(CHOSEN[task])), f"{CHOSEN[task]}-blind"
    policy, _ = locate_policy(path, env_options=EVALUATE_WITH)
    eyeless = locate_policy(str(RUNS.best_of(blind)), env_options=EVALUATE_WITH)[0] if RUNS.of(blind) else None
    rows = run_ablations(policy, LocalPool, EPISODES, blind=eyeless, report=print)
    write_json(rows, RUNS.folder / f"controls-{task}.json")
    write_json(attended(policy, ATTENDED_EPISODES), RUNS.folder / f"attended-{task}.json")
    as_trained, _ = locate_policy(path)
    with LocalPool(policy_job(as_trained)) as pool:
        write_json(evaluate(as_trained, pool, EPISODES, seed=0), RUNS.folder / f"training-{task}.json")
    film(task)


def film(task: str) -> None:
    """The beginning of an episode of a task's best policy."""
    policy, _ = locate_policy(str(RUNS.best_of(CHOSEN[task])), env_options=EVALUATE_WITH)
    frames = frames_of(policy, FILM_SEEDS.get(task, 0), FILM_STEPS)[::FILM_EVERY]
    small = [Image.fromarray(frame).resize((256, 208)).quantize(64) for frame in frames]
    small[0].save(IMAGES / f"{task}.gif", save_all=True, append_images=small[1:], duration=120, loop=0)


def arms() -> str:
    """Returns of all arms before held-out backgrounds, task by task."""
    lines = []
    for task in trained():
        for arm in (task + eyes for eyes in EYES if task + eyes in ARMS and RUNS.of(task + eyes)):
            parts = describe(fitted_to_env(ARMS[arm]).policy)
            each = ", ".join(f"{result['mean']:.0f} ± {result['ci95']:.0f}" for result in RUNS.returns_of(arm))
            lines.append([arm, parts.parts.get("encoder", 0), parts.total, budget(arm), each])
    return markdown(["policy", "encoder", "all", "episodes of training", "return of each seed"], lines)


def budget(arm: str) -> int:
    """How many episodes the best seed's run had, with those of the run before it."""
    episodes = RUNS.metrics_of(arm)[-1]["episodes"]
    return episodes + (budget(BEFORE[arm]) if arm in BEFORE else 0)


def taught() -> str:
    """How much the eyes told that were taught, before and after."""
    lines = []
    for task in trained():
        facts = RUNS.build_policy(CHOSEN[task]).facts.get("taught")
        if facts is not None:
            lines.append([task, f"{facts['r2_drawn']:.2f}", f"{facts['r2_taught']:.2f}"])
    return markdown(["task", "best eyes drawn", "taught"], lines)


def generalisation() -> str:
    """Each task's best policy before both kinds of backgrounds."""
    lines = []
    for task in trained():
        seen, unseen = RUNS.read(f"training-{task}.json"), RUNS.read(f"controls-{task}.json")[0]
        returns = [f"{result['mean']:.0f} ± {result['ci95']:.0f}" for result in (seen, unseen)]
        lines.append([task, *returns, f"{unseen['mean'] / seen['mean']:.0%}"])
    return markdown(["task", "backgrounds of training", "held-out backgrounds", "ratio"], lines)


def frames() -> str:
    """What a step with its frame takes, and how often it fits into dm_control's own."""
    rows = json.loads((RESULTS / "frames.json").read_text())
    names = ["size", "look", "frame_ms", "dm_control_ms", "ratio"]
    return markdown([name.replace("_", " ") for name in names], [[row[name] for name in names] for row in rows])


def kept_speed(look: str) -> str:
    """The share of the environment's own speed that training keeps at the suite's own size."""
    return f"{json.loads((RESULTS / f'rollouts-240x320-{look}.json').read_text())['training_over_bare']:.0%}"


def per_task(file: str, table: Callable[[list[dict]], str]) -> str:
    """A table for each task with a trained policy."""
    return "\n".join(f"### {task}\n\n{table(RUNS.read(f'{file}-{task}.json'))}" for task in trained())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", nargs="*", metavar="TASK")
    asked = parser.parse_args().measure
    for task in [] if asked is None else asked or trained():
        measure(task)
    intro.plot()
    swept = sweep.rows()
    sweep.plot(swept)
    RUNS.plot({task: CHOSEN[task] for task in trained()}, IMAGES / "suite-curves.png")
    missing = ", ".join([task for task in TASKS if task not in trained()])
    untrained = ", ".join([arm for arm in ARMS if not RUNS.of(arm)])
    write(
        "distracting-suite.md",
        episodes=EPISODES,
        arms=arms(),
        missing=f"Not learnt yet: {missing}." if missing else "",
        untrained=f"Not trained yet: {untrained}." if untrained else "",
        taught=taught(),
        generalisation=generalisation(),
        controls=per_task("controls", controls_table),
        attended=per_task("attended", attended_table),
        attended_episodes=ATTENDED_EPISODES,
        intro=intro.table(),
        sweep=sweep.table(swept),
        sweep_seeds=" ".join(map(str, sweep.SEEDS)),
        sweep_budget=sweep.budget(),
        frames=frames(),
        kept_plain=kept_speed("plain"),
        kept_distracted=kept_speed("distracted"),
        films="\n".join(f"![{task}, attended patches in red](images/{task}.gif)" for task in trained()),
    )


if __name__ == "__main__":
    main()
