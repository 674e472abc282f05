"""Hierarchical policies: commands, their durations, and what the low level acts on."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from config_cases import observations, random_policy
from hypothesis import given
from hypothesis import strategies as st

from iap.policies import LSTM, MLP, Controller, Hierarchy, Normaliser, PolicyConfig, Rank
from iap.policies.hierarchy import command_steps

BOTH = pytest.mark.parametrize("compiled", [True, False])
CONFIG = PolicyConfig(
    (8, 8, 2),
    3,
    2,
    encoder=Rank(patch=2, stride=2, top_k=3),
    hierarchy=Hierarchy(latent_size=2, max_command_steps=5, low_level=MLP((3,))),
)


class WithoutImage(dict):
    """An observation whose image must not be read."""

    def __getitem__(self, name: str) -> Any:
        assert name != "image", "the image was read while a command was held"
        return super().__getitem__(name)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize(("controller", "compiled"), [(MLP((4,)), False), (LSTM(3), False), (LSTM(3), True)], ids=str)
def test_a_command_is_held_for_its_duration_without_reading_images(seed: int, controller: Controller, compiled: bool):
    policy = random_policy(replace(CONFIG, controller=controller), seed, compiled=compiled)
    state: Any = policy.reset()
    held, commands = [], []
    for observation in observations(CONFIG, 60, seed):
        needs_image = policy.needs_image(state)
        before = state
        action, state, attention = policy.act(state, observation if needs_image else WithoutImage(observation))
        assert (attention is not None) == needs_image
        if needs_image:
            assert state.hold_steps + 1 in range(1, 6)
            commands.append(state.hold_steps + 1)
            held.append(0)
        else:
            assert np.array_equal(state.latent, before.latent)
            assert np.array_equal(state.hidden, before.hidden)
        held[-1] += 1
        assert action.shape == (2,)
    assert held[:-1] == commands[:-1]
    assert len(commands) > 5


@BOTH
def test_commands_have_different_durations(compiled: bool):
    policy = random_policy(CONFIG, 1, compiled=compiled)
    state, durations = policy.reset(), set()
    for observation in observations(CONFIG, 100):
        needs_image = policy.needs_image(state)
        _, state, _ = policy.act(state, observation)
        if needs_image:
            durations.add(state.hold_steps + 1)
    assert len(durations) > 1


@given(st.floats(-1, 1), st.integers(1, 12))
def test_durations_are_from_one_to_the_maximum(output: float, most: int):
    steps = command_steps(output, most)
    assert 1 <= steps <= most
    assert abs(steps - (1 + (most - 1) * (output + 1) / 2)) <= 0.5 + 1e-5


def test_the_shortest_and_the_longest_duration_can_be_reached():
    assert [command_steps(x, 10) for x in (-1, 0, 1)] == [1, 5, 10]


@BOTH
def test_the_low_level_acts_on_the_command_and_on_the_sensors_of_this_step(compiled: bool):
    normaliser = Normaliser.of(np.random.default_rng(1).standard_normal((9, CONFIG.inputs_size)) * 3)
    policy = random_policy(CONFIG, 3, normaliser, compiled=compiled)
    low = policy.params["low_level"]
    state = policy.reset()
    for observation in observations(CONFIG, 12):
        action, state, _ = policy.act(state, observation)
        assert np.array_equal(state.inputs[-3:], observation["sensors"])
        x = np.concatenate([state.latent, normaliser.apply(state.inputs)[-3:]])
        for name in ("hidden.0", "output"):
            x = np.tanh(low[f"{name}.weight"] @ x + low[f"{name}.bias"])
        np.testing.assert_allclose(action, x, atol=1e-6)


@BOTH
def test_features_stay_while_a_command_is_held_and_sensors_change(compiled: bool):
    policy = random_policy(CONFIG, compiled=compiled)
    state = policy.reset()
    for observation in observations(CONFIG, 30):
        before, needs_image = state, policy.needs_image(state)
        _, state, _ = policy.act(state, observation)
        if not needs_image:
            assert np.array_equal(state.inputs[:-3], before.inputs[:-3])
        assert np.array_equal(state.inputs[-3:], observation["sensors"])


@BOTH
def test_commands_of_one_step_encode_an_image_at_every_step(compiled: bool):
    config = replace(CONFIG, hierarchy=Hierarchy(max_command_steps=1, low_level=MLP((3,))))
    policy = random_policy(config, compiled=compiled)
    state = policy.reset()
    for observation in observations(config, 5):
        assert policy.needs_image(state)
        _, state, attention = policy.act(state, observation)
        assert attention is not None
