"""Write docs/obstacle-course.md with its plots from the runs in benchmarks/results/obstacle_course.

Run it: python benchmarks/obstacle_course.py [--measure]

--measure first runs the slow measurements on the trained policies: ablations, attention statistics, profile and
animations.
"""

import argparse
import sys
from pathlib import Path

import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).parent))

from animation import filmed, write_animation
from episode_profile import profile
from pages import IMAGES, markdown, write_page
from runs import EPISODES, SPREAD, Runs, ablations_table, attention_table, spread
from studies.obstacle_course import ARMS, PAPER, PRESET_SEEDS, SEEDS, SIZES

from iap.cli.tables import write_json
from iap.evaluation.ablations import run_ablations
from iap.evaluation.attention_statistics import attention_statistics
from iap.policies import describe
from iap.rollouts import LocalPool
from iap.training.config import fit_to_env

ATTENTION_EPISODES = 10
VIDEO_SEED, VIDEO_STEPS, VIDEO_EVERY, STILL_STEP, STEP_MS = 1, 240, 4, 150, 20
PRESET, MAIN = "obstacle-course", "patch-1-1"  # with the preset's budget, and with that of the other arms
RUNS = Runs("obstacle_course", SEEDS, {PRESET: PRESET_SEEDS})
SIZE_HEADER = ("encoder parameters", "all parameters")


def measure() -> None:
    """Ablations, attention statistics and profile of the best policy, and the returns of random search alone."""
    policy = RUNS.best_policy(PRESET)
    rows = run_ablations(policy, LocalPool, EPISODES, blind=RUNS.best_policy("blind"), report=print)
    write_json(rows, RUNS.folder / "ablations.json")
    write_json(attention_statistics(policy, ATTENTION_EPISODES), RUNS.folder / "attention.json")
    write_json(profile(policy), RUNS.folder / "profile.json")
    for arm in (PRESET, MAIN):
        RUNS.evaluate_random_search(arm)


def animate() -> None:
    """An episode of the best policy, and one step of it beside a policy with patches of 16 × 16."""
    frames = write_animation(RUNS.best_policy(PRESET), PRESET, VIDEO_SEED, VIDEO_STEPS, VIDEO_EVERY, STEP_MS)
    Image.fromarray(frames[STILL_STEP]).save(IMAGES / "obstacle-course.png", optimize=True)
    other = filmed(RUNS.best_policy("patch-16-16"), VIDEO_SEED, STILL_STEP + 1)
    pair = np.concatenate([frames[STILL_STEP], other[STILL_STEP]], axis=1)
    Image.fromarray(pair).save(IMAGES / "obstacle-course-patches.png", optimize=True)


def parameters(arm: str) -> list[int]:
    """Parameters of the encoder and of the whole policy."""
    sizes = describe(fit_to_env(ARMS[arm]).policy)
    return [sizes.parts.get("encoder", 0), sizes.total]


def sizes() -> str:
    """Returns by patch size."""
    lines = []
    for patch, stride in SIZES:
        arm, label = f"patch-{patch}-{stride}", f"{patch}/{stride}"
        lines.append([label, *parameters(arm), *spread(RUNS.evaluations(arm)), f"{PAPER[label]:.1f}"])
    return markdown(["patch/stride", *SIZE_HEADER, *SPREAD, "paper, best"], lines)


def arms() -> str:
    """Returns of the policy and of the baselines at the same budget."""
    random_search = ["random search alone", *parameters(MAIN), *spread(RUNS.evaluations(MAIN, "random_search.json"))]
    lines = [[arm, *parameters(arm), *spread(RUNS.evaluations(arm))] for arm in (MAIN, "cnn", "blind", "no-symmetry")]
    return markdown(["policy", *SIZE_HEADER, *SPREAD], [lines[0], random_search, *lines[1:]])


