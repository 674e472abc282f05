"""docs/obstacle-course.md with its plots, from the runs in benchmarks/results/obstacle_course alone.

Run it: python benchmarks/obstacle_course.py [--measure]

--measure first runs what is slow and depends on the trained policies: controls, what they attend to, and films.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).parent))

from episode_profile import profile
from report import DOCS, markdown, write
from runs import EPISODES, SPREAD, Runs, attended_table, controls_table, frames_of, spread
from studies.obstacle_course import ARMS, PAPER, PRESET_SEEDS, SEEDS, SIZES

from iap.evaluation.attention_statistics import attended
from iap.training.config import fitted_to_env
from iap.evaluation.ablations import run_ablations
from iap.cli.tables import write_json
from iap.policies import describe
from iap.rollouts import LocalPool

ATTENDED_EPISODES = 10
FILM_SEED, FILM_STEPS, FILM_EVERY, MOMENT = 1, 240, 4, 150
BEST, MAIN = "iap", "patch-1-1"  # with the preset's budget, and with that of the other arms
RUNS = Runs("obstacle_course", SEEDS, {BEST: PRESET_SEEDS})
IMAGES = DOCS / "images"


def measure() -> None:
    """Controls and attended things of the best policy, and what its screening alone had come to."""
    policy = RUNS.build_policy(BEST)
    rows = run_ablations(policy, LocalPool, EPISODES, blind=RUNS.build_policy("blind"), report=print)
    write_json(rows, RUNS.folder / "controls.json")
    write_json(attended(policy, ATTENDED_EPISODES), RUNS.folder / "attended.json")
    write_json(profile(policy), RUNS.folder / "profile.json")
    for arm in (BEST, MAIN):
        RUNS.evaluate_screened(arm)


def film() -> None:
    """An episode of the best policy, and the same moment of it and of one that sees patches of 16 × 16."""
    seen = {arm: frames_of(RUNS.build_policy(arm), FILM_SEED, FILM_STEPS) for arm in (BEST, "patch-16-16")}
    Image.fromarray(seen[BEST][MOMENT]).save(IMAGES / "obstacle-course.png", optimize=True)
    beside = np.concatenate([frames[MOMENT] for frames in seen.values()], axis=1)
    Image.fromarray(beside).save(IMAGES / "obstacle-course-patches.png", optimize=True)
    small = [Image.fromarray(frame).resize((320, 260)).quantize(64) for frame in seen[BEST][::FILM_EVERY]]
    film_ms = 20 * FILM_EVERY
    small[0].save(IMAGES / "obstacle-course.gif", save_all=True, append_images=small[1:], duration=film_ms, loop=0)


def sizes() -> str:
    lines = []
    for patch, stride in SIZES:
        arm = f"patch-{patch}-{stride}"
        parts = describe(fitted_to_env(ARMS[arm]).policy)
        line = [f"{patch}/{stride}", parts.parts["encoder"], parts.total]
        lines.append([*line, *spread(RUNS.returns_of(arm)), f"{PAPER[f'{patch}/{stride}']:.1f}"])
    heads = ["patch/stride", "encoder", "all", *SPREAD, "paper, best"]
    return markdown(heads, lines)


def arms() -> str:
    lines = []
    for arm in (MAIN, "cnn", "blind", "unmirrored"):
        parts = describe(fitted_to_env(ARMS[arm]).policy)
        lines.append([arm, parts.parts.get("encoder", 0), parts.total, *spread(RUNS.returns_of(arm))])
    parts = describe(fitted_to_env(ARMS[MAIN]).policy)
    lines.insert(
        1, ["screening alone", parts.parts["encoder"], parts.total, *spread(RUNS.returns_of(MAIN, "screened.json"))]
    )
    return markdown(["policy", "encoder", "all", *SPREAD], lines)


def preset_rows() -> str:
    parts = describe(fitted_to_env(ARMS[BEST]).policy)
    lines = [
        [name, parts.total, *spread(RUNS.returns_of(BEST, file))]
        for name, file in (("screening alone", "screened.json"), ("trained", "evaluation.json"))
    ]
    return markdown(["policy", "parameters", *SPREAD], lines)


def sizes_said() -> str:
    """Which size did best here, and where single pixels stand."""
    returns = {f"{p}/{s}": [r["mean"] for r in RUNS.returns_of(f"patch-{p}-{s}")] for p, s in SIZES}
    means = {size: float(np.mean(seeds)) for size, seeds in returns.items()}
    order = sorted(means, key=lambda size: -means[size])
    widest = max(max(seeds) - min(seeds) for seeds in returns.values())
    return (
        f"By the mean over seeds, the order here is {', '.join(order)}: single pixels are number "
        f"{order.index('1/1') + 1} of {len(order)}, in the paper number 1. The best and the worst size are "
        f"{means[order[0]] - means[order[-1]]:.1f} apart, and seeds of one size up to {widest:.1f}."
    )


def arms_said() -> str:
    """How IAP and the CNN compare, and by how much seeds differ."""
    iap, cnn = ([result["mean"] for result in RUNS.returns_of(arm)] for arm in (MAIN, "cnn"))
    widest = max(max(seeds) - min(seeds) for seeds in (iap, cnn))
    apart = abs(np.mean(iap) - np.mean(cnn))
    return (
        f"At this budget the means over seeds are {np.mean(iap):.2f} for IAP and {np.mean(cnn):.2f} for the CNN, "
        f"{apart:.2f} apart, where seeds of one kind differ by up to {widest:.1f}"
        + (": three seeds do not tell them apart." if apart < widest else ".")
    )


def speed() -> str:
    rows = RUNS.read("profile.json")
    parts = {"policy": "policy_ms", "camera": "camera_ms", "physics, gait and sensors": "environment_ms"}
    lines = [[name, rows[key], f"{rows[key] / rows['whole_ms']:.0%}"] for name, key in parts.items()]
    table = markdown(["part", "ms", "share"], [*lines, ["all", rows["whole_ms"], ""]])
    return (
        f"Processor time of 500 steps (10 s) with {rows['looks']:.0f} looks, one core, median of {rows['episodes']} "
        f"episodes, from `python benchmarks/episode_profile.py zoo:obstacle-course`: {rows['episodes_per_second']:.1f} "
        f"full episodes a second, {1 - rows['policy_ms'] / rows['whole_ms']:.0%} of what the bare environment does "
        f"with the same actions and looks.\n\n{table}"
    )


def plot() -> None:
    shown = {
        "IAP, patch 1, the preset's budget": BEST,
        "IAP, patch 1": MAIN,
        "CNN": "cnn",
        "blind": "blind",
        "IAP, not mirrored": "unmirrored",
    }
    RUNS.plot(shown, IMAGES / "obstacle-course-curves.png")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true")
    if parser.parse_args().measure:
        measure()
        film()
    plot()
    iap, cnn = (describe(fitted_to_env(ARMS[arm]).policy) for arm in (MAIN, "cnn"))
    write(
        "obstacle-course.md",
        preset=ARMS[BEST],
        base=ARMS[MAIN],
        others=" ".join(arm for arm in ARMS if arm != BEST),
        preset_rows=preset_rows(),
        sizes=sizes(),
        sizes_said=sizes_said(),
        arms=arms(),
        arms_said=arms_said(),
        cnn_ratio=cnn.parts["encoder"] / iap.parts["encoder"],
        cnn_ratio_all=cnn.total / iap.total,
        controls=controls_table(RUNS.read("controls.json")),
        attended=attended_table(RUNS.read("attended.json")),
        attended_episodes=ATTENDED_EPISODES,
        speed=speed(),
    )


if __name__ == "__main__":
    main()
