from typing import Any

import gymnasium
import numpy as np
import pytest

from iap.envs.control_suite.tasks import DISTRACTING_TASKS
from iap.envs.control_suite.view import BACKGROUND, FLOOR, ROBOT, View
from iap.envs.core import make_env
from iap.envs.rendering.camera import Camera, load_mujoco

SMALL = (45, 60)


def suite(task: str, **options: Any) -> Any:
    chosen: dict[str, Any] = {"size": SMALL} | options
    return make_env(f"iap/{task}-v0", **chosen)


def images_of(env: Any, steps: int) -> np.ndarray:
    env.reset(seed=1)
    space = env.action_space
    rng = np.random.default_rng(0)
    moves = [rng.uniform(space.low, space.high).astype(np.float32) for _ in range(steps)]
    return np.array([env.step(action)[0]["image"] for action in moves])


@pytest.mark.parametrize("difficulty", [None, "hard"])
@pytest.mark.parametrize("task", [*DISTRACTING_TASKS, "humanoid-stand"])
def test_images_with_a_backdrop_are_bit_equal_to_full_renders(task, difficulty):
    env = suite(task, difficulty=difficulty, visual_seed=5)
    env.reset(seed=1)
    view, data = env.unwrapped._view, env.unwrapped._data
    for action in np.zeros((4, *env.action_space.shape), np.float32):
        image = env.step(action)[0]["image"]
        np.testing.assert_array_equal(image, Camera.render(view, data))
    # A camera that follows the robot over a translucent floor has no static backdrop.
    assert (view._backdrop is not None) == (task != "humanoid-stand" or difficulty is None)
    env.close()


def test_a_robot_behind_a_translucent_floor_is_rendered_in_full():
    env = suite("cartpole-swingup", difficulty="medium", distractions=["background"])
    model = env.unwrapped._model
    floor = load_mujoco().mj_name2id(model, load_mujoco().mjtObj.mjOBJ_GEOM.value, "floor")
    model.geom_pos[floor, 2] = 0.7  # above the tip of the pole, which hangs down
    env.reset(seed=1)
    view, data = env.unwrapped._view, env.unwrapped._data
    for action in np.zeros((4, 1), np.float32):
        image = env.step(action)[0]["image"]
        np.testing.assert_array_equal(image, Camera.render(view, data))
    assert view._backdrop is not None
    assert (view._nearness < view._backdrop.translucent)[view._nearness > 0].any()
    env.close()


@pytest.mark.parametrize("changed", ["mat_rgba", "geom_pos"])
def test_a_backdrop_is_rendered_again_when_something_in_it_changes(changed):
    env = suite("reacher-easy")
    env.reset(seed=1)
    view, model, data = env.unwrapped._view, env.unwrapped._model, env.unwrapped._data
    still = np.zeros(2, np.float32)
    before = [env.step(still)[0]["image"] for _ in range(3)][-1]
    getattr(model, changed)[:] *= 0.9
    image = env.step(still)[0]["image"]
    assert not np.array_equal(image, before)
    np.testing.assert_array_equal(image, Camera.render(view, data))
    env.close()


def test_there_is_no_backdrop_while_the_camera_turns():
    env = suite("cheetah-run", difficulty="medium", dynamic=True, distractions=["camera"])
    env.reset(seed=1)
    view, data = env.unwrapped._view, env.unwrapped._data
    for action in np.zeros((4, 6), np.float32):
        np.testing.assert_array_equal(env.step(action)[0]["image"], Camera.render(view, data))
    assert view._backdrop is None
    env.close()


