"""Keypoints of body parts in the image and in the world, and random states."""

from typing import Any

import numpy as np
import pytest

from iap.envs.control_suite.keypoints import Keypoint, parse_keypoint
from iap.envs.core import make_env
from iap.envs.protocols import Keypoints, RandomizableState, keypoint_size, require_protocol

SIZE = (60, 80)


def pixel_of(keypoint):
    return tuple(int((x + 1) / 2 * side) for x, side in zip(keypoint, SIZE, strict=True))


@pytest.mark.parametrize(
    ("name", "keypoint"),
    [
        ("cart", Keypoint("cart")),
        ("target from finger", Keypoint("target", "finger")),
        ("x of cart", Keypoint("cart", None, ("x",))),
        ("column of pole_1 from cart", Keypoint("pole_1", "cart", ("column",))),
    ],
)
def test_names_of_keypoints_are_parsed(name, keypoint):
    assert parse_keypoint(name) == keypoint


def test_the_number_of_coordinates_is_known_before_a_reset():
    env = make_env("iap/cartpole-swingup-v0", size=(8, 8))
    assert keypoint_size(env, ["x of cart", "pole_1 from cart", "cart"]) == 5
    assert keypoint_size(env, []) == 0
    env.close()


@pytest.mark.parametrize("task", ["reacher-easy", "cartpole-swingup"])
def test_a_part_is_at_the_pixel_of_its_keypoint(task):
    """The part is painted in a colour that nothing else has, under random camera poses."""
    part = {"reacher-easy": "target", "cartpole-swingup": "cart"}[task]
    env = make_env(f"iap/{task}-v0", size=SIZE, difficulty=0.3, distractions=("camera",))
    suite: Any = env.unwrapped
    rng = np.random.default_rng(0)
    model = suite._model
    number = model.geom(part).id
    model.geom_matid[number], model.geom_rgba[number] = -1, (0, 1, 0, 1)
    hits = 0
    for seed in range(12):
        env.reset(seed=seed)
        image = suite.randomize_state(rng)["image"].astype(int)
        keypoint = suite.keypoints([part])
        if np.abs(keypoint).max() < 0.95:
            red, green, blue = image[pixel_of(keypoint)]
            assert green > 40 + max(red, blue)
            hits += 1
    env.close()
    assert hits >= 8


def test_random_states_fill_the_joint_limits():
    env = make_env("iap/cartpole-swingup-v0", size=(8, 8))
    env.reset(seed=0)
    suite: Any = env.unwrapped
    rng, states = np.random.default_rng(1), []
    for _ in range(300):
        require_protocol(env, RandomizableState).randomize_state(rng)
        states.append(suite.simulator_state())
    env.close()
    x, angle, *speeds = np.array(states).T
    assert 1.7 < np.abs(x).max() <= 1.8
    assert 3.0 < np.abs(angle).max() <= np.pi
    assert min(np.std(speeds, axis=1)) > 0.5


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"keypoints": ("leg",)}, "keypoints must be of the parts .*cart.* not of 'leg'"),
        ({"keypoints": ("w of cart",)}, "keypoint axes must be some of x, y, z, row, column, not 'w'"),
        ({"keypoints": ("cart",), "keypoint_noise": -0.1}, "keypoint_noise must be between 0 and 1"),
        ({"keypoints": ("cart",), "keypoint_noise": 2.0}, "keypoint_noise must be between 0 and 1"),
    ],
)
def test_invalid_keypoints_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        make_env("iap/cartpole-swingup-v0", size=(8, 8), **options)


def test_keypoints_may_be_single_coordinates_of_the_image_and_of_the_world():
    env = make_env("iap/cartpole-swingup-v0", size=SIZE, difficulty=0.2, distractions=("camera",))
    suite: Any = env.unwrapped
    env.reset(seed=1)
    suite.randomize_state(np.random.default_rng(3))
    x, angle, *_ = suite.simulator_state()
    world = suite.keypoints(["x of cart", "x of pole_1 from cart", "z of pole_1 from cart"])
    row, column, *columns = suite.keypoints(["pole_1 from cart", "column of pole_1", "column of cart", "row of cart"])
    env.close()
    np.testing.assert_allclose(world, [x, 0.5 * np.sin(angle), 0.5 * np.cos(angle)], atol=1e-5)
    assert column == pytest.approx(columns[0] - columns[1])
    assert abs(row) > 0.01


def test_sensors_contain_keypoints_with_noise_of_the_requested_size():
    parts, exact, noisy = ("cart", "pole_1"), [], []
    for noise, sensors in ((0.0, exact), (0.1, noisy)):
        options: dict[str, Any] = {"keypoints": parts, "keypoint_noise": noise, "distractions": "camera"}
        env = make_env("iap/cartpole-swingup-v0", size=(8, 8), difficulty=0.2, **options)
        located = require_protocol(env, Keypoints)
        for seed in range(40):
            observation, _ = env.reset(seed=seed)
            sensors.append([observation["sensors"], env.step(np.ones(1, np.float32))[0]["sensors"]])
            if not noise:
                np.testing.assert_allclose(sensors[-1][1], located.keypoints(parts), rtol=1e-6)
        env.close()
    errors = np.array(noisy) - np.array(exact)
    assert 0.12 < errors.std() < 0.17  # the error of the episode plus that of the step
    assert 0.12 < (errors[:, 1] - errors[:, 0]).std() < 0.17  # the errors of two steps


def test_keypoints_are_visible_if_all_their_parts_are_inside_the_image():
    env = make_env("iap/cartpole-swingup-v0", size=(60, 60))
    env.reset(seed=0)
    suite: Any = env.unwrapped
    assert suite.keypoints_visible(["x of cart", "z of pole_1 from cart"])
    outside = 0
    for seed in range(40):
        suite.randomize_state(np.random.default_rng(seed))
        inside = np.abs(suite.keypoints(["cart"])).max() <= 1
        assert suite.keypoints_visible(["cart"]) == suite.keypoints_visible(["x of cart"]) == inside
        outside += not inside
    env.close()
    assert 0 < outside < 40
