"""docs/obstacle-course.md with its plots, from the runs in benchmarks/results/obstacle_course alone.

Run it: python benchmarks/obstacle_course.py [--measure]

--measure first runs what is slow and depends on the trained policies: controls, what they attend to, and films.
"""

import argparse
import json
import sys
import tempfile
from pathlib import Path

import imageio_ffmpeg
import numpy as np
from PIL import Image

sys.path.insert(0, str(Path(__file__).parent))

from episode_profile import profile
from report import DOCS, RESULTS, markdown, write
from studies.obstacle_course import ARMS, PAPER, SIZES

from iap.experiments.attended import attended
from iap.experiments.config import fitted_to_env
from iap.experiments.controls import run_controls
from iap.experiments.evaluate import evaluate, find_policy, job_of, watch
from iap.experiments.reports import write_json
from iap.experiments.run_directory import RunDirectory
from iap.policies import describe
from iap.policies.files import PolicyFile
from iap.rollouts import LocalPool
from iap.viz.curves import plot_curves

RUNS = RESULTS / "obstacle_course"
SEEDS = (0, 1, 2)
EPISODES, ATTENDED_EPISODES = 100, 10
FILM_SEED, FILM_STEPS, FILM_EVERY, MOMENT = 1, 240, 4, 150
BEST, MAIN = "iap", "patch-1-1"  # with the preset's budget, and with that of the other arms


def runs_of(arm: str) -> list[Path]:
    """The finished runs of an arm."""
    return [path for seed in SEEDS if (path := RUNS / f"{arm}-seed{seed}").joinpath("evaluation.json").exists()]


def returns_of(arm: str, file: str = "evaluation.json") -> list[dict]:
    return [json.loads((path / file).read_text()) for path in runs_of(arm)]


def best_run(arm: str) -> Path:
    return max(runs_of(arm), key=lambda path: json.loads((path / "evaluation.json").read_text())["mean"])


def measure() -> None:
    """Controls and attended things of the best policy, and what its screening alone had come to."""
    best = best_run(BEST)
    policy, _ = find_policy(str(best))
    blind = find_policy(str(best_run("blind")))[0] if runs_of("blind") else None
    write_json(run_controls(policy, LocalPool, EPISODES, blind=blind, report=print), RUNS / "controls.json")
    write_json(attended(policy, ATTENDED_EPISODES), RUNS / "attended.json")
    write_json(profile(policy), RUNS / "profile.json")
    for path in [*runs_of(BEST), *runs_of(MAIN)]:
        screened, _ = find_policy(str(path / "screened.policy"))
        with LocalPool(job_of(screened)) as pool:
            write_json(evaluate(screened, pool, EPISODES, seed=0), path / "screened.json")


def film() -> None:
    """An episode of the best policy, and the same moment of it and of one that sees patches of 16 × 16."""
    seen = {arm: frames_of(find_policy(str(best_run(arm)))[0]) for arm in filter(runs_of, (BEST, "patch-16-16"))}
    Image.fromarray(seen[BEST][MOMENT]).save(DOCS / "images" / "obstacle-course.png", optimize=True)
    beside = np.concatenate([frames[MOMENT] for frames in seen.values()], axis=1)
    Image.fromarray(beside).save(DOCS / "images" / "obstacle-course-patches.png", optimize=True)
    small = [Image.fromarray(frame).resize((320, 260)).quantize(64) for frame in seen[BEST][::FILM_EVERY]]
    small[0].save(
        DOCS / "images" / "obstacle-course.gif",
        save_all=True,
        append_images=small[1:],
        duration=20 * FILM_EVERY,
        loop=0,
    )


