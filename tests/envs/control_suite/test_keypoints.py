"""Where the parts of a robot are in the image, and robots in any pose."""

from typing import Any

import numpy as np
import pytest

from iap.envs.core import make_env

SIZE = (60, 80)


def pixel_of(place):
    return tuple(int((x + 1) / 2 * side) for x, side in zip(place, SIZE, strict=True))


@pytest.mark.parametrize("task", ["reacher-easy", "cartpole-swingup"])
def test_parts_are_seen_where_places_tells(task):
    """Painted in a colour that nothing else has, each part shows at its place, whatever the camera."""
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
        place = suite.keypoints([part])
        if np.abs(place).max() < 0.95:
            red, green, blue = image[pixel_of(place)]
            assert green > 40 + max(red, blue)
            hits += 1
    env.close()
    assert hits >= 8


def test_scattered_joints_fill_their_limits_and_keep_them():
    env = make_env("iap/cartpole-swingup-v0", size=(8, 8))
    env.reset(seed=0)
    suite: Any = env.unwrapped
    rng, poses = np.random.default_rng(1), []
    for _ in range(300):
        suite.randomize_state(rng)
        poses.append(suite.simulator_state())
    env.close()
    x, angle, *speeds = np.array(poses).T
    assert 1.7 < np.abs(x).max() <= 1.8
    assert 3.0 < np.abs(angle).max() <= np.pi
    assert min(np.std(speeds, axis=1)) > 0.5


def test_a_part_that_is_not_there_is_refused_with_those_that_are():
    with pytest.raises(ValueError, match=r"parts must be some of .*cart.* not 'leg'"):
        make_env("iap/cartpole-swingup-v0", size=(8, 8), keypoints=("leg",))


def test_places_are_told_along_single_axes_of_the_image_and_of_the_room():
    env = make_env("iap/cartpole-swingup-v0", size=SIZE, difficulty=0.2, distractions=("camera",))
    suite: Any = env.unwrapped
    env.reset(seed=1)
    suite.randomize_state(np.random.default_rng(3))
    x, angle, *_ = suite.simulator_state()
    room = suite.keypoints(["x of cart", "x of pole_1 from cart", "z of pole_1 from cart"])
    row, column, *apart = suite.keypoints(["pole_1 from cart", "column of pole_1", "column of cart", "row of cart"])
    env.close()
    np.testing.assert_allclose(room, [x, 0.5 * np.sin(angle), 0.5 * np.cos(angle)], atol=1e-5)
    assert column == pytest.approx(apart[0] - apart[1])
    assert abs(row) > 0.01
    with pytest.raises(ValueError, match="parts may be told along x, y, z, row, column, not along 'w'"):
        make_env("iap/cartpole-swingup-v0", size=(8, 8), keypoints=("w of cart",))


@pytest.mark.parametrize("error", [-0.1, 2.0])
def test_an_error_that_is_none_is_refused(error):
    with pytest.raises(ValueError, match="keypoint_noise must be between 0 and 1"):
        make_env("iap/cartpole-swingup-v0", size=(8, 8), keypoints=("cart",), keypoint_noise=error)


def test_sensors_hold_the_places_of_what_is_told_and_err_as_much_as_was_asked_for():
    parts, exact, wrong = ("cart", "pole_1"), [], []
    for error, told in ((0.0, exact), (0.1, wrong)):
        env = make_env(
            "iap/cartpole-swingup-v0",
            size=(8, 8),
            keypoints=parts,
            keypoint_noise=error,
            difficulty=0.2,
            distractions="camera",
        )
        suite: Any = env.unwrapped
        for seed in range(40):
            observation, _ = env.reset(seed=seed)
            told.append([observation["sensors"], env.step(np.ones(1, np.float32))[0]["sensors"]])
            if not error:
                np.testing.assert_allclose(told[-1][1], suite.keypoints(parts), rtol=1e-6)
        env.close()
    errors = np.array(wrong) - np.array(exact)
    assert 0.12 < errors.std() < 0.17  # the root of two squares: of the episode, and of the step
    assert 0.12 < (errors[:, 1] - errors[:, 0]).std() < 0.17  # of two steps


def test_a_part_is_in_view_where_the_image_shows_its_middle():
    env = make_env("iap/cartpole-swingup-v0", size=(60, 60))
    env.reset(seed=0)
    suite: Any = env.unwrapped
    assert suite.keypoints_visible(["x of cart", "z of pole_1 from cart"])
    beyond = 0
    for seed in range(40):
        suite.randomize_state(np.random.default_rng(seed))
        inside = np.abs(suite.keypoints(["cart"])).max() <= 1
        assert suite.keypoints_visible(["cart"]) == suite.keypoints_visible(["x of cart"]) == inside
        beyond += not inside
    env.close()
    assert 0 < beyond < 40