@pytest.mark.parametrize(
    "task", [pytest.param(task, marks=[] if task == "cheetah-run" else pytest.mark.slow) for task in DISTRACTING_TASKS]
)
def test_distracted_images_are_close_to_full_quality_renders(task):
    mujoco = load_mujoco()
    env = suite(task, size=(100, 100), difficulty="medium", visual_seed=2)
    images = images_of(env, 3)
    renderer = mujoco.Renderer(env.unwrapped._model, 100, 100)
    env.unwrapped._distractions.apply(env.unwrapped._data)
    renderer.update_scene(env.unwrapped._data, camera=0)
    full = renderer.render()
    renderer.close()
    difference, masks = np.abs(images[-1].astype(int) - full), env.unwrapped.segmentation()
    assert difference[masks == BACKGROUND].mean() < 1  # of 255
    assert difference[masks == ROBOT].mean() < 20  # mostly anti-aliased edges
    assert difference.mean() < (9 if task == "walker-walk" else 2)  # the full render of walker's floor has reflections
    np.testing.assert_array_equal(images_of(env, 3), images)  # another renderer has no effect
    env.close()


def test_distracted_environments_in_one_process_do_not_affect_each_other():
    options = {"difficulty": "medium", "dynamic": True}
    alone = {}
    for task in DISTRACTING_TASKS:
        env = suite(task, **options)
        alone[task] = images_of(env, 3)
        env.close()
    envs = {task: suite(task, **options) for task in DISTRACTING_TASKS}
    for env in envs.values():
        env.reset(seed=0)
    for task, env in envs.items():
        np.testing.assert_array_equal(images_of(env, 3), alone[task])
    envs.pop("walker-walk").close()
    for task, env in envs.items():
        np.testing.assert_array_equal(images_of(env, 3), alone[task])
        env.close()


@pytest.mark.parametrize("dynamic", [False, True])
def test_render_shows_the_same_background_as_the_image(dynamic):
    env = suite("walker-walk", size=(100, 100), difficulty="hard", dynamic=dynamic, render_mode="rgb_array")
    for seed in (0, 1):
        env.reset(seed=seed)
        image = env.step(np.zeros(6, np.float32))[0]["image"]
        picture = env.render()
        coarse = picture.reshape(100, 4, 100, 4, 3).mean(axis=(1, 3))
        assert np.abs(coarse - image).mean() < 6
    env.close()


def test_segmentation_separates_robot_floor_and_background():
    env = suite("cheetah-run", size=(100, 100))
    image = env.reset(seed=0)[0]["image"].astype(int)
    masks = env.unwrapped.segmentation()
    assert masks.shape == (100, 100)
    assert set(np.unique(masks)) == {BACKGROUND, FLOOR, ROBOT}
    is_orange = image[..., 0] - image[..., 2] > 40
    assert ((masks == ROBOT) & is_orange).sum() > 0.9 * is_orange.sum()
    rows = [np.flatnonzero((masks == part).any(axis=1)).mean() for part in (ROBOT, FLOOR)]
    assert rows[0] < rows[1]
    np.testing.assert_array_equal(env.reset(seed=0)[0]["image"], image)  # segmentation has no side effects
    env.close()


def test_segmentation_uses_the_current_camera_pose():
    env = suite("cartpole-swingup", difficulty="hard", dynamic=True)
    env.reset(seed=0)
    first = env.unwrapped.segmentation()
    for _ in range(5):
        env.step(np.zeros(1, np.float32))
    assert (env.unwrapped.segmentation() != first).any()
    env.close()


def test_a_transparent_floor_is_background():
    env = suite("reacher-easy", difficulty="medium")
    env.reset(seed=0)
    assert FLOOR not in env.unwrapped.segmentation()
    env.close()


def test_a_string_belongs_to_the_robot():
    env = suite("ball_in_cup-catch", size=(240, 320))
    env.reset(seed=0)
    taut = (env.unwrapped.segmentation() == ROBOT).any(axis=1)
    assert np.diff(np.flatnonzero(taut)).max() == 1  # connected from the cup to the ball
    env.close()


def test_only_fast_views_use_a_backdrop():
    env: Any = gymnasium.make("iap/cheetah-run-v0", size=SMALL).unwrapped
    env.reset(seed=0)
    smooth = View(env._model, SMALL, fast=False)
    for _ in range(3):
        smooth.render(env._data)
    assert smooth._backdrop is None
    smooth.close()
    env.close()
