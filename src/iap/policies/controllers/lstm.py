"""An LSTM and a linear layer."""

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
class LSTM(Controller):
    """A layer of LSTM units, then a linear layer and tanh; gates i, f, g, o and two biases, as in PyTorch.

    Attributes:
        units: number of units.
    """

    units: int = 16

    def __post_init__(self) -> None:
        require_count("units", self.units)

    def state_size(self, inputs: int) -> int:
        """h, then c."""
        return 2 * self.units

    def param_specs(self, inputs: int, outputs: int, output_std: Columns | None) -> list[ParamSpec]:
        """Biases and weights of the gates, in AttentionAgent's order, and the output layer."""
        gates = 4 * self.units
        return [
            ParamSpec("bias_hh", (gates,), 0.0),
            ParamSpec("bias_ih", (gates,), 0.0),
            ParamSpec("weight_hh", (gates, self.units), 1 / math.sqrt(self.units)),
            ParamSpec("weight_ih", (gates, inputs), 1 / math.sqrt(max(1, inputs))),
            *affine("output", self.units, outputs, gain=OUTPUT_GAIN),
        ]

    def step(self, params: Mapping[str, Array], state: Array, inputs: Array) -> tuple[Array, Array]:
        """c′ = σ(f)·c + σ(i)·tanh(g), h′ = σ(o)·tanh(c′)."""
        xp, u = namespace(inputs=inputs), self.units
        h, c = state[:, :u], state[:, u:]
        gates = inputs @ params["weight_ih"].T + h @ params["weight_hh"].T + params["bias_ih"] + params["bias_hh"]
        i, f, g, o = (gates[:, k * u : (k + 1) * u] for k in range(4))
        c = _sigmoid(xp, f) * c + _sigmoid(xp, i) * xp.tanh(g)
        h = _sigmoid(xp, o) * xp.tanh(c)
        return tanh_layer(params, "output", h), xp.concat([h, c], axis=1)

    def compile(self, params: Mapping[str, np.ndarray]) -> "LSTMArrays":
        """All gates as one matrix on inputs and h."""
        weight = np.concatenate([params["weight_ih"], params["weight_hh"]], axis=1)
        bias = params["bias_ih"] + params["bias_hh"]
        return LSTMArrays(own(weight), own(bias), own(params["output.weight"]), own(params["output.bias"]))


def _sigmoid(xp: Any, x: Array) -> Array:
    return 0.5 * (1 + xp.tanh(0.5 * x))  # which cannot overflow


class LSTMArrays(NamedTuple):
    """The gates' weight on (inputs, h) and bias, and the output layer."""

    weight: Any
    bias: Any
    output_weight: Any
    output_bias: Any


@implements(control, LSTMArrays)
@compiled(inner=True)
def control_lstm(controller, inputs, state):
    """One step; the state is h, then c."""
    units = len(state) // 2
    x = np.concatenate((inputs, state[:units]))
    gates = np.empty(4 * units, np.float32)
    for i in range(4 * units):
        total = np.float32(0)
        for j in range(len(x)):
            total += controller.weight[i, j] * x[j]
        gates[i] = total + controller.bias[i]
    after = np.empty(2 * units, np.float32)
    for k in range(units):
        c = _compiled_sigmoid(gates[units + k]) * state[units + k]
        c += _compiled_sigmoid(gates[k]) * math.tanh(gates[2 * units + k])
        after[k] = _compiled_sigmoid(gates[3 * units + k]) * math.tanh(c)
        after[units + k] = c
    return apply_tanh_layer(controller.output_weight, controller.output_bias, after[:units]), after


@compiled
def _compiled_sigmoid(x):
    return np.float32(0.5) * (np.float32(1) + math.tanh(np.float32(0.5) * x))
