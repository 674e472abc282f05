import copy
import subprocess
import sys
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from config_cases import configs, observations, random_normaliser, random_policy, run, small_config
from hypothesis import given
from hypothesis import strategies as st

from iap.policies import (
    LSTM,
    AttentionAgent,
    EnvReference,
    Hierarchy,
    Normaliser,
    Policy,
    State,
    blind_baseline,
    cnn_baseline,
)

CONFIG = small_config()
FEATURES = CONFIG.features_size  # 6


def same(a: Any, b: Any) -> bool:
    """Whether two states are equal in every field."""
    return all(np.array_equal(getattr(a, name), getattr(b, name)) for name in State._fields)


def check_that_steps_are_pure(policy: Policy, twin: Policy, seed: int) -> None:
    """The same state and observation give the same results, in both policies, and are not changed."""
    config, state = policy.config, policy.reset(seed)
    for observation in observations(config, 5, seed):
        state_before, observation_before = copy.deepcopy(state), copy.deepcopy(observation)
        action, following, _ = policy.act(state, observation)
        policy.act(following, observations(config, 1, seed + 1)[0])  # another step in between
        again, following_again, _ = policy.act(state, observation)
        of_twin, _, _ = twin.act(state_before, observation_before)
        assert np.array_equal(action, again)
        assert np.array_equal(action, of_twin)
        assert same(following, following_again)
        assert same(state, state_before)
        assert all(np.array_equal(observation[name], observation_before[name]) for name in observation)
        state = following


@given(configs(), st.integers(0, 99))
def test_the_same_state_and_observation_give_the_same_action_and_are_not_changed(config, seed):
    normaliser = random_normaliser(config, seed)
    check_that_steps_are_pure(random_policy(config, seed, normaliser), random_policy(config, seed, normaliser), seed)


def test_compiled_steps_give_the_same_action_for_the_same_state_and_observation_and_do_not_change_them():
    config = replace(CONFIG, frames=2, controller=LSTM(3))
    check_that_steps_are_pure(random_policy(config, compiled=True), random_policy(config, compiled=True), seed=0)


@given(configs(), st.integers(0, 99))
def test_actions_are_float32_in_minus_one_to_one_and_inputs_have_the_size_of_the_config(config, seed):
    policy = random_policy(config, seed)
    assert policy.inputs_size == config.inputs_size
    for step in run(policy, observations(config, 3, seed)):
        assert step.action.shape == (config.actions,)
        assert step.action.dtype == step.state.inputs.dtype == np.float32
        assert np.abs(step.action).max() <= 1
        assert step.state.inputs.shape == (config.inputs_size,)
        assert step.needs_image or step.attention is None


@given(configs(), st.integers(0, 99))
def test_an_image_that_is_not_needed_may_be_missing(config, seed):
    policy = random_policy(config, seed)
    with_all, with_needed = policy.reset(), policy.reset()
    for observation in observations(config, 6, seed):
        needed = observation if policy.needs_image(with_needed) else observation | {"image": None}
        action, with_all, _ = policy.act(with_all, observation)
        same_action, with_needed, _ = policy.act(with_needed, needed)
        assert np.array_equal(action, same_action)


@pytest.mark.parametrize("compiled", [False, True])
def test_an_image_is_encoded_every_few_steps_and_sensors_are_read_at_each(compiled):
    config = replace(CONFIG, image_every=3)
    episode = observations(config, 8)
    steps = run(random_policy(config, compiled=compiled), episode)
    before = np.zeros(config.inputs_size)
    for step, observation in zip(steps, episode, strict=True):
        inputs = step.state.inputs
        assert (step.attention is not None) == step.needs_image
        assert np.array_equal(inputs[FEATURES:], observation["sensors"])
        assert step.needs_image or np.array_equal(inputs[:FEATURES], before[:FEATURES])
        before = inputs
    assert [step.needs_image for step in steps] == [True, False, False] * 2 + [True, False]


