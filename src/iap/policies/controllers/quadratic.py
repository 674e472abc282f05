"""A linear layer on the inputs and on all products of two inputs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from iap._compile import compiled, implements
from iap._validation import require_flags
from iap.attention.arrays import Array, namespace
from iap.policies.controllers.base import Controller, control, own
from iap.policies.controllers.feedforward import apply_tanh_layer, tanh_layer
from iap.policies.params import OUTPUT_GAIN, Columns, ParamSpec, affine

DELTA_GAIN = np.float32(5)  # changes from step to step are small compared with the inputs


@dataclass(frozen=True)
class Quadratic(Controller):
    """One layer on the inputs and their products xᵢxⱼ, i ≤ j, and tanh.

    Attributes:
        deltas: whether the change of each input since the last step, times 5, is an input too.
    """

    deltas: bool = False

    def __post_init__(self) -> None:
        require_flags(self, "deltas")

    def state_size(self, inputs: int) -> int:
        """With deltas: 1 once there was a step, then the inputs of the last step."""
        return 1 + inputs if self.deltas else 0

    def layer_inputs(self, inputs: int) -> int:
        """The number of inputs of the layer: inputs, deltas and products."""
        count = inputs * (1 + self.deltas)
        return count + count * (count + 1) // 2

    def param_specs(self, inputs: int, outputs: int, output_std: Columns | None) -> list[ParamSpec]:
        """The layer."""
        return affine("output", self.layer_inputs(inputs), outputs, gain=OUTPUT_GAIN)

    def step(self, params: Mapping[str, Array], state: Array, inputs: Array) -> tuple[Array, Array]:
        """tanh(W·(x, xxᵀ) + b)."""
        xp = namespace(inputs=inputs)
        x = inputs
        if self.deltas:
            last = xp.where(state[:, :1] > 0, state[:, 1:], inputs)
            x = xp.concat([inputs, float(DELTA_GAIN) * (inputs - last)], axis=1)
            state = xp.concat([xp.ones_like(inputs[:, :1]), inputs], axis=1)
        products = [x[:, i : i + 1] * x[:, i:] for i in range(x.shape[1])]
        return tanh_layer(params, "output", xp.concat([x, *products], axis=1)), state

    def compile(self, params: Mapping[str, np.ndarray]) -> "QuadraticArrays":
        """The layer."""
        return QuadraticArrays(own(params["output.weight"]), own(params["output.bias"]), self.deltas)


class QuadraticArrays(NamedTuple):
    """The layer, and whether the changes of the inputs are inputs too."""

    weight: Any
    bias: Any
    deltas: Any


@implements(control, QuadraticArrays)
@compiled(inner=True)
def control_quadratic(controller, inputs, state):
    """The layer on the inputs, their changes and all products."""
    if not controller.deltas:
        return apply_tanh_layer(controller.weight, controller.bias, _with_products(inputs)), state
    size = len(inputs)
    x = np.empty(2 * size, np.float32)
    after = np.empty(1 + size, np.float32)
    after[0] = 1
    for i in range(size):
        last = state[1 + i] if state[0] > 0 else inputs[i]
        x[i] = inputs[i]
        x[size + i] = DELTA_GAIN * (inputs[i] - last)
        after[1 + i] = inputs[i]
    return apply_tanh_layer(controller.weight, controller.bias, _with_products(x)), after


@compiled
def _with_products(x):
    """The inputs, then the products x₀x₀, x₀x₁ and so on."""
    count = len(x)
    out = np.empty(count + count * (count + 1) // 2, np.float32)
    out[:count] = x
    place = count
    for i in range(count):
        for j in range(i, count):
            out[place] = x[i] * x[j]
            place += 1
    return out
