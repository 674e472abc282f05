"""`iap/PointNav-v0` and `iap/IndoorCourse-v0`: checkers, determinism, rewards, symmetry, options."""

import math
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

import iap
from iap.envs.indoor.indoor_course import STALL_STEPS
from iap.envs.indoor.task import IndoorTask
from iap.envs.protocols import (
    LazyRendering,
    PrivilegedState,
    PrivilegedTeacher,
    Segmentation,
    Symmetry,
    find_protocol,
)

IDS = ("iap/PointNav-v0", "iap/IndoorCourse-v0")
IMAGES = ("rgb", "depth", "rgbd", "proximity")
SIZE = (16, 24)

each_env = pytest.mark.parametrize("id", IDS)


def make(id: str, scene, **options: Any) -> Any:
    distance = {"distance_m": (1.0, 3.0)} if id == IDS[0] else {"distance_m": (1.5, 4.0)}
    return iap.make_env(id, **({"size": SIZE} | distance | scene.options | options))


def task_of(env: Any) -> IndoorTask:
    assert isinstance(env.unwrapped, IndoorTask)
    return env.unwrapped


@each_env
@pytest.mark.parametrize("image", IMAGES)
@pytest.mark.filterwarnings("ignore:.*A Box observation space (minimum|maximum) value is -?infinity")
def test_they_pass_the_checker_of_gymnasium(small_scene, id, image):
    env = gymnasium.make(id, disable_env_checker=True, image=image, size=SIZE, **small_scene.options).unwrapped
    check_env(env, skip_render_check=True)
    env.close()


@each_env
def test_they_pass_the_checker_of_stable_baselines3(small_scene, id):
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    env: Any = gymnasium.make(id, disable_env_checker=True, size=(40, 40), **small_scene.options)
    checker.check_env(env)
    env.close()


@each_env
def test_the_same_seed_gives_the_same_episode(small_scene, id):
    def run() -> list:
        env = make(id, small_scene)
        observations = [env.reset(seed=5)[0]]
        actions = np.random.default_rng(1).uniform(-1, 1, (20, *env.action_space.shape)).astype(np.float32)
        rewards = []
        for action in actions:
            observation, reward, *_ = env.step(action)
            observations.append({key: value.copy() for key, value in observation.items()})
            rewards.append(reward)
        env.close()
        return [rewards, observations]

    (rewards, observations), (other_rewards, others) = run(), run()
    assert rewards == other_rewards
    for one, other in zip(observations, others, strict=True):
        assert all(np.array_equal(one[key], other[key]) for key in one)


@each_env
def test_other_seeds_give_other_episodes(small_scene, id):
    env = make(id, small_scene)
    goals = {env.reset(seed=seed)[1]["goal"] for seed in range(6)}
    env.close()
    assert len(goals) > 3


@each_env
def test_they_offer_what_training_and_evaluation_use(small_scene, id):
    env = make(id, small_scene)
    env.reset(seed=0)
    for protocol in (LazyRendering, Segmentation, PrivilegedState, PrivilegedTeacher, Symmetry):
        assert find_protocol(env, protocol) is not None, protocol
    task = task_of(env)
    assert task.segmentation().shape == SIZE
    assert task.privileged_state().shape == (7,)
    label = task.label()
    assert label.action.shape == env.action_space.shape
    assert np.abs(label.action).max() <= 1
    env.close()


@each_env
def test_without_rendering_the_last_image_is_returned(small_scene, id):
    env = make(id, small_scene)
    first = env.reset(seed=0)[0]["image"].copy()
    task_of(env).set_rendering(False)
    ahead = np.ones(env.action_space.shape, np.float32)
    images = [env.step(ahead)[0]["image"] for _ in range(10)]
    assert all(np.array_equal(image, first) for image in images)
    task_of(env).set_rendering(True)
    assert not np.array_equal(env.step(ahead)[0]["image"], first)
    env.close()


