"""Observations of all layouts whose meaning is clear become one image and sensors; and all kinds of actions."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium import spaces

from iap.envs.core import action_count, make_env, to_action

RNG = np.random.default_rng(0)
ACTION = spaces.Box(-1, 1, (2,), np.float32)


class Shows(gymnasium.Env):
    """An environment with a constant observation."""

    action_space = ACTION

    def __init__(self, space: spaces.Space, shows: Any) -> None:
        self.observation_space, self.shows = space, shows

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.shows, {}

    def step(self, action):
        return self.shows, 0.0, False, False, {}


def bytes_of(*shape: int) -> np.ndarray:
    return RNG.integers(0, 256, shape, dtype=np.uint8)


def box(shape: tuple[int, ...], dtype: Any = np.uint8, high: float = 255) -> spaces.Box:
    return spaces.Box(0, high, shape, dtype)


def observed(space: spaces.Space, shows: Any, **options: Any) -> dict[str, np.ndarray]:
    env = make_env(Shows(space, shows), **options)
    observation = env.reset(seed=0)[0]
    assert env.observation_space.contains(observation)
    return observation


@pytest.mark.parametrize("shape", [(3, 32, 32), (3, 24, 32), (1, 9, 12), (4, 84, 84), (12, 64, 64)])
def test_channels_that_come_first_become_the_last(shape):
    image = bytes_of(*shape)
    np.testing.assert_array_equal(observed(box(shape), image)["image"], image.transpose(1, 2, 0))


@pytest.mark.parametrize("shape", [(32, 32, 3), (24, 32, 4), (84, 84, 12), (48, 64, 9), (4, 64, 3)])
def test_channels_that_come_last_stay(shape):
    image = bytes_of(*shape)
    np.testing.assert_array_equal(observed(box(shape), image)["image"], image)


@pytest.mark.parametrize("first", [False, True], ids=["last", "first"])
def test_stacked_frames_become_channels(first):
    frames = bytes_of(4, 16, 20, 3)
    shown = frames.transpose(0, 3, 1, 2) if first else frames
    image = observed(box(shown.shape), shown)["image"]
    np.testing.assert_array_equal(image, np.concatenate(list(frames), axis=-1))


def test_gymnasiums_frame_stack_of_a_dict_is_understood():
    space = spaces.Dict(image=box((16, 16, 3)), joints=spaces.Box(-1, 1, (2,), np.float32))
    shows = {"image": bytes_of(16, 16, 3), "joints": np.array([0.5, -0.5], np.float32)}
    env = make_env(gymnasium.wrappers.FrameStackObservation(Shows(space, shows), 3, padding_type="reset"))
    observation = env.reset(seed=0)[0]
    assert observation["image"].shape == (16, 16, 9)
    np.testing.assert_array_equal(observation["sensors"], [0.5, -0.5] * 3)


def test_several_cameras_are_put_below_each_other_in_the_order_that_is_asked_for():
    views = {"left": bytes_of(8, 10, 3), "right": bytes_of(8, 10, 3), "top": bytes_of(8, 10, 3)}
    space = spaces.Dict({name: box((8, 10, 3)) for name in views})
    everything = np.concatenate(list(views.values()))
    np.testing.assert_array_equal(observed(space, views)["image"], everything)
    two = observed(space, views, cameras=("top", "left"))["image"]
    np.testing.assert_array_equal(two, np.concatenate([views["top"], views["left"]]))
    with pytest.raises(ValueError, match="cameras must name images of the observation, left, right, top, not bottom"):
        observed(space, views, cameras=("bottom",))


def test_cameras_of_different_sizes_fit_after_resizing():
    views = {"a": bytes_of(8, 10, 3), "b": bytes_of(20, 30, 3)}
    space = spaces.Dict({name: box(view.shape) for name, view in views.items()})
    assert observed(space, views, image_size=(8, 8))["image"].shape == (16, 8, 3)


def test_entries_of_nested_observations_are_found_and_named():
    space = spaces.Dict(
        eye=spaces.Dict(rgb=box((8, 8, 3)), focus=spaces.Discrete(2)),
        body=spaces.Tuple([spaces.Box(-1, 1, (2,), np.float32), spaces.MultiBinary(2)]),
    )
    shows = {"eye": {"rgb": bytes_of(8, 8, 3), "focus": 1}, "body": (np.array([0.25, 0.5], np.float32), [1, 0])}
    observation = observed(space, shows, cameras=("eye.rgb",))
    np.testing.assert_array_equal(observation["image"], shows["eye"]["rgb"])
    np.testing.assert_array_equal(observation["sensors"], [0.25, 0.5, 1, 0, 0, 1])


def test_depth_beside_colour_can_be_left_out():
    space = spaces.Dict(rgb=box((8, 8, 3)), depth=box((8, 8), np.float32, 9))
    shows = {"rgb": bytes_of(8, 8, 3), "depth": np.ones((8, 8), np.float32)}
    observation = observed(space, shows, cameras="rgb")
    assert observation["image"].shape == (8, 8, 3)
    assert observation.keys() == {"image"}


@pytest.mark.parametrize("size", [None, (4, 4)])
def test_16_bit_images_keep_their_values(size):
    image = np.full((8, 8), 40_000, np.uint16)
    found = observed(box((8, 8), np.uint16, 65535), image, image_size=size)["image"]
    assert found.dtype == np.uint16
    assert (found == 40_000).all()


def test_small_arrays_of_two_axes_beside_an_image_are_sensors():
    space = spaces.Dict(image=box((8, 8, 3)), joints=spaces.Box(-1, 1, (3, 4), np.float32))
    shows = {"image": bytes_of(8, 8, 3), "joints": np.zeros((3, 4), np.float32)}
    assert observed(space, shows)["sensors"].shape == (12,)


def test_each_part_of_a_multi_discrete_is_chosen_by_its_largest_number():
    space = spaces.MultiDiscrete([3, 2], start=[0, 5])
    assert action_count(space) == 5
    action = to_action(space, np.array([0.1, 0.9, -1, 0.2, 0.3], np.float32))
    assert action.tolist() == [1, 6]
    assert space.contains(action)
    table = spaces.MultiDiscrete(np.array([[2, 3], [2, 2]]))
    assert table.contains(to_action(table, np.zeros(9, np.float32)))


def test_the_numbers_of_a_multi_binary_are_1_where_they_are_positive():
    space = spaces.MultiBinary(3)
    assert action_count(space) == 3
    action = to_action(space, np.array([0.1, 0.0, -0.1], np.float32))
    assert action.tolist() == [1, 0, 0]
    assert space.contains(action)
    assert spaces.MultiBinary([2, 2]).contains(to_action(spaces.MultiBinary([2, 2]), np.ones(4, np.float32)))


@pytest.mark.parametrize("space", [spaces.MultiDiscrete([2, 2]), spaces.MultiBinary(4)])
def test_nan_is_refused(space):
    with pytest.raises(ValueError, match="NaN"):
        to_action(space, np.full(4, np.nan, np.float32))
