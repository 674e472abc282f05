import importlib.util
import math
import warnings
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from iap.envs.core import make_env
from iap.envs.quadruped.obstacle_course.course import CourseOptions
from iap.envs.quadruped.simulation.protocol import SEGMENTS
from iap.envs.rendering.camera import Camera

ID = "iap/ObstacleCourse-v0"
STILL = np.zeros(17, np.float32)
STEERING = 4
STRAIGHT = {"start_y_m": 0, "start_yaw_rad": 0, "wall_jitter_m": 0}


@pytest.fixture
def course():
    """Makes environments with options, and closes them at the end."""
    made: list[gymnasium.Env] = []

    def make(**options: Any) -> Any:
        made.append(make_env(ID, **options))
        return made[-1]

    yield make
    for env in made:
        env.close()


def random_actions(count: int, seed: int = 0) -> np.ndarray:
    return np.repeat(np.random.default_rng(seed).uniform(-0.5, 0.5, (-(-count // 10), 17)), 10, axis=0)[:count]


def mirrored_action(action: np.ndarray) -> np.ndarray:
    other = action.copy()
    other[STEERING] *= -1
    other[5:] = (action[5:].reshape(4, 3)[[1, 0, 3, 2]] * [-1, 1, 1]).ravel()
    return other


def follow(env: Any, actions: Any, seed: int = 0) -> tuple[list[dict], np.ndarray, np.ndarray]:
    """Observations, states and rewards of an episode."""
    observation, _ = env.reset(seed=seed)
    observations, states, rewards = [observation], [env.unwrapped.privileged_state()], []
    for action in actions:
        observation, reward, terminated, truncated, _ = env.step(action)
        observations.append(observation)
        states.append(env.unwrapped.privileged_state())
        rewards.append(reward)
        if terminated or truncated:
            break
    return observations, np.array(states), np.array(rewards)


def share_of_different_pixels(image: np.ndarray, other: np.ndarray) -> float:
    """The share of pixels that differ by more than rounding."""
    return np.mean(np.abs(image.astype(int) - other).max(axis=-1) > 2)


def run_without_images(env: Any, act: Any = lambda _: STILL, seed: int = 0) -> tuple[float, int, str | None]:
    """Return, number of steps and reason of termination of the policy `act(env)`."""
    env.reset(seed=seed)
    env.unwrapped.set_rendering(False)
    total, steps = 0.0, 0
    while True:
        _, reward, terminated, truncated, info = env.step(act(env.unwrapped))
        total, steps = total + reward, steps + 1
        if terminated or truncated:
            return total, steps, info.get("ended")


def towards_the_gaps(env: Any) -> np.ndarray:
    """Steer towards the next gap, which only the simulator knows."""
    x, y = env.privileged_state()[:2]
    w, z = env.privileged_state()[[3, 6]]
    wall = next(wall for wall in env.course.walls if wall.x_m > x - 0.2)
    aim = (1.5 - wall.gap_m / 2) * (1 if wall.gap_at_left else -1)
    heading = math.atan2(aim - y, max(wall.x_m - x - 0.3, 0.3)) - 2 * math.atan2(z, w)
    action = STILL.copy()
    action[STEERING] = np.clip(1.5 * heading, -1, 1)
    return action


@pytest.mark.filterwarnings("ignore:.*infinity. This is probably too")  # rates have no bounds
def test_the_environment_passes_the_checker_of_gymnasium():
    env = gymnasium.make(ID, render_mode="rgb_array", disable_env_checker=True).unwrapped
    check_env(env)
    env.close()


@pytest.mark.skipif(importlib.util.find_spec("stable_baselines3") is None, reason="stable-baselines3 is not installed")
def test_the_environment_passes_the_checker_of_stable_baselines3(course):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns that small images do not fit its own networks
        from stable_baselines3.common.env_checker import check_env as check

        check(course())


def test_observations_are_an_image_of_any_size_and_nineteen_sensors(course):
    env = course(size=(20, 44))
    observation, _ = env.reset(seed=0)
    assert observation["image"].shape == (20, 44, 3)
    assert observation["sensors"].shape == (19,)
    assert env.observation_space.contains(observation)


def test_zero_actions_walk_straight_at_one_metre_per_second(course):
    env = course(walls=0, start_y_m=0, start_yaw_rad=0)
    _, states, rewards = follow(env, [STILL] * 200)
    assert len(rewards) == 200
    assert np.abs(states[:, 1]).max() < 0.25
    assert 3.2 < rewards.sum() < 4.2


def test_with_zero_actions_the_episode_ends_at_the_first_wall(course):
    total, steps, ended = run_without_images(course(gap_m=(0.5, 0.6), wall_friction=1.0, **STRAIGHT))
    assert 1.2 < total < 2.0
    assert steps < 250
    assert ended == "stalled"


def test_a_policy_that_knows_the_gaps_walks_through_them(course):
    env = course()
    totals = [run_without_images(env, towards_the_gaps, seed)[0] for seed in range(5)]
    assert min(totals) > 7


@pytest.mark.parametrize("steering", [-1, 1])
def test_positive_steering_turns_to_the_left(course, steering):
    env = course(walls=0, **STRAIGHT)
    action = STILL.copy()
    action[STEERING] = steering
    _, states, _ = follow(env, [action] * 40)
    assert 0.5 < steering * 2 * math.atan2(states[-1, 6], states[-1, 3]) < 2


def test_the_reward_is_the_forward_distance_up_to_the_cap(course):
    _, states, rewards = follow(course(v_cap=0.015), [STILL] * 60)
    np.testing.assert_allclose(rewards, np.clip(np.diff(states[:, 0]), -0.015, 0.015), atol=1e-5)
    assert (rewards == 0.015).any()
    assert (rewards < 0.015).any()


def test_an_episode_has_at_most_500_steps(course):
    assert run_without_images(course(walls=0, **STRAIGHT))[1:] == (500, None)


def test_leaving_the_platform_terminates(course):
    env = course(walls=0, gap_m=(0.5, 0.6), width_m=1.0, start_y_m=0, start_yaw_rad=3)
    assert run_without_images(env)[2] == "off the platform"


def test_falling_terminates(course):
    action = STILL.copy()
    action[5::3] = np.tile([1, -1], 2)  # every foot inwards
    action[:4] = 1
    assert run_without_images(course(walls=0), lambda _: action)[2] == "fallen"


@pytest.mark.parametrize("seed", range(3))
def test_mirrored_course_and_actions_give_the_mirrored_episode(course, seed):
    ours, theirs = course(), course()
    actions = random_actions(150, seed)
    here, info = ours.reset(seed=seed)
    there, mirror_info = theirs.reset(seed=seed, options={"mirrored": True})
    assert mirror_info["course"] == info["course"].mirrored() != info["course"]
    for action in actions:
        assert share_of_different_pixels(here["image"], there["image"][:, ::-1]) < 0.005
        here, reward, terminated, *_ = ours.step(action)
        there, reward_there, *_ = theirs.step(mirrored_action(action))
        position, mirrored = (env.unwrapped._state.position_m for env in (ours, theirs))
        np.testing.assert_allclose(position, mirrored * [1, -1, 1], rtol=0, atol=1e-10)
        assert reward == pytest.approx(reward_there, abs=1e-10)
        if terminated:
            break


def test_equal_seeds_give_equal_episodes_in_any_environment(course):
    first, second = course(), course()
    actions = random_actions(60)
    expected = follow(first, actions, seed=5)
    follow(second, random_actions(80, seed=9), seed=6)
    for env in (second, first):
        observations, states, rewards = follow(env, actions, seed=5)
        np.testing.assert_array_equal(states, expected[1])
        np.testing.assert_array_equal(rewards, expected[2])
        for ours, theirs in zip(observations, expected[0], strict=True):
            np.testing.assert_array_equal(ours["image"], theirs["image"])
            np.testing.assert_array_equal(ours["sensors"], theirs["sensors"])


def test_environments_with_different_image_sizes_do_not_affect_each_other(course):
    actions = random_actions(4)
    alone = follow(course(size=(40, 24)), actions, seed=1)[0]
    small, large = course(size=(40, 24), render_mode="rgb_array"), course(size=(64, 64), walls=2)
    small.reset(seed=1)
    large.reset(seed=2)
    for action, expected in zip(actions, alone[1:], strict=True):
        large.step(action)
        small.render()
        np.testing.assert_array_equal(small.step(action)[0]["image"], expected["image"])
    large.close()
    assert (small.step(STILL)[0]["image"] != 0).any()


def test_images_are_rendered_only_if_rendering_is_enabled(course, monkeypatch):
    drawn = []
    draw = Camera.render
    monkeypatch.setattr(Camera, "render", lambda camera, data: drawn.append(1) or draw(camera, data))
    env = course()
    first, _ = env.reset(seed=0)
    env.unwrapped.set_rendering(False)
    for _ in range(5):
        held = env.step(STILL)[0]
        np.testing.assert_array_equal(held["image"], first["image"])
        assert (held["sensors"] != first["sensors"]).any()
    assert len(drawn) == 1
    env.unwrapped.set_rendering(True)
    assert (env.step(STILL)[0]["image"] != first["image"]).any()
    assert len(drawn) == 2
    env.unwrapped.set_rendering(False)
    env.reset()
    assert len(drawn) == 3


def test_rendering_does_not_change_the_motion(course):
    env = course()
    rendered = follow(env, random_actions(40))[1]
    env.reset(seed=0)
    env.unwrapped.set_rendering(False)
    for action in random_actions(40):
        env.step(action)
    np.testing.assert_array_equal(env.unwrapped.privileged_state(), rendered[-1])


def test_segments_have_different_colours(course):
    env = course(**STRAIGHT)
    image = env.reset(seed=3)[0]["image"].astype(int)
    segments = env.unwrapped.segmentation()
    assert segments.shape == (32, 32)
    sky, floor, wall = (image[segments == SEGMENTS.index(name)].mean(axis=0) for name in ("sky", "floor", "wall"))
    for one, other in ((sky, floor), (floor, wall), (wall, sky)):
        assert np.abs(one - other).max() > 60


def test_the_rendered_scene_shows_the_orange_legs_in_the_middle(course):
    env = course(render_mode="rgb_array")
    env.reset(seed=0)
    picture = env.render().astype(int)
    assert picture.shape == (480, 640, 3)
    orange = np.argwhere((picture[..., 0] > 180) & (picture[..., 2] < 60))
    assert len(orange) > 500
    assert (np.abs(orange.mean(axis=0) - [300, 300]) < 100).all()


def test_drawn_courses_respect_their_options():
    options = CourseOptions(walls=4, gap_m=(0.5, 0.7), spacing_m=2, wall_jitter_m=0.1, width_m=2)
    courses = [options.draw(np.random.default_rng(seed)) for seed in range(50)]
    walls = [wall for course in courses for wall in course.walls]
    assert all(0.5 <= wall.gap_m <= 0.7 for wall in walls)
    assert {wall.gap_at_left for wall in walls} == {True, False}
    assert all(abs(course.walls[3].x_m - 8) <= 0.1 for course in courses)
    for box in courses[0].boxes()[1:]:
        assert abs(box.centre_m[1]) + box.size_m[1] / 2 == pytest.approx(1)


def test_a_course_is_longer_than_a_robot_walks():
    drawn = CourseOptions().draw(np.random.default_rng(0))
    assert drawn.walls[-1].x_m > 12.5
    assert drawn.end_x_m >= 17


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"gap_m": (1.2, 3.0)}, r"gap_m must be less than width_m, 3, not \(1.2, 3.0\)"),
        ({"gap_m": (1.4, 1.2)}, "gap_m must be at least 1.4, not 1.2"),
        ({"gap_m": (0.1, 1.2)}, "gap_m must be at least 0.4, not 0.1"),
        ({"gap_m": 1.2}, r"gap_m must be \(narrowest, widest\), not 1.2"),
        ({"walls": -1}, "walls must be between 0 and 100, not -1"),
        ({"size": (0, 32)}, "size must be between 1 and 1024, not 0"),
        ({"size": 32}, r"size must be \(height, width\), not 32"),
        ({"spacing_m": 0.0}, "spacing_m must be between 0.32 and 100, not 0.0"),
        ({"wall_jitter_m": 2}, "wall_jitter_m must be between 0 and 1.17, not 2"),
        ({"width_m": -3}, "width_m must be between 0.8 and 100, not -3"),
        ({"wall_friction": -0.1}, "wall_friction must be between 0 and 10, not -0.1"),
        ({"start_y_m": 1.5}, "start_y_m must be between 0 and 1.3, not 1.5"),
        ({"start_yaw_rad": math.nan}, "start_yaw_rad must be between 0 and .*, not nan"),
        ({"v_cap": 0}, "v_cap must be at least 1e-06, not 0"),
    ],
)
def test_an_invalid_option_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        make_env(ID, **options)


@pytest.mark.parametrize("options", [{"walls": 2.5}, {"width_m": "3"}, {"v_cap": None}])
def test_an_option_that_is_not_a_number_is_refused(options):
    with pytest.raises(TypeError, match=f"{next(iter(options))} must be a"):
        make_env(ID, **options)


def test_an_action_with_nan_is_refused(course):
    env = course()
    env.reset(seed=0)
    with pytest.raises(ValueError, match="action must be finite"):
        env.step(np.full(17, np.nan))


def test_unknown_options_are_refused_with_the_list_of_options():
    with pytest.raises(TypeError, match=r"has no option wals; it has size, .*residuals, .*walls, gap_m"):
        make_env(ID, wals=3)


def test_an_action_of_another_length_is_refused(course):
    env = course()
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"action must be of shape \(17,\), not \(5,\)"):
        env.step(np.zeros(5))
