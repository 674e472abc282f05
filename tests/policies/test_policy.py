import copy
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from policy_cases import observations, some_policy, specs

from iap.policies import (
    AttentionAgent,
    Hierarchy,
    Normaliser,
    Policy,
    PolicyConfig,
    Rank,
    State,
    blind_baseline,
    cnn_baseline,
)

SPEC = PolicyConfig((8, 8, 3), sensors=2, actions=2, encoder=Rank(patch=2, stride=2, top_k=3))


def same(a: State, b: State) -> bool:
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in State._fields)


@given(specs(), st.integers(0, 99))
def test_the_same_state_and_observation_give_the_same_action_and_stay_as_they_were(spec, seed):
    gathered = Normaliser.of(np.random.default_rng(seed).standard_normal((9, spec.inputs_size)))
    policy, twin = some_policy(spec, seed, gathered), some_policy(spec, seed, gathered)
    state = policy.begin(seed)
    for seen in observations(spec, 5, seed):
        before, observation = copy.deepcopy(state), copy.deepcopy(seen)
        action, following, _ = policy.act(state, seen)
        policy.act(following, observations(spec, 1, seed + 1)[0])  # something else in between
        again, also, _ = policy.act(state, seen)
        elsewhere, _, _ = twin.act(before, observation)
        assert np.array_equal(action, again)
        assert np.array_equal(action, elsewhere)
        assert same(following, also)
        assert same(state, before)
        assert all(np.array_equal(seen[name], observation[name]) for name in seen)
        state = following


@given(specs(), st.integers(0, 99))
def test_actions_are_float32_within_one_and_inputs_as_long_as_told(spec, seed):
    policy = some_policy(spec, seed)
    state = policy.begin()
    assert policy.inputs_size == spec.inputs_size
    for seen in observations(spec, 3, seed):
        looking = policy.needs_image(state)
        action, state, attention = policy.act(state, seen)
        assert action.shape == (spec.actions,)
        assert action.dtype == state.inputs.dtype == np.float32
        assert np.abs(action).max() <= 1
        assert state.inputs.shape == (spec.inputs_size,)
        assert looking or attention is None


@given(specs(), st.integers(0, 99))
def test_an_image_that_is_not_wanted_may_be_missing(spec, seed):
    policy = some_policy(spec, seed)
    with_all, with_wanted = policy.begin(), policy.begin()
    for seen in observations(spec, 6, seed):
        wanted = seen if policy.needs_image(with_wanted) else seen | {"image": None}
        action, with_all, _ = policy.act(with_all, seen)
        same_action, with_wanted, _ = policy.act(with_wanted, wanted)
        assert np.array_equal(action, same_action)


def test_the_image_is_looked_at_every_so_many_steps_and_sensors_at_each():
    spec = replace(SPEC, image_every=3)
    policy = some_policy(spec)
    state, looked = policy.begin(), []
    for seen in observations(spec, 8):
        looked.append(policy.needs_image(state))
        before = state
        _, state, attention = policy.act(state, seen)
        assert (attention is not None) == looked[-1]
        assert np.array_equal(state.inputs[-2:], seen["sensors"])
        assert looked[-1] or np.array_equal(state.inputs[:-2], before.inputs[:-2])
    assert looked == [True, False, False] * 2 + [True, False]


@pytest.mark.parametrize("image_every", [1, 2])
def test_frames_are_the_newest_readout_then_its_differences_to_those_before(image_every):
    spec = replace(SPEC, frames=3, image_every=image_every)
    policy, single = some_policy(spec), replace(SPEC, image_every=image_every)
    reader = Policy(single, replace(some_policy(single).params, encoder=policy.params.encoder))
    state, plain, readouts = policy.begin(), reader.begin(), []
    for seen in observations(spec, 7):
        looking = policy.needs_image(state)
        _, state, _ = policy.act(state, seen)
        _, plain, _ = reader.act(plain, seen)
        if looking:
            readouts.insert(0, plain.inputs[:6])
        newest, *before = readouts
        differences = [newest - old for old in before[:2]] + [np.zeros(6)] * (2 - len(before))
        assert np.array_equal(state.inputs[:-2], np.concatenate([newest, *differences]))


def test_the_controller_receives_normalised_inputs_and_the_state_keeps_the_raw_ones():
    gathered = Normaliser.of(np.random.default_rng(0).standard_normal((20, SPEC.inputs_size)) * 7 + 3)
    plain, normal = some_policy(SPEC), some_policy(SPEC, 0, gathered)
    (seen,) = observations(SPEC, 1)
    _, state, _ = plain.act(plain.begin(), seen)
    action, also, _ = normal.act(normal.begin(), seen)
    assert np.array_equal(state.inputs, also.inputs)
    (layer,) = normal.params.controller.layers  # pyright: ignore[reportAttributeAccessIssue]
    np.testing.assert_allclose(action, np.tanh(layer.weight @ gathered.apply(state.inputs) + layer.bias), atol=1e-6)


