"""A trained policy on seeds of one's choice: returns, and a video of where it looks."""

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import gymnasium
import numpy as np

from iap.attention.arrays import require_count
from iap.envs.core import find_env, require_harmless
from iap.policies import build_policy, unflatten
from iap.policies.serialization import PolicyFile, load
from iap.rollouts import EnvConfig, Episode, Job, Pool, Step, run_episode
from iap.training.config import HELD_OUT_SEEDS
from iap.training.run_directory import RunDirectory
from iap.viz.videos import VideoWriter, compose
from iap.zoo import zoo_file, zoo_names

ZOO = "zoo:"


def locate_policy(
    name: str, env: str | None = None, env_options: Mapping[str, Any] | None = None
) -> tuple[PolicyFile, str]:
    """A policy by its file, its run's folder (the best, else the last) or `zoo:NAME`; and where it was found.

    With `env`, it is to act in that environment instead of its own; the module of "module:id" is imported. With
    `env_options`, it is to act in an environment that has these beside its own.
    """
    if name.startswith(ZOO):
        path = zoo_file(name.removeprefix(ZOO))
    else:
        path = Path(name)
        if path.is_dir():
            run = RunDirectory(path)
            found = [file for which in ("best", "last") if (file := run.policy_file(which)).exists()]
            if not found:
                raise FileNotFoundError(f"{path} is a folder without best.policy or last.policy in it")
            path = found[0]
    policy = load(path)
    policy = replace(policy, env_kwargs={**policy.env_kwargs, **(env_options or {})})
    return policy if env is None else replace(policy, env_id=find_env(env)), str(path)


def policy_job(policy: PolicyFile, max_steps: int | None = None) -> Job:
    """The policy in the environment it was made for; a file cannot have modules imported for it."""
    return Job(EnvConfig.of(require_harmless(policy.env_id), **policy.env_kwargs), policy.spec, max_steps)


def evaluate(policy: PolicyFile, pool: Pool, episodes: int, seed: int) -> dict[str, Any]:
    """Returns of `episodes` episodes, the i-th with seed `seed` + i, their mean and its 95 % interval."""
    require_seeds(episodes, seed)
    [ran] = pool.evaluate(policy.theta[None], [range(seed, seed + episodes)], policy.normaliser)
    return summary(ran) | {"seed": seed}


def require_seeds(episodes: int, seed: int) -> None:
    """Refuse seeds that training may have used."""
    require_count("episodes", episodes)
    require_count("seed", seed, least=0, most=HELD_OUT_SEEDS - episodes, why=" (higher ones are used in training)")


def summary(episodes: list[Episode]) -> dict[str, Any]:
    """The episodes that did not fail, in numbers."""
    returns = [episode.total for episode in episodes if episode.error is None]
    errors = [episode.error for episode in episodes if episode.error is not None]
    spread = float(np.std(returns, ddof=1)) / math.sqrt(len(returns)) if len(returns) > 1 else None
    return {
        "mean": float(np.mean(returns)) if returns else None,
        "ci95": None if spread is None else 1.96 * spread,
        "episodes": len(episodes),
        "returns": returns,
        "steps": [episode.steps for episode in episodes if episode.error is None],
        "failed": len(errors),
        "errors": sorted(set(errors)),
    }


def watch(
    policy: PolicyFile,
    out: Path,
    seed: int = 0,
    max_steps: int | None = None,
    progress: Callable[[int], None] = lambda _frames: None,
) -> Episode:
    """One episode as a video: the scene, the policy's image with attended patches in red, scores, the return so far."""
    env = _make_drawing(policy)
    runner = build_policy(policy.spec, unflatten(policy.spec, policy.theta), policy.normaliser)
    draws = env.render_mode == "rgb_array" and not env.metadata.get("camera_is_scene")
    filmed, attended = 0, None
    try:
        with VideoWriter(out, fps=env.metadata.get("render_fps") or 30) as video:

            def film(step: Step) -> None:
                nonlocal filmed, attended
                filmed += 1
                attended = step.attention or attended  # while a command is held, what it was chosen by
                scene = cast("np.ndarray", env.render()) if draws else None
                video.add(compose(scene, step.observation["image"], attended, step.total, filmed))
                progress(filmed)

            return run_episode(env, runner, seed, max_steps, film)
    finally:
        env.close()


def _make_drawing(policy: PolicyFile) -> gymnasium.Env:
    """The policy's environment, able to draw its scene if it knows how."""
    spec = policy_job(policy).env
    try:
        return EnvConfig.of(spec.id, **dict(spec.kwargs), render_mode="rgb_array").make()
    except (TypeError, ValueError):  # what the policy sees will do
        return spec.make()


def zoo_rows() -> list[dict[str, Any]]:
    """The policies in the zoo: what each is, and what it reached where it was measured."""
    rows = []
    for name in zoo_names():
        policy = load(zoo_file(name))
        measured = policy.facts.get("measured") or {}
        rows.append(
            {
                "name": name,
                "env": policy.env_id,
                "encoder": type(policy.spec.encoder).__name__,
                "parameters": len(policy.theta),
                "kB": zoo_file(name).stat().st_size / 1000,
                "return": measured.get("mean"),
                "± (95 %)": measured.get("ci95"),
                "episodes": measured.get("episodes"),
            }
        )
    return rows
