from dataclasses import replace

import numpy as np
import pytest

from iap.attention.patches import Grid
from iap.evaluation.attention_statistics import attended, things
from iap.evaluation.evaluate import locate_policy
from iap.policies import Attention, blocks, flatten, init
from iap.policies.serialization import PolicyFile
from iap.training.config import fitted_to_env
from iap.training.presets.registry import preset

NAMES = ("sky", "floor", "wall")


def look(patch, stride, side, chosen=(0,)):
    across = (side - patch) // stride + 1
    return Attention(np.zeros(across**2, np.float32), np.array(chosen), Grid(across, across), patch, stride)


def test_pixels_are_named_by_what_they_show_and_boundaries_by_what_meets_there():
    labels = np.zeros((6, 6), int)
    labels[3:] = 1
    named = np.array(things(look(1, 1, 6), labels, NAMES)).reshape(6, 6)
    assert set(named[:2].ravel()) == {"sky"}
    assert set(named[2:4].ravel()) == {"boundary of sky and floor"}
    assert set(named[4:].ravel()) == {"floor"}


def test_patches_are_named_by_all_their_pixels_and_those_around():
    labels = np.zeros((9, 9), int)
    labels[4, 4] = 2
    named = np.array(things(look(3, 3, 9), labels, NAMES)).reshape(3, 3)
    assert named[1, 1] == "boundary of sky and wall"
    assert (named == "sky").sum() == 8


@pytest.fixture(scope="module")
def untrained():
    config = fitted_to_env(preset("obstacle-course"))
    return PolicyFile(
        spec=config.policy,
        theta=flatten(init(config.policy, 0)),
        normaliser=None,
        env_id=config.env.id,
        env_kwargs=dict(config.env.kwargs),
        facts={},
    )


def test_shares_of_attention_and_of_the_image_are_whole(untrained):
    rows = attended(untrained, episodes=2, max_steps=40)
    assert sum(row["attention"] for row in rows) == pytest.approx(1)
    assert sum(row["area"] for row in rows) == pytest.approx(1)
    assert {"sky", "floor", "wall"} <= {row["thing"] for row in rows}


def test_attention_to_one_colour_is_found_there(untrained):
    theta = untrained.theta.copy()
    place = {block.name: block for block in blocks(untrained.spec) if block.part == "encoder"}
    for name in ("query.bias", "query.weight", "key.bias", "key.weight"):
        theta[place[name].start : place[name].stop] = 0
    theta[place["query.bias"].start : place["query.bias"].stop] = 1  # every query asks for the same
    keys = theta[place["key.weight"].start : place["key.weight"].stop].reshape(place["key.weight"].shape)
    keys[:, 0] = -1  # and a key answers where there is no red: at the walls
    rows = attended(replace(untrained, theta=theta), episodes=2, max_steps=40)
    on_walls = sum(row["attention"] for row in rows if "wall" in row["thing"])
    assert on_walls > 0.9
    assert sum(row["area"] for row in rows if "wall" in row["thing"]) < 0.5


def test_an_environment_that_cannot_tell_is_refused():
    with pytest.raises(ValueError, match="cannot tell what its pixels show"):
        attended(locate_policy("zoo:seek")[0], episodes=1)