def frames_of(policy: PolicyFile) -> list[np.ndarray]:
    """What `iap watch` shows of the first steps of an episode that training never saw."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "film.mp4"
        watch(policy, out, seed=FILM_SEED, max_steps=FILM_STEPS)
        reader = imageio_ffmpeg.read_frames(str(out))
        width, height = next(reader)["size"]
        return [np.frombuffer(frame, np.uint8).reshape(height, width, 3) for frame in reader]


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
        if not runs_of(arm):
            continue
        parts = describe(fitted_to_env(ARMS[arm]).policy)
        line = [f"{patch}/{stride}", parts.parts["vision"], parts.total]
        lines.append([*line, *spread(returns_of(arm)), f"{PAPER[f'{patch}/{stride}']:.1f}"])
    heads = ["patch/stride", "vision", "all", "mean", "best seed", "best course", "each seed", "paper, best"]
    return markdown(heads, lines)


def arms() -> str:
    lines = []
    for arm in filter(runs_of, (MAIN, "cnn", "blind", "unmirrored")):
        parts = describe(fitted_to_env(ARMS[arm]).policy)
        lines.append([arm, parts.parts.get("vision", 0), parts.total, *spread(returns_of(arm))])
    parts = describe(fitted_to_env(ARMS[MAIN]).policy)
    lines.insert(1, ["screening alone", parts.parts["vision"], parts.total, *spread(returns_of(MAIN, "screened.json"))])
    return markdown(["policy", "vision", "all", "mean", "best seed", "best course", "each seed"], lines)


def preset_rows() -> str:
    parts = describe(fitted_to_env(ARMS[BEST]).policy)
    lines = [
        [name, parts.total, *spread(returns_of(BEST, file))]
        for name, file in (("screening alone", "screened.json"), ("trained", "evaluation.json"))
    ]
    return markdown(["policy", "parameters", "mean", "best seed", "best course", "each seed"], lines)


def sizes_said() -> str:
    """Which size did best here, and where single pixels stand; nothing while some are not trained."""
    if not all(len(runs_of(f"patch-{p}-{s}")) == len(SEEDS) for p, s in SIZES):
        return "Not all sizes and seeds are trained yet: what is not listed is to come."
    returns = {f"{p}/{s}": [r["mean"] for r in returns_of(f"patch-{p}-{s}")] for p, s in SIZES}
    means = {size: float(np.mean(seeds)) for size, seeds in returns.items()}
    order = sorted(means, key=lambda size: -means[size])
    widest = max(max(seeds) - min(seeds) for seeds in returns.values())
    return (
        f"By the mean over seeds, the order here is {', '.join(order)}: single pixels are number "
        f"{order.index('1/1') + 1} of {len(order)}, in the paper number 1. The best and the worst size are "
        f"{means[order[0]] - means[order[-1]]:.1f} apart, and seeds of one size up to {widest:.1f}."
    )


def speed() -> str:
    rows = json.loads((RUNS / "profile.json").read_text())
    parts = {"policy": "policy_ms", "camera": "camera_ms", "physics, gait and sensors": "environment_ms"}
    lines = [[name, rows[key], f"{rows[key] / rows['whole_ms']:.0%}"] for name, key in parts.items()]
    table = markdown(["part", "ms", "share"], [*lines, ["all", rows["whole_ms"], ""]])
    return (
        f"Processor time of 500 steps (10 s) with {rows['looks']:.0f} looks, one core, median of {rows['episodes']} "
        f"episodes, from `python benchmarks/episode_profile.py zoo:obstacle-course`: {rows['episodes_per_second']:.1f} "
        f"full episodes a second.\n\n{table}"
    )


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
    shown = {
        "IAP, patch 1, the preset's budget": BEST,
        "IAP, patch 1": MAIN,
        "CNN": "cnn",
        "blind": "blind",
        "IAP, not mirrored": "unmirrored",
    }
    curves = {label: [RunDirectory(path).read_metrics() for path in runs_of(arm)] for label, arm in shown.items()}
    plot_curves(
        {label: seeds for label, seeds in curves.items() if seeds}, DOCS / "images" / "obstacle-course-curves.png"
    )


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
        preset_rows=preset_rows(),
        sizes=sizes(),
        sizes_said=sizes_said(),
        arms=arms(),
        cnn_ratio=cnn.parts["vision"] / iap.parts["vision"],
        cnn_ratio_all=cnn.total / iap.total,
        controls=controls(),
        attended=things(),
        attended_episodes=ATTENDED_EPISODES,
        speed=speed(),
    )


if __name__ == "__main__":
    main()