@pytest.mark.parametrize("image", IMAGES)
def test_images_agree_with_each_other(small_scene, image):
    env, depth = make(IDS[0], small_scene, image=image), make(IDS[0], small_scene, image="depth")
    shown, metres = (e.reset(seed=3)[0]["image"] for e in (env, depth))
    assert env.observation_space.contains(env.reset(seed=3)[0])
    if image == "rgbd":
        assert np.abs(shown[..., 3] * (10 / 255) - metres[..., 0]).max() <= 0.02 + 1e-3
    if image == "proximity":
        assert np.abs(shown / 255 - 1 / (1 + metres)).max() <= 0.5 / 255 + 1e-5
    env.close()
    depth.close()


@each_env
def test_the_mirror_image_of_a_scene_gives_mirrored_observations_and_labels(small_scene, write_scene, tmp_path, id):
    mirrored_scene = write_scene(tmp_path / "mirrored", mirrored=True)
    env, mirrored = (make(id, scene, image="depth") for scene in (small_scene, mirrored_scene))
    env.reset(seed=2)
    mirrored.reset(seed=2)
    task, other = task_of(env), task_of(mirrored)
    pose = task.robot.pose()
    other.robot.reset(type(pose)(pose.x, -pose.y, -pose.yaw_rad), np.random.default_rng(0))
    task.robot.reset(pose, np.random.default_rng(2))  # the other foot first: half a cycle later
    goal = task.route.goal
    other.route = type(task.route).to(other.route.map, other.robot.radius_m, (goal[0], -goal[1]))
    signed = np.array(task.symmetry["actions"])
    places, signs = np.abs(signed) - 1, np.sign(signed)
    np.testing.assert_allclose(other.label().action, task.label().action[places] * signs, atol=0.1)
    state, other_state = (np.array(each.label().state) for each in (task, other))
    np.testing.assert_allclose(other_state, np.concatenate([[state[0], -state[1]], state[:1:-1]]), atol=0.06)
    sensors = np.abs(np.array(task.symmetry["sensors"])) - 1
    assert sorted(sensors) == list(range(env.observation_space["sensors"].shape[0]))
    assert len(task.symmetry["offsets"]) == len(sensors)
    images = [t.robot.depth() for t in (task, other)]
    assert np.median(np.abs(images[1] - images[0][:, ::-1])) < 0.02
    env.close()
    mirrored.close()


def test_the_teacher_of_point_nav_reaches_its_goals_on_short_paths(small_scene):
    env = make(IDS[0], small_scene)
    task = task_of(env)
    for seed in range(4):
        _, info = env.reset(seed=seed)
        shortest, total = info["shortest_m"], 0.0
        task.set_rendering(False)
        ended = False
        while not ended:
            _, reward, terminated, truncated, info = env.step(task.label().action)
            total += float(reward)
            ended = terminated or truncated
        assert info["ended"] == "success"
        assert info["spl"] > 0.85
        assert total == pytest.approx(2.5 + shortest - info["distance_m"], abs=0.05)
    env.close()


@pytest.mark.parametrize("reward", ["success", "spl"])
def test_other_rewards_come_with_the_success_only(small_scene, reward):
    env = make(IDS[0], small_scene, reward=reward)
    task = task_of(env)
    env.reset(seed=1)
    rewards, ended, info = [], False, {}
    while not ended:
        _, value, ended, _, info = env.step(task.label().action)
        rewards.append(value)
    assert rewards[-1] == info[reward]
    assert not any(rewards[:-1])
    env.close()


def test_the_rolling_base_stops_at_a_wall_and_reports_collisions(small_scene):
    env = make(IDS[0], small_scene, max_episode_steps=200)
    observation, info = env.reset(seed=0)
    for _ in range(60):
        observation, _, terminated, _, info = env.step(np.array([1.0, 0.0], np.float32))
        if terminated:
            pytest.fail("the goal was straight ahead")
    x, y, _ = task_of(env).robot.pose()
    assert info["collisions"] > 10
    assert observation["sensors"][-1] == 1
    assert abs(x) <= 2.0 - 0.15
    assert abs(y) <= 1.5 - 0.15
    env.close()


