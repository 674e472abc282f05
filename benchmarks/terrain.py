"""Write docs/uneven-terrain.md with its plots from the runs in benchmarks/results/terrain.

Run it: python benchmarks/terrain.py [--measure]

--measure first runs the slow measurements: ablations, attention statistics and animations of the trained policies, and
the returns of the baselines.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from animation import write_animation
from pages import IMAGES, markdown, write_page
from runs import EPISODES, SPREAD, Runs, ablations_table, attention_table, spread
from studies.terrain import ARMS, EVALUATE_FROM, STEP_STONES, TERRAINS

import iap
from iap.cli.tables import write_json
from iap.envs.core import EnvConfig
from iap.envs.quadruped.footsteps.baselines import blind_action, oracle_action
from iap.evaluation.ablations import run_ablations
from iap.evaluation.attention_statistics import attention_statistics
from iap.evaluation.evaluate import summarise
from iap.policies import Moments, describe
from iap.rollouts import Episode, LocalPool
from iap.training.config import fit_to_env

RUNS = Runs("terrain", (0, 1, 2))
BASELINE_EPISODES, ATTENTION_EPISODES = 10, 10
VIDEO_SEED, VIDEO_STEPS, VIDEO_EVERY, STEP_MS = EVALUATE_FROM + 3, 160, 2, 50
ENVS = {"step-stones": "iap/StepStones-v0", "stone-grid": "iap/StoneGrid-v0", "stairs": "iap/Stairs-v0"}


def terrain_name(preset: str) -> str:
    """The terrain of a preset."""
    return preset.removesuffix("-single-foot")


def measure_policy(name: str) -> None:
    """Ablations and attention statistics of a terrain's best policy."""
    policy, blind = RUNS.best_policy(name), RUNS.best_policy(f"{name}-blind")
    rows = run_ablations(policy, LocalPool, EPISODES, EVALUATE_FROM, blind=blind, report=print)
    write_json(rows, RUNS.folder / f"ablations-{name}.json")
    write_json(attention_statistics(policy, ATTENTION_EPISODES, EVALUATE_FROM), RUNS.folder / f"attention-{name}.json")


def measure_baselines() -> None:
    """Returns of the oracle and of the Raibert heuristic."""
    rows = [
        {"terrain": terrain_name(name), "baseline": baseline} | baseline_returns(env, choose)
        for name in TERRAINS
        for baseline, env, choose in (
            ("oracle", EnvConfig.of(ENVS[terrain_name(name)]), oracle_action),
            ("oracle with the action space of the policy", iap.presets[name].env, oracle_action),
            ("Raibert heuristic", EnvConfig.of(ENVS[terrain_name(name)]), blind_action),
        )
    ]
    write_json(rows, RUNS.folder / "baselines.json")


def baseline_returns(config: EnvConfig, choose: Callable) -> dict:
    """Returns of a scripted controller on the first evaluation terrains."""
    env = config.make()
    episodes = []
    for seed in range(EVALUATE_FROM, EVALUATE_FROM + BASELINE_EPISODES):
        env.reset(seed=seed)
        total, steps, ended = 0.0, 0, False
        while not ended:
            _, reward, terminated, truncated, _ = env.step(choose(env.unwrapped))
            total, steps, ended = total + float(reward), steps + 1, terminated or truncated
        episodes.append(Episode(seed, total, steps, Moments.none(0)))
    env.close()
    result = summarise(episodes)
    return {"mean": result.mean, "ci95": result.ci95, "episodes": result.episodes}


def animate(name: str) -> None:
    """An episode of a terrain's best policy."""
    write_animation(RUNS.best_policy(name), name, VIDEO_SEED, VIDEO_STEPS, VIDEO_EVERY, STEP_MS)


def arms() -> str:
    """Returns of all arms."""
    lines = []
    for arm in filter(RUNS.paths, ARMS):
        sizes = describe(fit_to_env(ARMS[arm]).policy)
        lines.append([arm, sizes.parts.get("encoder", 0), sizes.total, *spread(RUNS.evaluations(arm))])
    return markdown(["policy", "encoder parameters", "all parameters", *SPREAD], lines)


def comparison() -> str:
    """The best policy of each terrain, the best blind policy and the oracle."""
    oracle = {row["terrain"]: row["mean"] for row in RUNS.read("baselines.json") if row["baseline"] == "oracle"}
    lines = []
    for name in TERRAINS:
        best, blind = (max(result["mean"] for result in RUNS.evaluations(arm)) for arm in (name, f"{name}-blind"))
        reference = oracle[terrain_name(name)]
        lines.append([name, *(f"{cell:.2f}" for cell in (best, blind, best / blind, reference, best / reference))])
    return markdown(["policy", "return", "best blind policy", "ratio to blind", "oracle", "share of oracle"], lines)


def speed() -> str:
    """The measurements of benchmarks/walking_speed.py, one column per terrain."""
    rows = RUNS.read("speed.json")
    names = [name for name in rows[0] if name.endswith("_ms")]
    lines = [[name.removesuffix("_ms").replace("_", " "), *(row[name] for row in rows)] for name in names]
    return markdown(["milliseconds", *(row["terrain"] for row in rows)], lines)


def baselines() -> str:
    """Returns of the scripted controllers."""
    rows = RUNS.read("baselines.json")
    lines = [
        [row["terrain"], row["baseline"], f"{row['mean']:.2f} ± {row['ci95']:.2f}", row["episodes"]] for row in rows
    ]
    return markdown(["terrain", "controller", "return", "episodes"], lines)


def per_terrain(file: str, table: Callable) -> str:
    """A table for each terrain."""
    return "\n".join(f"### {name}\n\n{table(RUNS.read(f'{file}-{name}.json'))}" for name in TERRAINS)


def main() -> None:
    """Measure if requested, then write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true")
    if parser.parse_args().measure:
        for name in TERRAINS:
            measure_policy(name)
            animate(name)
        measure_baselines()
    step_stones = [arm for arm in ARMS if arm.startswith(STEP_STONES)]
    others = [arm for arm in ARMS if arm not in step_stones]
    for file, shown in {"terrain-curves": step_stones, "terrain-others": others}.items():
        RUNS.plot({arm: arm for arm in shown}, IMAGES / f"{file}.png")
    write_page(
        "uneven-terrain.md",
        step_stones=iap.presets[TERRAINS[0]],
        grid=iap.presets[TERRAINS[1]],
        stairs=iap.presets[TERRAINS[2]],
        episodes=EPISODES,
        first_seed=EVALUATE_FROM,
        last_seed=EVALUATE_FROM + EPISODES - 1,
        arms=arms(),
        comparison=comparison(),
        baselines=baselines(),
        speed=speed(),
        ablations=per_terrain("ablations", ablations_table),
        attention=per_terrain("attention", attention_table),
        attention_episodes=ATTENTION_EPISODES,
    )


if __name__ == "__main__":
    main()
