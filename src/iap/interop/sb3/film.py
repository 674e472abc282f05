"""A video of an agent of Stable-Baselines3: the scene, its image with the attended patches, the scores."""

from pathlib import Path
from typing import Any

import numpy as np

from iap._extras import explain_missing
from iap.interop.sb3.overlays import attended

DEFAULT_FPS = 30


def film_agent(
    model: Any, env: Any, path: str | Path, *, max_steps: int = 500, seed: int = 0, key: str | None = None
) -> float:
    """Write one episode of an agent with an `AttentionExtractor` as a video; the return.

    Args:
        model: the agent.
        env: its environment, not vectorised; its scene is shown if its render_mode is "rgb_array".
        path: an .mp4, .webm or .gif file.
        max_steps: at which the episode is cut.
        seed: of the episode.
        key: the image of a Dict observation; by default its first.
    """
    with explain_missing("film_agent"):
        from iap.viz.composition import compose
        from iap.viz.videos import VideoWriter

    observation, _ = env.reset(seed=seed)
    total, steps, ended = 0.0, 0, False
    with VideoWriter(path, fps=env.metadata.get("render_fps") or DEFAULT_FPS) as video:
        while not ended and steps < max_steps:
            pictures = attended(model, observation)
            image, attention = pictures[next(iter(pictures)) if key is None else key]
            action, _ = model.predict(observation, deterministic=True)
            observation, reward, terminated, truncated, _ = env.step(action)
            total, steps, ended = total + float(reward), steps + 1, terminated or truncated
            scene = np.asarray(env.render()) if env.render_mode == "rgb_array" else None
            video.add(compose(scene, image, attention, total, steps))
    return total
