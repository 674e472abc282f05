from dataclasses import replace

import numpy as np
import pytest
from policy_cases import observations, some_policy

from iap.policies import LSTM, MLP, Blind, Hierarchy, Linear, MultiHeadRank, PolicyConfig, Quadratic
from iap.policies.trees import LayersParams, LSTMParams


def spec_of(controller: Linear | MLP | LSTM | Quadratic) -> PolicyConfig:
    return PolicyConfig((8, 8, 3), sensors=5, actions=3, encoder=Blind(), controller=controller)


def test_the_lstm_is_pytorchs():
    torch = pytest.importorskip("torch")
    spec = spec_of(LSTM(7))
    policy = some_policy(spec)
    params = policy.params.controller
    assert isinstance(params, LSTMParams)
    lstm = torch.nn.LSTM(5, 7)
    with torch.no_grad():
        for name in ("bias_hh", "bias_ih", "weight_hh", "weight_ih"):
            getattr(lstm, f"{name}_l0").copy_(torch.tensor(getattr(params, name)))
    seen = observations(spec, 6)
    hidden, _ = lstm(torch.tensor(np.stack([observation["sensors"] for observation in seen])))
    assert params.output.bias is not None
    wanted = np.tanh(hidden.detach().numpy() @ params.output.weight.T + params.output.bias)
    state = policy.begin()
    for observation, action in zip(seen, wanted, strict=True):
        got, state, _ = policy.act(state, observation)
        np.testing.assert_allclose(got, action, atol=1e-6)
        assert got.dtype == state.hidden.dtype == np.float32


def test_an_lstm_with_huge_inputs_neither_overflows_nor_warns():
    policy = some_policy(spec_of(LSTM(4)))
    action, state, _ = policy.act(policy.begin(), {"image": None, "sensors": np.full(5, 1e30)})
    assert np.isfinite(action).all()
    assert np.isfinite(state.hidden).all()


@pytest.mark.parametrize("hidden", [(4,), (6, 2)])
def test_an_mlp_is_tanh_layers_and_a_linear_one(hidden):
    spec = spec_of(MLP(hidden))
    policy = some_policy(spec)
    params = policy.params.controller
    assert isinstance(params, LayersParams)
    (seen,) = observations(spec, 1)
    x = seen["sensors"]
    for layer in params.layers:
        assert layer.bias is not None
        x = np.tanh(layer.weight @ x + layer.bias)
    action, _, _ = policy.act(policy.begin(), seen)
    np.testing.assert_allclose(action, x, atol=1e-6)


def test_a_linear_controller_is_one_layer_then_tanh():
    policy = some_policy(spec_of(Linear()))
    params = policy.params.controller
    assert isinstance(params, LayersParams)
    (layer,) = params.layers
    assert layer.bias is not None
    (seen,) = observations(policy.spec, 1)
    action, _, _ = policy.act(policy.begin(), seen)
    np.testing.assert_allclose(action, np.tanh(layer.weight @ seen["sensors"] + layer.bias), atol=1e-6)


def test_a_policy_without_image_and_sensors_still_acts():
    policy = some_policy(PolicyConfig((8, 8, 3), 0, 2, encoder=Blind()))
    action, _, _ = policy.act(policy.begin(), {"image": None, "sensors": np.zeros(0, np.float32)})
    assert action.shape == (2,)


def with_products(x):
    return np.concatenate([x, [x[i] * x[j] for i in range(len(x)) for j in range(i, len(x))]])


@pytest.mark.parametrize("frame_difference", [False, True])
def test_a_layer_with_products_acts_on_the_numbers_and_on_how_they_have_changed(changes):
    spec = spec_of(Quadratic(changes))
    policy = some_policy(spec)
    assert isinstance(policy.params.controller, LayersParams)
    [layer] = policy.params.controller.layers
    state, last = policy.begin(), None
    for observation in observations(spec, 4):
        action, state, _ = policy.act(state, observation)
        x = observation["sensors"]
        numbers = np.concatenate([x, 5 * (x - (x if last is None else last))]) if changes else x
        np.testing.assert_allclose(action, np.tanh(layer.weight @ with_products(numbers) + layer.bias), atol=1e-5)
        last = x


def test_a_low_level_with_changes_knows_how_the_command_has_changed():
    level = Hierarchy(latent_size=2, max_command_steps=1, low=Quadratic(changes=True))
    spec = PolicyConfig((8, 8, 3), sensors=0, actions=2, encoder=MultiHeadRank(top_k=2), hierarchy=level)
    policy = some_policy(spec)
    assert isinstance(policy.params.low, LayersParams)
    [layer] = policy.params.low.layers
    state, last = policy.begin(), None
    for observation in observations(spec, 4):
        action, state, _ = policy.act(state, observation)
        change = 5 * (state.latent - (state.latent if last is None else last))
        numbers = with_products(np.concatenate([state.latent, change]))
        np.testing.assert_allclose(action, np.tanh(layer.weight @ numbers + layer.bias), atol=1e-5)
        last = state.latent
    with pytest.raises(ValueError, match="controller must have no memory above a low level"):
        PolicyConfig((8, 8, 3), sensors=0, actions=2, encoder=MultiHeadRank(top_k=2), controller=LSTM(3), hierarchy=level)


def test_a_low_level_that_is_an_lstm_remembers_below_a_high_one_that_does_not():
    level = Hierarchy(latent_size=2, max_command_steps=3, low=LSTM(4))
    spec = PolicyConfig((8, 8, 3), sensors=0, actions=2, encoder=MultiHeadRank(top_k=2), hierarchy=level)
    policy, memories = some_policy(spec), []
    state = policy.begin()
    assert state.hidden.shape == (2, 4)
    [observation] = observations(spec, 1)
    for _ in range(3):
        _, state, _ = policy.act(state, observation)
        memories.append(state.hidden)
    assert not np.array_equal(memories[1], memories[2])
    with pytest.raises(ValueError, match="controller must have no memory above a low level"):
        replace(spec, controller=LSTM(3))
