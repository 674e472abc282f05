"""The option that reproduces the camera poses of the benchmark's public code, and where they differ from ours."""

from typing import Any

import numpy as np
import pytest

from iap.envs.core import make_env

EPISODES = 60


def poses(task: str, steps: int = 0, **options: Any) -> np.ndarray:
    """Position and viewing direction of the camera, in each episode after these steps."""
    options = {"difficulty": "medium", "distractions": "camera", "size": (8, 8)} | options
    env: Any = make_env(f"iap/{task}-v0", **options)
    found = []
    for seed in range(EPISODES):
        env.reset(seed=seed)
        for _ in range(steps):
            env.step(np.zeros(env.action_space.shape, np.float32))
        data = env.unwrapped._data
        env.unwrapped._distractions.apply(data)
        found.append(np.concatenate([data.cam_xpos[0], -data.cam_xmat[0].reshape(3, 3)[:, 2]]))
    env.close()
    return np.array(found)


def looked_at(poses: np.ndarray) -> np.ndarray:
    """How far each line of sight passes by the point that is nearest to all of them, in metres."""
    position, direction = poses[:, :3], poses[:, 3:]
    point, *_ = np.linalg.lstsq(
        np.concatenate([np.eye(3) - np.outer(d, d) for d in direction]),
        np.concatenate([(np.eye(3) - np.outer(d, d)) @ p for p, d in zip(position, direction, strict=True)]),
        rcond=None,
    )
    offsets = [(np.eye(3) - np.outer(d, d)) @ (point - p) for p, d in zip(position, direction, strict=True)]
    return np.linalg.norm(offsets, axis=1)


def test_the_public_camera_of_reacher_never_gets_to_negative_x_and_ours_does():
    x = poses("reacher-easy", public_camera=True)[:, 0]
    assert x.min() >= -1e-9
    assert x.max() > 0.1
    assert poses("reacher-easy")[:, 0].min() < -0.05


def test_the_point_that_the_public_camera_of_finger_looks_at_depends_on_the_pose_at_the_reset():
    assert looked_at(poses("finger-spin")).max() < 1e-6  # all lines of sight meet in one point
    assert looked_at(poses("finger-spin", public_camera=True)).max() > 0.01


def test_a_static_public_camera_stands_still_and_a_dynamic_one_moves():
    start = poses("cartpole-swingup", public_camera=True)
    np.testing.assert_allclose(poses("cartpole-swingup", 3, public_camera=True), start)
    moving = poses("cartpole-swingup", 3, public_camera=True, dynamic=True)[:, :3]
    assert np.linalg.norm(moving - poses("cartpole-swingup", public_camera=True, dynamic=True)[:, :3], axis=1).min() > 0


@pytest.mark.parametrize("task", ["cheetah-run", "walker-walk"])
def test_the_public_camera_of_a_robot_that_is_followed_looks_at_it_and_stays_above_the_horizon(task):
    ours, public = poses(task), poses(task, public_camera=True)
    assert ours.shape == public.shape
    assert public[:, 5].max() < np.sin(0.2)  # of the viewing direction
