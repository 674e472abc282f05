from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy_cases import observations, some_policy

from iap.policies import LSTM, MLP, Hierarchy, Normaliser, PolicyConfig, Rank
from iap.policies.hierarchy import command_of
from iap.policies.trees import LayersParams

SPEC = PolicyConfig(
    (8, 8, 3), 3, 2, encoder=Rank(patch=2, stride=2, top_k=3), hierarchy=Hierarchy(latent_size=2, max_command_steps=5, low=MLP((3,)))
)


class Untouchable(dict):
    """An observation whose image must not be asked for."""

    def __getitem__(self, name):
        assert name != "image", "the image was touched while holding"
        return super().__getitem__(name)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("controller", [MLP((4,)), LSTM(3)])
def test_a_command_is_held_for_as_long_as_it_says_and_the_image_not_touched_meanwhile(seed, controller):
    policy = some_policy(replace(SPEC, controller=controller), seed)
    state = policy.begin()
    held, commands = [], []
    for seen in observations(SPEC, 60, seed):
        looking = policy.needs_image(state)
        before = state
        action, state, attention = policy.act(state, seen if looking else Untouchable(seen))
        assert (attention is not None) == looking
        if looking:
            assert state.hold + 1 in range(1, 6)
            commands.append(state.hold + 1)
            held.append(0)
        else:
            assert np.array_equal(state.latent, before.latent)
            assert np.array_equal(state.hidden, before.hidden)
        held[-1] += 1
        assert action.shape == (2,)
    assert held[:-1] == commands[:-1]
    assert len(commands) > 5


def test_commands_of_different_lengths_occur():
    policy = some_policy(SPEC, 1)
    state, lengths = policy.begin(), set()
    for seen in observations(SPEC, 100):
        looking = policy.needs_image(state)
        _, state, _ = policy.act(state, seen)
        if looking:
            lengths.add(state.hold + 1)
    assert len(lengths) > 1


@given(st.floats(-1, 1), st.integers(1, 12))
def test_durations_run_from_one_to_the_longest(output, longest):
    command = command_of(np.array([0.3, output], np.float32), longest)
    assert 1 <= command.command_steps <= longest
    assert abs(command.command_steps - (1 + (longest - 1) * (output + 1) / 2)) <= 0.5 + 1e-5
    assert command.latent.tolist() == np.array([0.3], np.float32).tolist()


def test_both_ends_of_the_durations_can_be_reached():
    assert [command_of(np.array([x], np.float32), 10).command_steps for x in (-1, 0, 1)] == [1, 5, 10]


def test_the_low_level_acts_on_the_command_and_on_the_sensors_of_this_step():
    gathered = Normaliser.of(np.random.default_rng(1).standard_normal((9, SPEC.inputs_size)) * 3)
    policy = some_policy(SPEC, 3, gathered)
    low = policy.params.low
    assert isinstance(low, LayersParams)
    state = policy.begin()
    for seen in observations(SPEC, 12):
        action, state, _ = policy.act(state, seen)
        assert np.array_equal(state.inputs[-3:], seen["sensors"])
        x = np.concatenate([state.latent, gathered.apply(state.inputs)[-3:]])
        for layer in low.layers:
            assert layer.bias is not None
            x = np.tanh(layer.weight @ x + layer.bias)
        np.testing.assert_allclose(action, x, atol=1e-6)


def test_features_stay_while_a_command_is_held_and_sensors_go_on():
    policy = some_policy(SPEC)
    state = policy.begin()
    for seen in observations(SPEC, 30):
        before, looking = state, policy.needs_image(state)
        _, state, _ = policy.act(state, seen)
        if not looking:
            assert np.array_equal(state.inputs[:-3], before.inputs[:-3])
        assert np.array_equal(state.inputs[-3:], seen["sensors"])


def test_a_hold_of_one_looks_at_every_step():
    spec = replace(SPEC, hierarchy=Hierarchy(max_command_steps=1))
    policy = some_policy(spec)
    state = policy.begin()
    for seen in observations(spec, 5):
        assert policy.needs_image(state)
        _, state, attention = policy.act(state, seen)
        assert attention is not None
