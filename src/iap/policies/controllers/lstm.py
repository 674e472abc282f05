"""An LSTM and a linear layer."""

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
class LSTM(Recurrent):
    """A layer of LSTM units, then a linear layer and tanh; gates i, f, g, o and two biases, as in PyTorch.

    Attributes:
        units: number of units.
    """

    gates: ClassVar[int] = 4

    def state_size(self, inputs: int) -> int:
        """h, then c."""
        return 2 * self.units

    def step(self, params: Mapping[str, Array], state: Array, inputs: Array) -> tuple[Array, Array]:
        """c′ = σ(f)·c + σ(i)·tanh(g), h′ = σ(o)·tanh(c′)."""
        xp, u = namespace(inputs=inputs), self.units
        h, c = state[:, :u], state[:, u:]
        gates = inputs @ params["weight_ih"].T + h @ params["weight_hh"].T + params["bias_ih"] + params["bias_hh"]
        i, f, g, o = (gates[:, k * u : (k + 1) * u] for k in range(4))
        c = sigmoid(f) * c + sigmoid(i) * xp.tanh(g)
        h = sigmoid(o) * xp.tanh(c)
        return tanh_layer(params, "output", h), xp.concat([h, c], axis=1)

    def compile(self, params: Mapping[str, np.ndarray]) -> "LSTMArrays":
        """All gates as one matrix on inputs and h."""
        weight = np.concatenate([params["weight_ih"], params["weight_hh"]], axis=1)
        bias = params["bias_ih"] + params["bias_hh"]
        return LSTMArrays(own(weight), own(bias), own(params["output.weight"]), own(params["output.bias"]))


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
    gates = apply_affine(controller.weight, controller.bias, np.concatenate((inputs, state[:units])))
    after = np.empty(2 * units, np.float32)
    for k in range(units):
        c = compiled_sigmoid(gates[units + k]) * state[units + k]
        c += compiled_sigmoid(gates[k]) * math.tanh(gates[2 * units + k])
        after[k] = compiled_sigmoid(gates[3 * units + k]) * math.tanh(c)
        after[units + k] = c
    return apply_tanh_layer(controller.output_weight, controller.output_bias, after[:units]), after
