import math
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from iap.envs.core import make_env
from iap.envs.seek import AGENT, PICTURE_SIDE, SPEED, STEPS_BETWEEN_JUMPS, TARGET

EPISODES = 60


def seek(**options) -> Any:
    return make_env("iap/Seek-v0", **options)


def returns(act, episodes: int = EPISODES, **options) -> np.ndarray:
    """The returns of the policy `act(privileged state, step)`."""
    env = seek(**options)
    totals = np.zeros(episodes)
    for seed in range(episodes):
        env.reset(seed=seed)
        step, ended = 0, False
        while not ended:
            _, reward, _, ended, _ = env.step(act(env.unwrapped.privileged_state(), step))
            totals[seed] += float(reward)
            step += 1
    return totals


def straight_on(state: np.ndarray, _step: int) -> np.ndarray:
    path = state[2:] - state[:2]
    return path / max(np.abs(path).max(), SPEED)


def has_colour(image: np.ndarray, colour: tuple[int, int, int]) -> np.ndarray:
    """Which pixels have approximately this colour."""
    return np.abs(image.astype(int) - colour).max(axis=-1) < 40


def centre_of(image: np.ndarray, colour: tuple[int, int, int]) -> np.ndarray:
    """The centre of the pixels with approximately this colour, in image widths."""
    return (np.argwhere(has_colour(image, colour)).mean(axis=0) + 0.5) / len(image)


def test_the_environment_passes_the_checker_of_gymnasium():
    check_env(gymnasium.make("iap/Seek-v0", render_mode="rgb_array", disable_env_checker=True).unwrapped)


def test_moving_straight_to_the_target_has_a_high_return():
    totals = returns(straight_on)
    assert 3.5 < totals.mean() < 4.0
    assert totals.min() > 2.2


def test_standing_still_has_a_return_of_zero():
    assert (returns(lambda *_: np.zeros(2), episodes=5) == 0).all()


@pytest.mark.parametrize("heading", range(0, 360, 60))
def test_a_constant_direction_has_no_positive_return(heading):
    direction = np.array([math.cos(math.radians(heading)), math.sin(math.radians(heading))])
    assert returns(lambda *_: direction).mean() < 0.05


@pytest.mark.parametrize("radius", [0.15, 0.3, 0.4])
@pytest.mark.parametrize("turn", [0.1, 0.2])
def test_moving_in_circles_has_no_return_on_average(radius, turn):
    def act(state, step):
        place = 0.5 + radius * np.array([math.cos(turn * step), math.sin(turn * step)])
        return np.clip((place - state[:2]) / SPEED, -1, 1)

    assert abs(returns(act).mean()) < 0.25


def test_a_random_walk_has_no_return_on_average():
    rng = np.random.default_rng(0)
    assert abs(returns(lambda *_: rng.uniform(-1, 1, 2)).mean()) < 0.25


def test_the_image_contains_everything_that_a_policy_needs():
    env = seek()
    totals = np.zeros(20)
    for seed in range(len(totals)):
        image = env.reset(seed=seed)[0]["image"]
        ended = False
        while not ended:
            hidden = not has_colour(image, TARGET).any()  # below the agent, which has reached it
            path = np.zeros(2) if hidden else centre_of(image, TARGET) - centre_of(image, AGENT)
            observation, reward, _, ended, _ = env.step(np.clip(path / SPEED, -1, 1))
            image = observation["image"]
            totals[seed] += float(reward)
    assert totals.mean() > 3.3


@pytest.mark.parametrize("options", [{}, {"size": 48}, {"distractors": 3}])
def test_discs_are_at_the_positions_of_the_privileged_state(options):
    env = seek(**options)
    for seed in range(20):
        image = env.reset(seed=seed)[0]["image"]
        state = env.unwrapped.privileged_state()
        if np.abs(state[2:] - state[:2]).max() > 0.2:  # they do not overlap
            np.testing.assert_allclose(centre_of(image, AGENT), state[:2], atol=0.5 / len(image))
            np.testing.assert_allclose(centre_of(image, TARGET), state[2:], atol=0.5 / len(image))


