"""Controllers in a policy, against PyTorch and plain array operations."""

import numpy as np
import pytest
from config_cases import observations, random_policy

from iap.policies import GRU, LSTM, MLP, Blind, Controller, Hierarchy, Linear, MultiHeadRank, PolicyConfig, Quadratic

BOTH = pytest.mark.parametrize("compiled", [True, False])


def config_of(controller: Controller) -> PolicyConfig:
    return PolicyConfig((8, 8, 3), sensors=5, actions=3, encoder=Blind(), controller=controller)


@BOTH
@pytest.mark.parametrize("kind", [LSTM, GRU])
def test_recurrent_units_are_those_of_pytorch(kind: type[LSTM] | type[GRU], compiled: bool):
    torch = pytest.importorskip("torch")
    config = config_of(kind(7))
    policy = random_policy(config, compiled=compiled)
    params = policy.params["controller"]
    module = torch.nn.LSTM(5, 7) if kind is LSTM else torch.nn.GRU(5, 7)
    with torch.no_grad():
        for name in ("bias_hh", "bias_ih", "weight_hh", "weight_ih"):
            getattr(module, f"{name}_l0").copy_(torch.tensor(params[name]))
    episode = observations(config, 6)
    hidden, _ = module(torch.tensor(np.stack([observation["sensors"] for observation in episode])))
    wanted = np.tanh(hidden.detach().numpy() @ params["output.weight"].T + params["output.bias"])
    state = policy.reset()
    for observation, expected in zip(episode, wanted, strict=True):
        action, state, _ = policy.act(state, observation)
        np.testing.assert_allclose(action, expected, atol=1e-6)
        assert action.dtype == np.float32
        assert np.asarray(state.hidden).dtype == np.float32  # pyright: ignore[reportAttributeAccessIssue]


@BOTH
@pytest.mark.parametrize("controller", [LSTM(4), GRU(4)])
def test_recurrent_units_with_huge_inputs_neither_overflow_nor_warn(controller: Controller, compiled: bool):
    policy = random_policy(config_of(controller), compiled=compiled)
    action, state, _ = policy.act(policy.reset(), {"image": None, "sensors": np.full(5, 1e30)})
    assert np.isfinite(action).all()
    assert np.isfinite(state.hidden).all()  # pyright: ignore[reportAttributeAccessIssue]


@BOTH
@pytest.mark.parametrize("hidden", [(), (4,), (6, 2)])
def test_feedforward_controllers_are_layers_of_tanh_units(hidden: tuple[int, ...], compiled: bool):
    config = config_of(MLP(hidden) if hidden else Linear())
    policy = random_policy(config, compiled=compiled)
    params = policy.params["controller"]
    (observation,) = observations(config, 1)
    x = observation["sensors"]
    for name in (*(f"hidden.{i}" for i in range(len(hidden))), "output"):
        x = np.tanh(params[f"{name}.weight"] @ x + params[f"{name}.bias"])
    action, _, _ = policy.act(policy.reset(), observation)
    np.testing.assert_allclose(action, x, atol=1e-6)
    assert len(params) == 2 * (1 + len(hidden))


@BOTH
def test_a_policy_without_image_and_sensors_acts(compiled: bool):
    policy = random_policy(PolicyConfig((8, 8, 3), 0, 2, encoder=Blind()), compiled=compiled)
    action, _, _ = policy.act(policy.reset(), {"image": None, "sensors": np.zeros(0, np.float32)})
    assert action.shape == (2,)


def with_products(x: np.ndarray) -> np.ndarray:
    return np.concatenate([x, [x[i] * x[j] for i in range(len(x)) for j in range(i, len(x))]])


@BOTH
@pytest.mark.parametrize("deltas", [False, True])
def test_a_quadratic_controller_acts_on_inputs_their_products_and_their_changes(deltas: bool, compiled: bool):
    config = config_of(Quadratic(deltas))
    policy = random_policy(config, compiled=compiled)
    weight, bias = (policy.params["controller"][f"output.{name}"] for name in ("weight", "bias"))
    state, last = policy.reset(), None
    for observation in observations(config, 4):
        action, state, _ = policy.act(state, observation)
        x = observation["sensors"]
        numbers = np.concatenate([x, 5 * (x - (x if last is None else last))]) if deltas else x
        np.testing.assert_allclose(action, np.tanh(weight @ with_products(numbers) + bias), atol=1e-5)
        last = x


@BOTH
def test_a_quadratic_low_level_acts_on_the_change_of_the_command(compiled: bool):
    hierarchy = Hierarchy(latent_size=2, max_command_steps=1, low_level=Quadratic(deltas=True))
    config = PolicyConfig((8, 8, 2), sensors=0, actions=2, encoder=MultiHeadRank(top_k=2), hierarchy=hierarchy)
    policy = random_policy(config, compiled=compiled)
    weight, bias = (policy.params["low_level"][f"output.{name}"] for name in ("weight", "bias"))
    state, last = policy.reset(), None
    for observation in observations(config, 4):
        action, state, _ = policy.act(state, observation)
        change = 5 * (state.latent - (state.latent if last is None else last))
        numbers = with_products(np.concatenate([state.latent, change]))
        np.testing.assert_allclose(action, np.tanh(weight @ numbers + bias), atol=1e-5)
        last = state.latent


@BOTH
@pytest.mark.parametrize("controller", [Linear(), LSTM(3)])
def test_a_recurrent_low_level_has_a_state_of_its_own(controller: Controller, compiled: bool):
    hierarchy = Hierarchy(latent_size=2, max_command_steps=3, low_level=LSTM(4))
    config = PolicyConfig((8, 8, 3), 0, 2, encoder=Blind(), controller=controller, hierarchy=hierarchy)
    policy = random_policy(config, compiled=compiled)
    states: list = [policy.reset()]
    assert states[0].low_hidden.shape == (8,)
    assert states[0].hidden.shape == (controller.state_size(0),)
    for observation in observations(config, 3):
        _, state, _ = policy.act(states[-1], observation)
        states.append(state)
    assert not np.array_equal(states[2].low_hidden, states[3].low_hidden)
    assert np.array_equal(states[0].hidden, states[1].hidden) == (controller == Linear())
