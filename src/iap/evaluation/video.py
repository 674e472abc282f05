"""A video of one episode: the scene with labels, the policy's image with attended patches, the scores, the return."""

from collections.abc import Callable
from pathlib import Path
from typing import cast

import gymnasium
import numpy as np

from iap._validation import require_count
from iap.envs.core import EnvConfig
from iap.envs.protocols import SceneLabels, find_protocol
from iap.evaluation.evaluate import policy_job
from iap.evaluation.film_facts import film_facts
from iap.policies import Attention, Policy, PolicyFile
from iap.rollouts import Episode, Step, run_episode
from iap.viz.composition import Film, compose
from iap.viz.lettering import Label, Picture
from iap.viz.videos import VideoWriter

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
        out: an .mp4, .webm or .gif file.
        seed: of the episode.
        max_steps: at which it is cut.
        progress: called with the number of frames so far.
        env: another environment than the policy's own.
    """
    if max_steps is not None:
        require_count("max_steps", max_steps)
    require_count("seed", seed, least=0)
    config = env or policy_job(policy).env
    made = _make_with_scene(config)
    frames = 0
    try:
        with VideoWriter(out, fps=made.metadata.get("render_fps") or DEFAULT_FPS) as video:
            camera = FilmCamera(made, film_facts(policy, config, made, max_steps))

            def add_frame(step: Step) -> None:
                nonlocal frames
                frames += 1
                video.add(camera.frame(step, frames))
                progress(frames)

            return run_episode(made, Policy.of(policy), seed, max_steps, add_frame)
    finally:
        made.close()


class FilmCamera:
    """Draws the frames of an episode.

    Attributes:
        env: the environment.
        film: what all frames have in common.
    """

    def __init__(self, env: gymnasium.Env, film: Film) -> None:
        self.env, self.film = env, film
        self._has_scene = env.render_mode == "rgb_array" and not env.metadata.get("camera_is_scene")
        self._labelled = find_protocol(env, SceneLabels)
        self._attention: Attention | None = None
        self._depths: tuple[float, float] | None = None
        self._before: list[Label] = []

    def frame(self, step: Step, number: int) -> Picture:
        """The frame of a step. While a command is held, it shows the attention that led to the command."""
        self._attention = step.attention or self._attention
        image = step.observation["image"]
        if self.film.image_unit:  # one colour scale for all frames so far
            shown = image[..., 0]
            low, high = self._depths or (np.inf, -np.inf)
            self._depths = min(low, float(shown.min())), max(high, float(shown.max()))
        scene = cast("np.ndarray", self.env.render()) if self._has_scene else None
        now = [] if self._labelled is None else [Label(*label) for label in self._labelled.scene_labels()]
        labels, self._before = (self._before if scene is None else now), now  # the image is from before the step
        return compose(scene, image, self._attention, step.total, number, self.film, labels, self._depths)


def _make_with_scene(env: EnvConfig) -> gymnasium.Env:
    """The environment, rendering its scene if it can."""
    if env.factory is not None:
        return env.make()
    try:
        return EnvConfig.of(env.id, **dict(env.kwargs), render_mode="rgb_array").make()
    except (TypeError, ValueError):  # no such option: the policy's own image is shown
        return env.make()