def preset_rows() -> str:
    """Returns of the preset before and after evolution."""
    stages = (("random search alone", "random_search.json"), ("trained", "evaluation.json"))
    lines = [[name, parameters(PRESET)[1], *spread(RUNS.evaluations(PRESET, file))] for name, file in stages]
    return markdown(["policy", "parameters", *SPREAD], lines)


def sizes_summary() -> str:
    """The order of the patch sizes, and the spread over seeds."""
    returns = {f"{p}/{s}": [r["mean"] for r in RUNS.evaluations(f"patch-{p}-{s}")] for p, s in SIZES}
    means = {size: float(np.mean(seeds)) for size, seeds in returns.items()}
    order = sorted(means, key=lambda size: -means[size])
    widest = max(max(seeds) - min(seeds) for seeds in returns.values())
    return (
        f"Ordered by the mean over seeds: {', '.join(order)}. Single pixels rank {order.index('1/1') + 1} of "
        f"{len(order)}; in the paper they rank first. The best and the worst size differ by "
        f"{means[order[0]] - means[order[-1]]:.1f}, seeds of one size by up to {widest:.1f}."
    )


def arms_summary() -> str:
    """The means of IAP and of the CNN, and the spread over seeds."""
    iap, cnn = ([result["mean"] for result in RUNS.evaluations(arm)] for arm in (MAIN, "cnn"))
    widest = max(max(seeds) - min(seeds) for seeds in (iap, cnn))
    difference = abs(np.mean(iap) - np.mean(cnn))
    return (
        f"The means over seeds are {np.mean(iap):.2f} (IAP) and {np.mean(cnn):.2f} (CNN). They differ by "
        f"{difference:.2f}, seeds of one arm by up to {widest:.1f}"
        + (": three seeds do not separate the two." if difference < widest else ".")
    )


def speed() -> str:
    """Processor time by part."""
    row = RUNS.read("profile.json")
    parts = {"policy": "policy_ms", "camera": "camera_ms", "physics, gait and sensors": "environment_ms"}
    lines = [[name, row[key], f"{row[key] / row['total_ms']:.0%}"] for name, key in parts.items()]
    table = markdown(["part", "ms", "share"], [*lines, ["total", row["total_ms"], ""]])
    return (
        f"Processor time of 500 steps (10 s) with {row['frames']:.0f} rendered frames on one core, median of "
        f"{row['episodes']} episodes (`python benchmarks/episode_profile.py zoo:obstacle-course`): "
        f"{row['episodes_per_second']:.1f} full episodes per second, {1 - row['policy_ms'] / row['total_ms']:.0%} of "
        f"the speed of the environment alone with the same actions and frames.\n\n{table}"
    )


def plot() -> None:
    """Learning curves."""
    labels = {
        "IAP, patch 1, budget of the preset": PRESET,
        "IAP, patch 1": MAIN,
        "CNN": "cnn",
        "blind": "blind",
        "IAP, no symmetry": "no-symmetry",
    }
    RUNS.plot(labels, IMAGES / "obstacle-course-curves.png")


def main() -> None:
    """Measure if requested, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true")
    if parser.parse_args().measure:
        measure()
        animate()
    plot()
    iap, cnn = parameters(MAIN), parameters("cnn")
    write_page(
        "obstacle-course.md",
        preset=ARMS[PRESET],
        base=ARMS[MAIN],
        others=" ".join(arm for arm in ARMS if arm != PRESET),
        preset_rows=preset_rows(),
        sizes=sizes(),
        sizes_summary=sizes_summary(),
        arms=arms(),
        arms_summary=arms_summary(),
        cnn_encoder_ratio=cnn[0] / iap[0],
        cnn_ratio=cnn[1] / iap[1],
        ablations=ablations_table(RUNS.read("ablations.json")),
        attention=attention_table(RUNS.read("attention.json")),
        attention_episodes=ATTENTION_EPISODES,
        speed=speed(),
    )


if __name__ == "__main__":
    main()