def test_a_policy_that_does_not_normalise_ignores_the_statistics():
    spec = replace(SPEC, normalise=False)
    gathered = Normaliser.of(np.random.default_rng(0).standard_normal((20, spec.inputs_size)))
    plain, given_one = some_policy(spec), some_policy(spec, 0, gathered)
    (seen,) = observations(spec, 1)
    assert np.array_equal(plain.act(plain.begin(), seen)[0], given_one.act(given_one.begin(), seen)[0])


@pytest.mark.parametrize("encoder", [SPEC.encoder, cnn_baseline(SPEC).encoder, AttentionAgent(3, 2, top_k=2)])
def test_bytes_and_the_same_image_as_floats_give_the_same_action(encoder):
    centre = 0 if isinstance(encoder, AttentionAgent) else 0.5
    policy = some_policy(replace(SPEC, encoder=encoder))
    (seen,) = observations(SPEC, 1)
    wanted, _, _ = policy.act(policy.begin(), seen)
    for dtype in (np.float32, np.float64):
        pixels = (seen["image"] / 255 - centre).astype(dtype)
        action, _, _ = policy.act(policy.begin(), seen | {"image": pixels})
        np.testing.assert_allclose(action, wanted, atol=1e-5)
        assert action.dtype == np.float32


def test_an_image_seen_through_a_view_is_the_same_image():
    policy = some_policy(SPEC)
    (seen,) = observations(SPEC, 1)
    upside_down = np.ascontiguousarray(seen["image"][::-1])[::-1]
    wanted, _, _ = policy.act(policy.begin(), seen)
    action, _, _ = policy.act(policy.begin(), seen | {"image": upside_down})
    assert np.array_equal(action, wanted)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"image": None}, TypeError, "image must be a NumPy array at a step that looks, not NoneType"),
        ({"image": np.zeros((8, 9, 3), np.uint8)}, ValueError, r"image must be of shape \(8, 8, 3\), not \(8, 9, 3\)"),
        ({"image": np.zeros((8, 8, 3), np.int32)}, TypeError, "image must be uint8, float32 or float64, not int32"),
        ({"image": np.full((8, 8, 3), np.nan)}, ValueError, "image must be finite"),
        ({"sensors": np.zeros(3)}, ValueError, r"sensors must be of shape \(2,\), not \(3,\)"),
    ],
)
def test_an_observation_that_does_not_fit_is_refused(change, error, message):
    policy = some_policy(SPEC)
    with pytest.raises(error, match=message):
        policy.act(policy.begin(), observations(SPEC, 1)[0] | change)


def test_a_normaliser_or_parameters_of_another_policy_are_refused():
    with pytest.raises(ValueError, match="normaliser has 3 numbers, but inputs have 8"):
        some_policy(SPEC, 0, Normaliser.none(3))
    for other in (cnn_baseline(SPEC), replace(SPEC, hierarchy=Hierarchy()), replace(SPEC, actions=1)):
        with pytest.raises(ValueError, match="params must be arrays of shapes"):
            Policy(SPEC, some_policy(other).params)
        with pytest.raises(ValueError, match="params must be arrays of shapes"):
            Policy(other, some_policy(SPEC).params)
    with pytest.raises(ValueError, match="seed must be at least 0"):
        some_policy(SPEC).begin(-1)


def test_a_blind_policy_never_wants_the_image():
    policy = some_policy(blind_baseline(SPEC))
    state = policy.begin()
    for seen in observations(SPEC, 3):
        assert not policy.needs_image(state)
        _, state, attention = policy.act(state, {"sensors": seen["sensors"]})
        assert attention is None


def test_acting_imports_neither_jax_nor_torch():
    program = """
import sys, numpy as np
from iap.policies import *
spec = PolicyConfig((16, 16, 3), 1, 2)
policies = [spec, cnn_baseline(spec), PolicyConfig((16, 16, 3), 1, 2, Trans(), LSTM()), blind_baseline(spec)]
for spec in policies:
    policy = Policy(spec, init(spec, 0))
    policy.act(policy.begin(), {"image": np.zeros((16, 16, 3), np.uint8), "sensors": np.zeros(1)})
heavy = {"jax", "torch", "evosax", "ray", "gymnasium", "matplotlib"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=120)
