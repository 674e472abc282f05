"""Where the parts of a robot are in the image, and robots in any pose."""

import numpy as np
import pytest

from iap.envs.contract import make_env

SIZE = (60, 80)


def pixel_of(place):
    return tuple(int((x + 1) / 2 * side) for x, side in zip(place, SIZE, strict=True))


@pytest.mark.parametrize("task", ["reacher-easy", "cartpole-swingup"])
def test_parts_are_seen_where_places_tells(task):
    """Painted in a colour that nothing else has, each part shows at its place, whatever the camera."""
    part = {"reacher-easy": "target", "cartpole-swingup": "cart"}[task]
    env = make_env(f"iap/{task}-v0", size=SIZE, difficulty=0.3, distractions=("camera",))
    suite, rng = env.unwrapped, np.random.default_rng(0)
    model = suite._model
    number = model.geom(part).id
    model.geom_matid[number], model.geom_rgba[number] = -1, (0, 1, 0, 1)
    hits = 0
    for seed in range(12):
        env.reset(seed=seed)
        image = suite.scatter(rng)["image"].astype(int)
        [place] = suite.places([part])
        if np.abs(place).max() < 0.95:
            red, green, blue = image[pixel_of(place)]
            assert green > 40 + max(red, blue)
            hits += 1
    env.close()
    assert hits >= 8


def test_scattered_joints_fill_their_limits_and_keep_them():
    env = make_env("iap/cartpole-swingup-v0", size=(8, 8))
    env.reset(seed=0)
    rng, poses = np.random.default_rng(1), []
    for _ in range(300):
        env.unwrapped.scatter(rng)
        poses.append(env.unwrapped.true_state())
    env.close()
    x, angle, *speeds = np.array(poses).T
    assert 1.7 < np.abs(x).max() <= 1.8
    assert 3.0 < np.abs(angle).max() <= np.pi
    assert min(np.std(speeds, axis=1)) > 0.5


def test_a_part_that_is_not_there_is_refused_with_those_that_are():
    env = make_env("iap/cartpole-swingup-v0", size=(8, 8))
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"parts must be some of .*cart.* not 'leg'"):
        env.unwrapped.places(["leg"])
    env.close()
