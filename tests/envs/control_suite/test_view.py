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


def stepped(env: Any, steps: int) -> np.ndarray:
    env.reset(seed=1)
    space = env.action_space
    rng = np.random.default_rng(0)
    moves = [rng.uniform(space.low, space.high).astype(np.float32) for _ in range(steps)]
    return np.array([env.step(action)[0]["image"] for action in moves])


@pytest.mark.parametrize("difficulty", [None, "hard"])
@pytest.mark.parametrize("task", [*DISTRACTING_TASKS, "humanoid-stand"])
def test_a_backdrop_that_was_drawn_before_makes_the_same_image_to_the_bit(task, difficulty):
    env = suite(task, difficulty=difficulty, visual_seed=5)
    env.reset(seed=1)
    view, data = env.unwrapped._view, env.unwrapped._data
    for action in np.zeros((4, *env.action_space.shape), np.float32):
        image = env.step(action)[0]["image"]
        np.testing.assert_array_equal(image, Camera.render(view, data))
    # A camera that moves along with the robot, over a floor that lets the sky through, has nothing that stays the same.
    assert (view._backdrop is not None) == (task != "humanoid-stand" or difficulty is None)
    env.close()


def test_what_passes_behind_a_translucent_floor_is_tinted_by_it_to_the_bit():
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
def test_a_backdrop_is_drawn_again_when_something_in_it_changes(changed):
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


def test_a_backdrop_is_drawn_again_when_the_camera_turns():
    env = suite("cheetah-run", difficulty="medium", dynamic=True, distractions=["camera"])
    env.reset(seed=1)
    view, data = env.unwrapped._view, env.unwrapped._data
    for action in np.zeros((4, 6), np.float32):
        np.testing.assert_array_equal(env.step(action)[0]["image"], Camera.render(view, data))
    assert view._backdrop is None
    env.close()


@pytest.mark.parametrize("task", DISTRACTING_TASKS)
def test_distracted_pixels_are_those_of_a_full_quality_render_of_the_model(task):
    mujoco = load_mujoco()
    env = suite(task, size=(100, 100), difficulty="medium", visual_seed=2)
    images = stepped(env, 3)
    renderer = mujoco.Renderer(env.unwrapped._model, 100, 100)
    env.unwrapped._distractions.apply(env.unwrapped._data)
    renderer.update_scene(env.unwrapped._data, camera=0)
    full = renderer.render()
    renderer.close()
    difference, masks = np.abs(images[-1].astype(int) - full), env.unwrapped.segmentation()
    assert difference[masks == BACKGROUND].mean() < 1  # of 255
    assert difference[masks == ROBOT].mean() < 20  # most of it edges, which are smoothed there
    assert difference.mean() < (9 if task == "walker-walk" else 2)  # walker's wide floor reflects there
    np.testing.assert_array_equal(stepped(env, 3), images)  # after a foreign renderer has come and gone
    env.close()


def test_distracted_envs_of_one_process_do_not_spoil_each_others_images():
    options = {"difficulty": "medium", "dynamic": True}
    alone = {}
    for task in DISTRACTING_TASKS:
        env = suite(task, **options)
        alone[task] = stepped(env, 3)
        env.close()
    envs = {task: suite(task, **options) for task in DISTRACTING_TASKS}
    for env in envs.values():
        env.reset(seed=0)
    for task, env in envs.items():
        np.testing.assert_array_equal(stepped(env, 3), alone[task])
    envs.pop("walker-walk").close()
    for task, env in envs.items():
        np.testing.assert_array_equal(stepped(env, 3), alone[task])
        env.close()


@pytest.mark.parametrize("dynamic", [False, True])
def test_the_picture_shows_the_same_background_as_the_image(dynamic):
    env = suite("walker-walk", size=(100, 100), difficulty="hard", dynamic=dynamic, render_mode="rgb_array")
    for seed in (0, 1):
        env.reset(seed=seed)
        image = env.step(np.zeros(6, np.float32))[0]["image"]
        picture = env.render()
        coarse = picture.reshape(100, 4, 100, 4, 3).mean(axis=(1, 3))
        assert np.abs(coarse - image).mean() < 6
    env.close()


def test_masks_part_robot_floor_and_background():
    env = suite("cheetah-run", size=(100, 100))
    image = env.reset(seed=0)[0]["image"].astype(int)
    masks = env.unwrapped.segmentation()
    assert masks.shape == (100, 100)
    assert set(np.unique(masks)) == {BACKGROUND, FLOOR, ROBOT}
    is_orange = image[..., 0] - image[..., 2] > 40
    assert ((masks == ROBOT) & is_orange).sum() > 0.9 * is_orange.sum()
    rows = [np.flatnonzero((masks == part).any(axis=1)).mean() for part in (ROBOT, FLOOR)]
    assert rows[0] < rows[1]
    np.testing.assert_array_equal(env.reset(seed=0)[0]["image"], image)  # to look at masks changes nothing
    env.close()


def test_masks_are_of_the_view_that_the_image_shows():
    env = suite("cartpole-swingup", difficulty="hard", dynamic=True)
    env.reset(seed=0)
    first = env.unwrapped.segmentation()
    for _ in range(5):
        env.step(np.zeros(1, np.float32))
    assert (env.unwrapped.segmentation() != first).any()
    env.close()


def test_a_floor_that_is_not_there_is_background():
    env = suite("reacher-easy", difficulty="medium")
    env.reset(seed=0)
    assert FLOOR not in env.unwrapped.segmentation()
    env.close()


def test_a_string_belongs_to_the_robot():
    env = suite("ball_in_cup-catch", size=(240, 320))
    env.reset(seed=0)
    taut = (env.unwrapped.segmentation() == ROBOT).any(axis=1)
    assert np.diff(np.flatnonzero(taut)).max() == 1  # from the cup to the ball without a break
    env.close()


def test_only_fast_views_keep_a_backdrop():
    env: Any = gymnasium.make("iap/cheetah-run-v0", size=SMALL).unwrapped
    env.reset(seed=0)
    smooth = View(env._model, SMALL, fast=False)
    for _ in range(3):
        smooth.render(env._data)
    assert smooth._backdrop is None
    smooth.close()
    env.close()
