from dataclasses import replace

import numpy as np
import pytest

from iap.attention.patches import Grid
from iap.evaluation.attention_statistics import attention_statistics, patch_classes
from iap.policies import Attention, PolicyFile, blocks, flatten, init
from iap.training.config import fit_to_env
from iap.training.presets import preset
from iap.zoo.locate import locate_policy

NAMES = ("sky", "floor", "wall")


def attention_on(patch, stride, side, selected=(0,)):
    across = (side - patch) // stride + 1
    return Attention(np.zeros(across**2, np.float32), np.array(selected), Grid(across, across), patch, stride)


def test_pixels_have_the_class_that_they_show_and_neighbours_of_another_class_are_a_boundary():
    labels = np.zeros((6, 6), int)
    labels[3:] = 1
    named = np.array(patch_classes(attention_on(1, 1, 6), labels, NAMES)).reshape(6, 6)
    assert set(named[:2].ravel()) == {"sky"}
    assert set(named[2:4].ravel()) == {"boundary of sky and floor"}
    assert set(named[4:].ravel()) == {"floor"}


def test_the_class_of_a_patch_depends_on_all_its_pixels_and_the_adjacent_ones():
    labels = np.zeros((9, 9), int)
    labels[4, 4] = 2
    named = np.array(patch_classes(attention_on(3, 3, 9), labels, NAMES)).reshape(3, 3)
    assert named[1, 1] == "boundary of sky and wall"
    assert (named == "sky").sum() == 8


@pytest.fixture(scope="module")
def untrained():
    config = fit_to_env(preset("obstacle-course"))
    return PolicyFile(
        config=config.policy,
        theta=flatten(init(config.policy, 0)),
        normaliser=None,
        env_id=config.env.id,
        env_kwargs=dict(config.env.kwargs),
        facts={},
    )


def test_shares_of_attention_and_of_area_each_sum_to_1(untrained):
    rows = attention_statistics(untrained, episodes=2, max_steps=40)
    assert sum(row["attention"] for row in rows) == pytest.approx(1)
    assert sum(row["area"] for row in rows) == pytest.approx(1)
    assert {"sky", "floor", "wall"} <= {row["class"] for row in rows}


def test_attention_to_one_colour_is_counted_on_the_class_of_that_colour(untrained):
    theta = untrained.theta.copy()
    place = {block.name: block for block in blocks(untrained.config) if block.part == "encoder"}
    for name in ("query.bias", "query.weight", "key.bias", "key.weight"):
        theta[place[name].start : place[name].stop] = 0
    theta[place["query.bias"].start : place["query.bias"].stop] = 1  # all queries are the same
    keys = theta[place["key.weight"].start : place["key.weight"].stop].reshape(place["key.weight"].shape)
    keys[:, 0] = -1  # keys are large where there is no red: on the walls
    rows = attention_statistics(replace(untrained, theta=theta), episodes=2, max_steps=40)
    on_walls = sum(row["attention"] for row in rows if "wall" in row["class"])
    assert on_walls > 0.9
    assert sum(row["area"] for row in rows if "wall" in row["class"]) < 0.5


def test_an_environment_without_segmentation_is_refused():
    with pytest.raises(ValueError, match="iap/Seek-v0 does not implement Segmentation"):
        attention_statistics(locate_policy("zoo:seek")[0], episodes=1)
