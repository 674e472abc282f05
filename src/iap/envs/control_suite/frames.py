"""Images of dm_control's suite in full quality, for benchmarks and comparisons."""

import threading
from typing import Any

import numpy as np
from jaxtyping import UInt8

from iap._validation import require_count
from iap.envs.control_suite.loading import loaded
from iap.envs.rendering.gl import explained

CAMERA = 0  # the camera of the suite's published benchmarks
STEPS_APART = 20
LARGEST_SIDE = 8192  # of the framebuffers that every OpenGL supports

_one_renderer = threading.Lock()  # two of dm_control's renderers in one process can exchange their pixels


def render_frames(
    task: str = "cheetah-run", size: tuple[int, int] = (240, 320), count: int = 1, seed: int = 0
) -> UInt8[np.ndarray, "count H W 3"]:
    """Frames of a task under random actions, 20 steps apart; the same seed gives the same frames.

    Args:
        task: "domain-task" of the suite, such as "cheetah-run" or "ball_in_cup-catch".
        size: (height, width) in pixels.
        count: number of frames.
        seed: of the initial state and of the actions.
    """
    height, width = (require_count("size", side, most=LARGEST_SIDE) for side in size)
    require_count("count", count)
    require_count("seed", seed, least=0)
    with _one_renderer, loaded(task, seed) as env:
        buffer = env.physics.model.vis.global_
        buffer.offheight, buffer.offwidth = height, width
        rng = np.random.default_rng(seed)
        frames = np.empty((count, height, width, 3), np.uint8)
        env.reset()
        for i in range(count):
            with explained():
                frames[i] = env.physics.render(height=height, width=width, camera_id=CAMERA)
            if i < count - 1:
                _act_at_random(env, rng)
        return frames


def _act_at_random(env: Any, rng: np.random.Generator) -> None:
    spec = env.action_spec()
    low, high = np.maximum(spec.minimum, -1), np.minimum(spec.maximum, 1)  # a few tasks have no bounds
    for _ in range(STEPS_APART):
        env.step(rng.uniform(low, high))
