import itertools
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy_cases import some_theta, specs

from iap.policies import CNN, LSTM, MLP, Blind, Hierarchy, PolicyConfig, Rank, blocks, flatten, init, unflatten

SPEC = PolicyConfig((8, 8, 3), sensors=2, actions=2, encoder=Rank(patch=2, stride=2, top_k=3))


@given(specs(), st.integers(0, 99))
def test_theta_comes_back_from_parameters_as_it_went_in(spec, seed):
    theta = some_theta(spec, seed)
    back = flatten(unflatten(spec, theta))
    assert back.dtype == np.float32
    assert np.array_equal(back, theta)


@given(specs(), st.integers(0, 99))
def test_initial_parameters_come_back_from_theta_as_they_were(spec, seed):
    theta = flatten(init(spec, seed))
    assert np.array_equal(flatten(unflatten(spec, theta)), theta)
    assert np.array_equal(flatten(init(spec, seed)), theta)


@given(specs())
def test_blocks_cover_theta_exactly_once_in_order(spec):
    listed = blocks(spec)
    assert listed[0].start == 0
    assert all(a.stop == b.start for a, b in itertools.pairwise(listed))
    assert all(block.stop - block.start == np.prod(block.shape) for block in listed)
    assert listed[-1].stop == len(flatten(init(spec, 0)))
    names = [(block.part, block.name) for block in listed]
    assert len(set(names)) == len(names)


@given(specs())
def test_blocks_lie_where_their_arrays_do(spec):
    theta = np.arange(blocks(spec)[-1].stop, dtype=np.float32)
    params = unflatten(spec, theta)
    for block in blocks(spec):
        tree = getattr(params, block.part)
        *path, leaf = block.name.replace("hidden.", "layers.").split(".")
        for name in path:
            if name == "output" and not hasattr(tree, "output"):
                tree = tree.layers[-1]
            else:
                tree = tree[int(name)] if name.isdigit() else getattr(tree, name)
        assert np.array_equal(np.ravel(getattr(tree, leaf)), theta[block.start : block.stop])


def test_every_part_has_its_blocks():
    assert {block.part for block in blocks(SPEC)} == {"encoder", "controller"}
    assert {block.part for block in blocks(replace(SPEC, hierarchy=Hierarchy()))} == {"encoder", "controller", "low"}
    assert {block.part for block in blocks(replace(SPEC, encoder=Blind()))} == {"controller"}


def test_weights_start_in_units_of_their_fan_in_and_outputs_small():
    spec = PolicyConfig((40, 40, 3), 0, 50, encoder=CNN(((64, 5, 5),)), controller=MLP((200,)))
    drawn = init(spec, 0)
    theta = {block.name: flatten(drawn)[block.start : block.stop] for block in blocks(spec)}
    assert np.std(theta["layers.0.weight"]) == pytest.approx(1 / np.sqrt(75), rel=0.1)
    assert np.std(theta["hidden.0.weight"]) == pytest.approx(1 / np.sqrt(64 * 64), rel=0.1)
    assert np.std(theta["output.weight"]) == pytest.approx(0.1 / np.sqrt(200), rel=0.1)
    assert not theta["output.bias"].any()


def test_other_seeds_draw_other_parameters():
    assert not np.array_equal(flatten(init(SPEC, 0)), flatten(init(SPEC, 1)))


@pytest.mark.parametrize("length", [0, 1, 10_000])
def test_a_theta_of_the_wrong_length_is_refused(length):
    with pytest.raises(ValueError, match=rf"theta must be of shape \(\d+,\) for this spec, not \({length},\)"):
        unflatten(SPEC, np.zeros(length, np.float32))


def test_a_theta_with_nan_is_refused():
    theta = some_theta(SPEC)
    theta[3] = np.nan
    with pytest.raises(ValueError, match="theta must be finite"):
        unflatten(SPEC, theta)


def test_parameters_do_not_change_with_the_theta_they_came_from():
    theta = some_theta(SPEC)
    before = theta.copy()
    params = unflatten(SPEC, theta)
    theta[:] = 0
    assert np.array_equal(flatten(params), before)


def test_a_huge_spec_lists_its_blocks_without_making_them():
    huge = replace(SPEC, image_shape=(1024, 1024, 3), controller=LSTM(1 << 40), encoder=Rank(masked=True))
    assert blocks(huge)[-1].stop > 1 << 60
    with pytest.raises(ValueError, match="theta must be of shape"):
        unflatten(huge, np.zeros(3))


@pytest.mark.parametrize("gain", [0.5, 2.0])
def test_a_low_level_follows_commands_at_the_gain_it_is_given(gain):
    spec = replace(SPEC, hierarchy=Hierarchy(latent_size=3, gain=gain))
    low = next(block for block in blocks(spec) if block.part == "low" and block.name.endswith("weight"))
    weights = [flatten(init(spec, seed))[low.start : low.stop].reshape(low.shape)[:, :3] for seed in range(200)]
    assert np.std(weights) == pytest.approx(gain, rel=0.1)