def test_the_a1_walks_to_its_goal_behind_its_teacher_and_is_stopped_by_the_crate(small_scene):
    env = make(IDS[1], small_scene)
    task = task_of(env)
    _, info = env.reset(seed=1)
    task.set_rendering(False)
    for _ in range(400):
        _, _, terminated, _, info = env.step(task.label().action)
        if terminated:
            break
    assert info["ended"] == "arrived"
    pose = type(task.robot.pose())(-0.2, 0.3, 0.0)  # the crate begins 0.7 m ahead
    task.robot.reset(pose, np.random.default_rng(0))
    touched = False
    for _ in range(150):
        touched |= task.robot.step(np.array([0.5, 1.0, 0.0, 0.0, 0.0]))
        x, y, _ = task.robot.pose()
        assert x < 0.5 or not -0.1 < y < 0.7  # it may slide along the crate, but not pass through it
    assert touched
    env.close()


def test_the_course_ends_when_the_robot_stalls(small_scene):
    env = make(IDS[1], small_scene)
    env.reset(seed=0)
    task_of(env).set_rendering(False)
    on_the_spot = np.array([0, -1, 0, 0, 0], np.float32)
    steps, terminated, info = 0, False, {}
    while not terminated and steps < 300:
        _, _, terminated, _, info = env.step(on_the_spot)
        steps += 1
    assert info["ended"] == "stalled"
    assert steps >= STALL_STEPS
    env.close()


@each_env
@pytest.mark.parametrize("action", [np.zeros(1), np.full(9, 0.1), np.array(0.0)])
def test_an_action_of_another_shape_is_refused(small_scene, id, action):
    env = make(id, small_scene)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="action must be of shape"):
        task_of(env).step(action)
    env.close()


@each_env
def test_an_action_that_is_not_finite_is_refused(small_scene, id):
    env = make(id, small_scene)
    env.reset(seed=0)
    with pytest.raises(ValueError, match="action must be finite"):
        task_of(env).step(np.full(env.action_space.shape, math.nan))
    env.close()


@pytest.mark.parametrize(
    ("id", "options", "problem"),
    [
        (IDS[0], {"robot": "car"}, "robot must be one of"),
        (IDS[0], {"image": "grey"}, "image must be one of"),
        (IDS[0], {"reward": "speed"}, "reward must be one of"),
        (IDS[0], {"split": "test"}, "split must be one of"),
        (IDS[0], {"size": (0, 4)}, "size"),
        (IDS[0], {"fov_deg": 179}, "fov_deg must be"),
        (IDS[0], {"distance_m": (3, 2)}, "distance_m must be"),
        (IDS[0], {"distance_m": 3}, r"distance_m must be \(least, greatest\)"),
        (IDS[0], {"success_m": 0}, "success_m must be"),
        (IDS[0], {"scenes": 0}, "scenes must be"),
        (IDS[0], {"floor": -1}, "floor must be"),
        (IDS[0], {"resolution_m": 5}, "resolution_m must be"),
        (IDS[1], {"guide_m": 0}, "guide_m must be"),
        (IDS[1], {"v_cap": 0}, "v_cap must be"),
    ],
)
def test_a_wrong_option_is_refused_by_its_name(id, options, problem):
    with pytest.raises((ValueError, TypeError), match=problem):
        iap.make_env(id, **options)


def test_the_point_nav_of_an_a1_has_its_actions_and_sensors(small_scene):
    env = make(IDS[0], small_scene, robot="a1")
    assert env.action_space.shape == (5,)
    observation, _ = env.reset(seed=0)
    assert observation["sensors"].shape == (11,)
    env.close()


@each_env
def test_pictures_of_the_robot_are_rendered(small_scene, id):
    env = make(id, small_scene, render_mode="rgb_array", image="depth")
    env.reset(seed=0)
    picture = env.render()
    assert picture.shape == (480, 640, 3)
    assert picture.std() > 10
    env.close()