@pytest.mark.parametrize("image_every", [1, 2])
def test_features_of_several_frames_are_the_newest_and_its_differences_to_earlier_ones(image_every):
    config, one_frame = replace(CONFIG, frames=3, image_every=image_every), replace(CONFIG, image_every=image_every)
    policy, episode = random_policy(config), observations(CONFIG, 7)
    params = random_policy(one_frame).params
    params["encoder"] = policy.params["encoder"]
    encodings = []
    of_one_frame = run(Policy(one_frame, params, compiled=False), episode)
    for step, single in zip(run(policy, episode), of_one_frame, strict=True):
        if step.needs_image:
            encodings.insert(0, single.state.inputs[:FEATURES])
        newest, *before = encodings
        differences = [newest - old for old in before[:2]] + [np.zeros(FEATURES)] * (2 - len(before))
        assert np.array_equal(step.state.inputs[: 3 * FEATURES], np.concatenate([newest, *differences]))


@pytest.mark.parametrize("compiled", [False, True])
def test_the_controller_receives_normalised_inputs_and_the_state_holds_them_before_normalisation(compiled):
    rows = np.random.default_rng(0).standard_normal((20, CONFIG.inputs_size)) * 7 + 3
    normaliser, episode = Normaliser.of(rows), observations(CONFIG, 1)
    (plain,) = run(random_policy(CONFIG, compiled=compiled), episode)
    policy = random_policy(CONFIG, 0, normaliser, compiled=compiled)
    (step,) = run(policy, episode)
    assert np.array_equal(plain.state.inputs, step.state.inputs)
    weight, bias = (policy.params["controller"][f"output.{name}"] for name in ("weight", "bias"))
    wanted = np.tanh(weight @ normaliser.apply(step.state.inputs) + bias)
    np.testing.assert_allclose(step.action, wanted, atol=1e-6)


def test_a_policy_that_does_not_normalise_ignores_the_statistics():
    config = replace(CONFIG, normalise=False)
    episode = observations(config, 1)
    (plain,) = run(random_policy(config), episode)
    (step,) = run(random_policy(config, 0, random_normaliser(config)), episode)
    assert np.array_equal(plain.action, step.action)


@pytest.mark.parametrize("encoder", [CONFIG.encoder, cnn_baseline(CONFIG).encoder, AttentionAgent(3, 2, top_k=2)])
def test_uint8_and_float_images_give_the_same_action(encoder):
    centre = 0 if isinstance(encoder, AttentionAgent) else 0.5
    policy = random_policy(replace(CONFIG, encoder=encoder))
    (observation,) = observations(CONFIG, 1)
    wanted, _, _ = policy.act(policy.reset(), observation)
    for dtype in (np.float32, np.float64):
        pixels = (observation["image"] / 255 - centre).astype(dtype)
        action, _, _ = policy.act(policy.reset(), observation | {"image": pixels})
        np.testing.assert_allclose(action, wanted, atol=1e-5)
        assert action.dtype == np.float32


@pytest.mark.parametrize("compiled", [False, True])
def test_an_image_that_is_not_contiguous_gives_the_same_action(compiled):
    policy = random_policy(CONFIG, compiled=compiled)
    (observation,) = observations(CONFIG, 1)
    view = np.ascontiguousarray(observation["image"][::-1])[::-1]
    wanted, _, _ = policy.act(policy.reset(), observation)
    action, _, _ = policy.act(policy.reset(), observation | {"image": view})
    assert np.array_equal(action, wanted)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"image": None}, TypeError, "image must be a NumPy array at a step that encodes it, not NoneType"),
        ({"image": np.zeros((8, 9, 3), np.uint8)}, ValueError, r"image must be of shape \(12, 16, 3\), not \(8, 9"),
        ({"image": np.zeros((12, 16, 3), np.int32)}, TypeError, "image must be uint8, float32 or float64, not int32"),
        ({"image": np.full((12, 16, 3), np.nan)}, ValueError, "image must be finite"),
        ({"sensors": np.zeros(3)}, ValueError, r"sensors must be of shape \(2,\), not \(3,\)"),
    ],
)
def test_an_observation_that_does_not_fit_is_refused(change, error, message):
    policy = random_policy(CONFIG)
    with pytest.raises(error, match=message):
        policy.act(policy.reset(), observations(CONFIG, 1)[0] | change)