@pytest.mark.parametrize("size", [8, 9, 32, 50])
def test_discs_fit_into_every_corner_at_every_size(size):
    env = seek(size=size)
    for direction in ([-1, -1], [-1, 1], [1, -1], [1, 1]):
        image = env.reset(seed=0)[0]["image"]
        for _ in range(40):
            image = env.step(np.array(direction, np.float32))[0]["image"]
        assert image.shape == (size, size, 3)
        corner = env.unwrapped.privileged_state()[:2]
        np.testing.assert_allclose(np.abs(corner - 0.5), 0.42, atol=1e-6)
        row, column = (corner * size).astype(int)
        np.testing.assert_allclose(image[row, column], AGENT, atol=100 if size < 16 else 1)


def test_the_target_jumps_at_fixed_times_independently_of_the_agent():
    env = seek()
    paths = []
    for direction in ([1, 0], [0, -1]):
        env.reset(seed=4)
        states = [env.unwrapped.privileged_state()]
        for _ in range(3 * STEPS_BETWEEN_JUMPS):
            env.step(np.array(direction, np.float32))
            states.append(env.unwrapped.privileged_state())
        paths.append(np.array(states)[:, 2:])
    np.testing.assert_array_equal(*paths)
    jumps = np.flatnonzero((np.diff(paths[0], axis=0) != 0).any(axis=1)) + 1
    np.testing.assert_array_equal(jumps, STEPS_BETWEEN_JUMPS * np.arange(1, 4))


def test_equal_seeds_give_equal_episodes():
    first, second = seek(distractors=2), seek(distractors=2)
    second.reset(seed=1)
    for env in (first, second):
        env.reset(seed=9)
    rng = np.random.default_rng(0)
    for _ in range(30):
        action = rng.uniform(-1, 1, 2).astype(np.float32)
        ours, theirs = first.step(action), second.step(action)
        np.testing.assert_array_equal(ours[0]["image"], theirs[0]["image"])
        assert ours[1:] == theirs[1:]
    assert (first.reset(seed=10)[0]["image"] != first.reset(seed=11)[0]["image"]).any()


def test_only_the_discs_have_the_colours_of_target_and_agent():
    env = seek(distractors=4)
    pixels = (np.indices((32, 32)).transpose(1, 2, 0) + 0.5) / 32
    for seed in range(20):
        image = env.reset(seed=seed)[0]["image"]
        state = env.unwrapped.privileged_state()
        for colour, position in ((AGENT, state[:2]), (TARGET, state[2:])):
            assert np.linalg.norm(pixels[has_colour(image, colour)] - position, axis=-1).max(initial=0) < 0.1


def test_distractors_are_painted_and_change_nothing_else():
    plain, crowded = seek(), seek(distractors=3)
    difference = plain.reset(seed=0)[0]["image"].astype(int).sum() - crowded.reset(seed=0)[0]["image"].astype(int).sum()
    assert difference < -1000
    assert 3.3 < returns(straight_on, episodes=20, distractors=3).mean() < 4.2


def test_render_shows_the_same_scene_in_more_pixels():
    env = seek(render_mode="rgb_array")
    image = env.reset(seed=5)[0]["image"]
    picture = np.asarray(env.render())
    assert picture.shape == (PICTURE_SIDE, PICTURE_SIDE, 3)
    smaller = picture.reshape(32, 8, 32, 8, 3).mean(axis=(1, 3))
    assert np.abs(smaller - image).mean() < 1
    np.testing.assert_allclose(centre_of(picture, TARGET), env.unwrapped.privileged_state()[2:], atol=0.005)


@pytest.mark.parametrize("options", [{"size": 7}, {"size": 5000}, {"distractors": -1}])
def test_invalid_options_are_refused(options):
    with pytest.raises(ValueError, match="must be between"):
        seek(**options)
