"""What controllers with gates share: parameters, the sigmoid and the layer before the gates."""

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from iap._compile import compiled
from iap._validation import require_count
from iap.attention.arrays import Array, namespace
from iap.policies.controllers.base import Controller
from iap.policies.params import OUTPUT_GAIN, Columns, ParamSpec, affine


@dataclass(frozen=True)
class Recurrent(Controller):
    """A layer of units with gates and two biases, as in PyTorch, then a linear layer and tanh.

    Attributes:
        units: number of units.
    """

    units: int = 16

    gates: ClassVar[int]
    """Rows of the weights for each unit."""

    def __post_init__(self) -> None:
        require_count("units", self.units)

    def param_specs(self, inputs: int, outputs: int, output_std: Columns | None) -> list[ParamSpec]:
        """Biases and weights of the gates, in AttentionAgent's order, and the output layer."""
        rows = self.gates * self.units
        return [
            ParamSpec("bias_hh", (rows,), 0.0),
            ParamSpec("bias_ih", (rows,), 0.0),
            ParamSpec("weight_hh", (rows, self.units), 1 / math.sqrt(self.units)),
            ParamSpec("weight_ih", (rows, inputs), 1 / math.sqrt(max(1, inputs))),
            *affine("output", self.units, outputs, gain=OUTPUT_GAIN),
        ]


def sigmoid(x: Array) -> Array:
    """σ(x)."""
    return 0.5 * (1 + namespace(x=x).tanh(0.5 * x))  # which cannot overflow


@compiled
def compiled_sigmoid(x):
    """σ(x)."""
    return np.float32(0.5) * (np.float32(1) + math.tanh(np.float32(0.5) * x))


@compiled
def apply_affine(weight, bias, x):
    """weight·x + bias."""
    out = np.empty(len(bias), np.float32)
    for i in range(len(out)):
        total = np.float32(0)
        for j in range(len(x)):
            total += weight[i, j] * x[j]
        out[i] = total + bias[i]
    return out
