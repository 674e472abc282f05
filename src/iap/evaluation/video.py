"""A video of one episode: the scene, the camera image with attended patches, the scores, the return."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

import gymnasium
import numpy as np

from iap._validation import require_count
from iap.envs.core import EnvConfig
from iap.evaluation.evaluate import policy_job
from iap.policies import Policy, PolicyFile
from iap.rollouts import Episode, Step, run_episode
from iap.viz.videos import VideoWriter, compose

DEFAULT_FPS = 30


def film(
    policy: PolicyFile,
    out: Path,
    seed: int = 0,
    max_steps: int | None = None,
    progress: Callable[[int], None] = lambda _frames: None,
    env: EnvConfig | None = None,
) -> Episode:
    """Write one episode as a video.

    Args:
        policy: the policy, in its environment.
        out: an .mp4 or .gif file.
        seed: of the episode.
        max_steps: at which it is cut.
        progress: called with the number of frames so far.
        env: another environment than the policy's own.
    """
    if max_steps is not None:
        require_count("max_steps", max_steps)
    require_count("seed", seed, least=0)
    made = _make_with_scene(env or policy_job(policy).env)
    has_scene = made.render_mode == "rgb_array" and not made.metadata.get("camera_is_scene")
    frames, attended = 0, None
    try:
        with VideoWriter(out, fps=made.metadata.get("render_fps") or DEFAULT_FPS) as video:

            def add_frame(step: Step) -> None:
                nonlocal frames, attended
                frames += 1
                attended = step.attention or attended  # while a command is held, the attention that led to it
                scene = cast("np.ndarray", made.render()) if has_scene else None
                video.add(compose(scene, step.observation["image"], attended, step.total, frames))
                progress(frames)

            return run_episode(made, Policy.of(policy), seed, max_steps, add_frame)
    finally:
        made.close()


def _make_with_scene(env: EnvConfig) -> gymnasium.Env:
    """The environment, rendering its scene if it can."""
    if env.factory is not None:
        return env.make()
    try:
        return EnvConfig.of(env.id, **dict(env.kwargs), render_mode="rgb_array").make()
    except (TypeError, ValueError):  # no such option: the policy's own image is shown
        return env.make()
