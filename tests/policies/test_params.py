import itertools
from dataclasses import replace

import numpy as np
import pytest
from config_cases import configs, random_theta, small_config
from hypothesis import given
from hypothesis import strategies as st

from iap.policies import (
    CNN,
    LSTM,
    MLP,
    Blind,
    Hierarchy,
    PolicyConfig,
    Rank,
    SelectedPatches,
    blocks,
    count_params,
    flatten,
    init,
    unflatten,
)

CONFIG = small_config()


@given(configs(), st.integers(0, 99))
def test_theta_survives_unflatten_and_flatten(config, seed):
    theta = random_theta(config, seed)
    back = flatten(unflatten(config, theta))
    assert back.dtype == np.float32
    assert np.array_equal(back, theta)


@given(configs(), st.integers(0, 99))
def test_initial_parameters_depend_on_the_seed_alone_and_survive_flatten_and_unflatten(config, seed):
    theta = flatten(init(config, seed))
    assert np.array_equal(flatten(unflatten(config, theta)), theta)
    assert np.array_equal(flatten(init(config, seed)), theta)


@given(configs())
def test_blocks_cover_theta_exactly_once_in_order(config):
    listed = blocks(config)
    assert listed[0].start == 0
    assert all(a.stop == b.start for a, b in itertools.pairwise(listed))
    assert all(block.stop - block.start == np.prod(block.shape) for block in listed)
    assert listed[-1].stop == len(flatten(init(config, 0))) == count_params(config)
    names = [(block.part, block.name) for block in listed]
    assert len(set(names)) == len(names)


@given(configs())
def test_each_block_is_the_place_of_its_array_in_theta(config):
    theta = np.arange(count_params(config), dtype=np.float32)
    params = unflatten(config, theta)
    assert sum(map(len, params.values())) == len(blocks(config))
    for block in blocks(config):
        array = params[block.part][block.name]
        assert array.shape == block.shape
        assert np.array_equal(array.ravel(), theta[block.start : block.stop])


def test_every_part_with_parameters_has_blocks():
    assert {block.part for block in blocks(CONFIG)} == {"encoder", "controller"}
    in_hierarchy = blocks(replace(CONFIG, hierarchy=Hierarchy()))
    assert {block.part for block in in_hierarchy} == {"encoder", "controller", "low_level"}
    assert {block.part for block in blocks(replace(CONFIG, encoder=Blind()))} == {"controller"}


def test_initial_weights_are_in_units_of_their_fan_in_and_outputs_are_small():
    config = PolicyConfig((40, 40, 3), 0, 50, encoder=CNN(((64, 5, 5),)), controller=MLP((200,)))
    params = init(config, 0)
    encoder, controller = params["encoder"], params["controller"]
    assert np.std(encoder["layers.0.weight"]) == pytest.approx(1 / np.sqrt(75), rel=0.1)
    assert np.std(controller["hidden.0.weight"]) == pytest.approx(1 / np.sqrt(64 * 64), rel=0.1)
    assert np.std(controller["output.weight"]) == pytest.approx(0.1 / np.sqrt(200), rel=0.1)
    assert not controller["output.bias"].any()


def test_different_seeds_give_different_initial_parameters():
    assert not np.array_equal(flatten(init(CONFIG, 0)), flatten(init(CONFIG, 1)))


@pytest.mark.parametrize("length", [0, 1, 10_000])
def test_a_theta_of_the_wrong_length_is_refused(length):
    with pytest.raises(ValueError, match=rf"theta must be of shape \(\d+,\) for this policy, not \({length},\)"):
        unflatten(CONFIG, np.zeros(length, np.float32))


def test_a_theta_with_nan_is_refused():
    theta = random_theta(CONFIG)
    theta[3] = np.nan
    with pytest.raises(ValueError, match="theta must be finite"):
        unflatten(CONFIG, theta)


def test_parameters_do_not_change_with_the_theta_they_were_made_from():
    theta = random_theta(CONFIG)
    before = theta.copy()
    params = unflatten(CONFIG, theta)
    theta[:] = 0
    assert np.array_equal(flatten(params), before)


def test_blocks_of_a_huge_config_are_listed_without_allocating_them():
    encoder = Rank(features=SelectedPatches(masked=True))
    huge = replace(CONFIG, image_shape=(1024, 1024, 3), controller=LSTM(1 << 40), encoder=encoder)
    assert blocks(huge)[-1].stop > 1 << 60
    with pytest.raises(ValueError, match="theta must be of shape"):
        unflatten(huge, np.zeros(3))


@pytest.mark.parametrize("gain", [0.5, 2.0])
def test_initial_weights_of_the_low_level_for_commands_have_the_command_gain(gain):
    config = replace(CONFIG, hierarchy=Hierarchy(latent_size=3, command_gain=gain))
    weights = [init(config, seed)["low_level"]["output.weight"][:, :3] for seed in range(200)]
    assert np.std(weights) == pytest.approx(gain, rel=0.1)
