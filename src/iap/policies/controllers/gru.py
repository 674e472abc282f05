"""A GRU and a linear layer."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from iap._compile import compiled, implements
from iap._validation import require_count
from iap.attention.arrays import Array, namespace
from iap.policies.controllers.base import Controller, control, own
from iap.policies.controllers.feedforward import apply_tanh_layer, tanh_layer
from iap.policies.params import OUTPUT_GAIN, Columns, ParamSpec, affine


@dataclass(frozen=True)
class GRU(Controller):
    """A layer of gated recurrent units, then a linear layer and tanh; gates r, z, n, as in PyTorch.

    Attributes:
        units: number of units.
    """

    units: int = 16

    def __post_init__(self) -> None:
        require_count("units", self.units)

    def state_size(self, inputs: int) -> int:
        """h."""
        return self.units

    def param_specs(self, inputs: int, outputs: int, output_std: Columns | None) -> list[ParamSpec]:
        """Biases and weights of the gates, and the output layer."""
        gates = 3 * self.units
        return [
            ParamSpec("bias_hh", (gates,), 0.0),
            ParamSpec("bias_ih", (gates,), 0.0),
            ParamSpec("weight_hh", (gates, self.units), 1 / math.sqrt(self.units)),
            ParamSpec("weight_ih", (gates, inputs), 1 / math.sqrt(max(1, inputs))),
            *affine("output", self.units, outputs, gain=OUTPUT_GAIN),
        ]

    def step(self, params: Mapping[str, Array], state: Array, inputs: Array) -> tuple[Array, Array]:
        """n = tanh(W_n·x + b + r·(U_n·h + b′)), h′ = (1 − z)·n + z·h."""
        xp, u = namespace(inputs=inputs), self.units
        own_part = inputs @ params["weight_ih"].T + params["bias_ih"]
        carried = state @ params["weight_hh"].T + params["bias_hh"]
        r, z = (
            0.5 * (1 + xp.tanh(0.5 * (own_part[:, k * u : (k + 1) * u] + carried[:, k * u : (k + 1) * u])))
            for k in range(2)
        )
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
    x, h = (
        _affine(controller.weight_ih, controller.bias_ih, inputs),
        _affine(controller.weight_hh, controller.bias_hh, state),
    )
    after = np.empty(units, np.float32)
    half, one = np.float32(0.5), np.float32(1)
    for k in range(units):
        r = half * (one + math.tanh(half * (x[k] + h[k])))
        z = half * (one + math.tanh(half * (x[units + k] + h[units + k])))
        n = math.tanh(x[2 * units + k] + r * h[2 * units + k])
        after[k] = (one - z) * n + z * state[k]
    return apply_tanh_layer(controller.output_weight, controller.output_bias, after), after


@compiled
def _affine(weight, bias, x):
    out = np.empty(len(bias), np.float32)
    for i in range(len(out)):
        total = np.float32(0)
        for j in range(len(x)):
            total += weight[i, j] * x[j]
        out[i] = total + bias[i]
    return out
