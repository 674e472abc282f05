"""docs/uneven-terrain.md with its plots, from the runs in benchmarks/results/terrain alone.

Run it: python benchmarks/terrain.py [--measure]

--measure first runs what is slow and depends on the trained policies: controls, what they attend to, films, and walkers
that know the terrain or nothing of it.
"""

import argparse
import sys
from collections.abc import Callable
from pathlib import Path

from PIL import Image

sys.path.insert(0, str(Path(__file__).parent))

from report import DOCS, markdown, write
from runs import EPISODES, SPREAD, Runs, attended_table, controls_table, frames_of, spread
from studies.terrain import ARMS, EVALUATE_FROM

from iap.envs.quadruped.footsteps.baselines import blind_action, oracle_action
from iap.evaluation.attention_statistics import attended
from iap.training.config import fitted_to_env
from iap.evaluation.ablations import run_ablations
from iap.evaluation.evaluate import summary
from iap.cli.tables import write_json
from iap.training.presets.footsteps import TERRAIN_PRESETS
from iap.policies import Moments, describe
from iap.rollouts import EnvConfig, Episode, LocalPool

RUNS = Runs("terrain", (0, 1, 2), {})
IMAGES = DOCS / "images"
CONTROLLED, WALKS, ATTENDED_EPISODES = 100, 10, 10
FILM_SEED, FILM_EVERY = EVALUATE_FROM + 3, 2


def trained() -> list[str]:
    """The terrains that have a trained policy."""
    return [name for name in TERRAIN_PRESETS if RUNS.of(name)]


def measure_policy(name: str) -> None:
    """Controls and attended things of a terrain's best policy."""
    policy, blind = RUNS.build_policy(name), RUNS.build_policy(f"{name}-blind")
    rows = run_ablations(policy, LocalPool, CONTROLLED, EVALUATE_FROM, blind=blind, report=print)
    write_json(rows, RUNS.folder / f"controls-{name}.json")
    write_json(attended(policy, ATTENDED_EPISODES, EVALUATE_FROM), RUNS.folder / f"attended-{name}.json")


def measure_walkers() -> None:
    """How far walkers come that are not policies."""
    walks = [
        {"terrain": name, "walker": walker} | walk(spec, choose)
        for name, config in TERRAIN_PRESETS.items()
        for walker, spec, choose in (
            ("oracle", EnvConfig.of(config.env.id), oracle_action),
            ("oracle with the actions of the policy", config.env, oracle_action),
            ("Raibert's rule", EnvConfig.of(config.env.id), blind_action),
        )
    ]
    write_json(walks, RUNS.folder / "walkers.json")


def walk(spec: EnvConfig, choose: Callable) -> dict:
    """Episodes of a walker that is no policy, on the terrains that policies are evaluated on."""
    env = spec.make()
    episodes = []
    for seed in range(EVALUATE_FROM, EVALUATE_FROM + WALKS):
        env.reset(seed=seed)
        total, steps, ended = 0.0, 0, False
        while not ended:
            _, reward, terminated, truncated, _ = env.step(choose(env.unwrapped))
            total, steps, ended = total + float(reward), steps + 1, terminated or truncated
        episodes.append(Episode(seed, total, steps, Moments.none(0)))
    env.close()
    return {key: value for key, value in summary(episodes).items() if key in ("mean", "ci95", "episodes")}


def film(name: str) -> None:
    """An episode of a terrain's best policy."""
    frames = frames_of(RUNS.build_policy(name), FILM_SEED, steps=160)
    small = [
        Image.fromarray(frame).resize((280, 228)).quantize(32, dither=Image.Dither.NONE)
        for frame in frames[::FILM_EVERY]
    ]
    small[0].save(IMAGES / f"{name}.gif", save_all=True, append_images=small[1:], duration=50 * FILM_EVERY, loop=0)


def arms() -> str:
    """All arms that are trained."""
    lines = []
    for arm in filter(RUNS.of, ARMS):
        parts = describe(fitted_to_env(ARMS[arm]).policy)
        lines.append([arm, parts.parts.get("encoder", 0), parts.total, *spread(RUNS.returns_of(arm))])
    return markdown(["policy", "encoder", "all", *SPREAD], lines)


def against_others() -> str:
    """The best policy of each terrain between the best blind one and the oracle."""
    oracle = {row["terrain"]: row["mean"] for row in RUNS.read("walkers.json") if row["walker"] == "oracle"}
    lines = []
    for name in trained():
        best, blind = (max(result["mean"] for result in RUNS.returns_of(arm)) for arm in (name, f"{name}-blind"))
        numbers = (best, blind, best / blind, oracle[name], best / oracle[name])
        lines.append([name, *(f"{number:.2f}" for number in numbers)])
    return markdown(["terrain", "best policy", "best blind policy", "times blind", "oracle", "share of oracle"], lines)


def speed() -> str:
    """What benchmarks/walking_speed.py measured, a column a terrain."""
    if not (RUNS.folder / "speed.json").exists():
        return "Not measured yet.\n"
    rows = RUNS.read("speed.json")
    names = [name for name in rows[0] if name.endswith("_ms")]
    lines = [[name.removesuffix("_ms").replace("_", " "), *(row[name] for row in rows)] for name in names]
    return markdown(["milliseconds", *(row["terrain"] for row in rows)], lines)


def walkers() -> str:
    """How far walkers come that are not policies."""
    rows = RUNS.read("walkers.json")
    lines = [[row["terrain"], row["walker"], f"{row['mean']:.2f} ± {row['ci95']:.2f}", row["episodes"]] for row in rows]
    return markdown(["terrain", "walker", "return", "episodes"], lines)


def per_terrain(title: str, file: str, table: Callable) -> str:
    """A table for each terrain with a trained policy that was measured."""
    measured = [name for name in trained() if (RUNS.folder / f"{file}-{name}.json").exists()]
    return "\n".join(f"{title} {name}:\n\n{table(RUNS.read(f'{file}-{name}.json'))}" for name in measured)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--measure", action="store_true")
    if parser.parse_args().measure:
        for name in trained():
            measure_policy(name)
            film(name)
        measure_walkers()
    for name, ours in {"terrain-curves": ("step-stones",), "terrain-others": ("stone-grid", "stairs")}.items():
        RUNS.plot({arm: arm for arm in filter(RUNS.of, ARMS) if arm.startswith(ours)}, IMAGES / f"{name}.png")
    missing = ", ".join(arm for arm in ARMS if not RUNS.of(arm))
    write(
        "uneven-terrain.md",
        preset=TERRAIN_PRESETS["step-stones"],
        grid=TERRAIN_PRESETS["stone-grid"],
        stairs=TERRAIN_PRESETS["stairs"],
        episodes=EPISODES,
        first_seed=EVALUATE_FROM,
        last_seed=EVALUATE_FROM + EPISODES - 1,
        arms=arms(),
        missing=f"Not trained: {missing}." if missing else "",
        against_others=against_others(),
        walkers=walkers(),
        speed=speed(),
        controls=per_terrain("The best policy on", "controls", controls_table),
        attended=per_terrain("Attention on", "attended", attended_table),
        attended_episodes=ATTENDED_EPISODES,
        controlled=CONTROLLED,
    )


if __name__ == "__main__":
    main()
