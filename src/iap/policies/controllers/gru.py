"""A GRU and a linear layer."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from iap._compile import compiled, implements
from iap.attention.arrays import Array, namespace
from iap.policies.controllers.base import control, own
from iap.policies.controllers.feedforward import apply_tanh_layer, tanh_layer
from iap.policies.controllers.recurrent import Recurrent, apply_affine, compiled_sigmoid, sigmoid


@dataclass(frozen=True)
class GRU(Recurrent):
    """A layer of gated recurrent units, then a linear layer and tanh; gates r, z, n, as in PyTorch.

    Attributes:
        units: number of units.
    """

    gates: ClassVar[int] = 3

    def state_size(self, inputs: int) -> int:
        """h."""
        return self.units

    def step(self, params: Mapping[str, Array], state: Array, inputs: Array) -> tuple[Array, Array]:
        """n = tanh(W_n·x + b + r·(U_n·h + b′)), h′ = (1 − z)·n + z·h."""
        xp, u = namespace(inputs=inputs), self.units
        own_part = inputs @ params["weight_ih"].T + params["bias_ih"]
        carried = state @ params["weight_hh"].T + params["bias_hh"]
        r, z = (sigmoid(own_part[:, k * u : (k + 1) * u] + carried[:, k * u : (k + 1) * u]) for k in range(2))
        n = xp.tanh(own_part[:, 2 * u :] + r * carried[:, 2 * u :])
        h = (1 - z) * n + z * state
        return tanh_layer(params, "output", h), h

    def compile(self, params: Mapping[str, np.ndarray]) -> "GRUArrays":
        """The arrays, unchanged."""
        names = ("weight_ih", "weight_hh", "bias_ih", "bias_hh", "output.weight", "output.bias")
        return GRUArrays(*(own(params[name]) for name in names))


class GRUArrays(NamedTuple):
    """The gates' weights and biases on inputs and on h, and the output layer."""

    weight_ih: Any
    weight_hh: Any
    bias_ih: Any
    bias_hh: Any
    output_weight: Any
    output_bias: Any


@implements(control, GRUArrays)
@compiled(inner=True)
def control_gru(controller, inputs, state):
    """One step; the state is h."""
    units = len(state)
    x = apply_affine(controller.weight_ih, controller.bias_ih, inputs)
    h = apply_affine(controller.weight_hh, controller.bias_hh, state)
    after = np.empty(units, np.float32)
    for k in range(units):
        r = compiled_sigmoid(x[k] + h[k])
        z = compiled_sigmoid(x[units + k] + h[units + k])
        n = math.tanh(x[2 * units + k] + r * h[2 * units + k])
        after[k] = (np.float32(1) - z) * n + z * state[k]
    return apply_tanh_layer(controller.output_weight, controller.output_bias, after), after
