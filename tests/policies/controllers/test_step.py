"""`step` of every controller: the same in NumPy, JAX and PyTorch, with gradients of all parameters."""

from typing import Any

import numpy as np
import pytest

from iap.policies import CONTROLLERS, GRU, LSTM, MLP, Controller, Linear, Quadratic

INPUTS, OUTPUTS, COUNT, STEPS = 4, 2, 3, 3
CASES: dict[str, Controller] = {
    "linear": Linear(),
    "mlp": MLP((5, 3)),
    "lstm": LSTM(3),
    "gru": GRU(3),
    "quadratic": Quadratic(),
    "quadratic, deltas": Quadratic(deltas=True),
}


def arguments_of(controller: Controller) -> tuple[dict[str, np.ndarray], np.ndarray, np.ndarray]:
    """Random parameters, the first state, and the inputs of a few steps."""
    rng = np.random.default_rng(0)
    specs = controller.param_specs(INPUTS, OUTPUTS, None)
    params = {spec.name: rng.standard_normal(spec.shape, np.float32) / 2 for spec in specs}
    state = np.zeros((COUNT, controller.state_size(INPUTS)), np.float32)
    return params, state, rng.standard_normal((STEPS, COUNT, INPUTS), np.float32)


def run(controller: Controller, params: Any, state: Any, inputs: Any) -> tuple[list[Any], Any]:
    outputs = []
    for step in range(STEPS):
        output, state = controller.step(params, state, inputs[step])
        outputs.append(output)
    return outputs, state


def test_all_registered_controllers_have_a_case():
    assert {type(controller) for controller in CASES.values()} == set(CONTROLLERS.values())


@pytest.mark.parametrize("name", CASES)
def test_steps_are_the_same_in_every_array_library(name: str, library):
    controller = CASES[name]
    params, state, inputs = arguments_of(controller)
    wanted, wanted_state = run(controller, params, state, inputs)
    converted = {key: library.array(array) for key, array in params.items()}
    outputs, after = run(controller, converted, library.array(state), library.array(inputs))
    for output, expected in zip(outputs, wanted, strict=True):
        assert library.numpy(output).shape == (COUNT, OUTPUTS)
        assert library.numpy(output).dtype == np.float32
        np.testing.assert_allclose(library.numpy(output), expected, atol=1e-5)
        assert np.abs(expected).max() <= 1
    np.testing.assert_allclose(library.numpy(after), wanted_state, atol=1e-5)
    assert after.shape == state.shape


@pytest.mark.parametrize("name", CASES)
def test_gradients_of_jax_and_pytorch_are_finite_and_agree(name: str):
    jax, torch = pytest.importorskip("jax"), pytest.importorskip("torch")
    controller = CASES[name]
    params, state, inputs = arguments_of(controller)

    def loss(given: Any) -> Any:
        outputs, _ = run(controller, given, jax.numpy.asarray(state), jax.numpy.asarray(inputs))
        return sum(jax.numpy.sum(output) for output in outputs)

    by_jax = jax.grad(loss)({key: jax.numpy.asarray(array) for key, array in params.items()})
    tensors = {key: torch.tensor(array, requires_grad=True) for key, array in params.items()}
    outputs, _ = run(controller, tensors, torch.tensor(state), torch.tensor(inputs))
    torch.stack(outputs).sum().backward()
    assert by_jax.keys() == params.keys()
    for key, tensor in tensors.items():
        gradient = np.asarray(by_jax[key])
        assert np.isfinite(gradient).all()
        assert np.abs(gradient).max() > 0
        np.testing.assert_allclose(gradient, tensor.grad.numpy(), atol=1e-4, err_msg=key)