def test_an_image_of_another_dtype_within_an_episode_is_refused():
    policy = random_policy(CONFIG)
    first, second = observations(CONFIG, 2)
    _, state, _ = policy.act(policy.reset(), first)
    with pytest.raises(TypeError, match="image must stay uint8 throughout an episode, not become float32"):
        policy.act(state, second | {"image": second["image"].astype(np.float32)})


def test_a_normaliser_or_parameters_of_another_policy_are_refused():
    with pytest.raises(ValueError, match="normaliser has 3 numbers, but the controller receives 8"):
        random_policy(CONFIG, 0, Normaliser.none(3))
    for other in (cnn_baseline(CONFIG), replace(CONFIG, hierarchy=Hierarchy()), replace(CONFIG, actions=1)):
        with pytest.raises(ValueError, match="params must be arrays"):
            Policy(CONFIG, random_policy(other).params)
        with pytest.raises(ValueError, match="params must be arrays"):
            Policy(other, random_policy(CONFIG).params)
    with pytest.raises(ValueError, match="seed must be at least 0"):
        random_policy(CONFIG).reset(-1)


def test_a_blind_policy_never_needs_an_image():
    episode = [{"sensors": observation["sensors"]} for observation in observations(CONFIG, 3)]
    for step in run(random_policy(blind_baseline(CONFIG)), episode):
        assert not step.needs_image
        assert step.attention is None


def test_both_levels_of_a_hierarchy_have_a_state_of_their_own():
    config = replace(CONFIG, controller=LSTM(3), hierarchy=Hierarchy(low_level=LSTM(4)))
    state = run(random_policy(config), observations(config, 1))[-1].state
    assert state.hidden.any()
    assert state.low_hidden.any()
    assert state.hidden.shape != state.low_hidden.shape


def test_a_saved_policy_is_loaded_and_acts_alike(tmp_path):
    policy = random_policy(CONFIG, 1, random_normaliser(CONFIG))
    with pytest.raises(ValueError, match="the policy has no env"):
        policy.save(tmp_path / "a.policy")
    policy.env, policy.facts = EnvReference("iap/Seek-v0", {"size": 4}), {"seed": 7}
    policy.save(tmp_path / "a.policy")
    loaded = Policy.load(tmp_path / "a.policy")
    assert (loaded.config, loaded.env, loaded.facts) == (policy.config, policy.env, policy.facts)
    assert np.array_equal(loaded.theta, policy.theta)
    of_file = Policy.of(policy.to_file())
    for one, other in zip(*(run(p, observations(CONFIG, 2)) for p in (loaded, of_file)), strict=True):
        assert np.array_equal(one.action, other.action)
    for one, other in zip(*(run(p, observations(CONFIG, 2)) for p in (loaded, policy)), strict=True):
        np.testing.assert_allclose(one.action, other.action, atol=1e-5)


def test_acting_imports_neither_jax_nor_torch():
    program = """
import sys, numpy as np
from iap.policies import *
config = PolicyConfig((16, 16, 3), 1, 2)
configs = [config, cnn_baseline(config), PolicyConfig((16, 16, 3), 1, 2, Trans(), LSTM()), blind_baseline(config)]
for config in configs:
    policy = Policy(config, init(config, 0), compiled=config is configs[0])
    policy.act(policy.reset(), {"image": np.zeros((16, 16, 3), np.uint8), "sensors": np.zeros(1)})
heavy = {"jax", "torch", "evosax", "ray", "gymnasium", "matplotlib"} & set(sys.modules)
assert not heavy, heavy
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=300)
