"""Controllers without memory: one linear layer, or layers of tanh units."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from iap._compile import compiled, dispatched, implements
from iap._validation import require_count
from iap.attention.arrays import Array, namespace
from iap.policies.controllers.base import Controller, control, own
from iap.policies.params import OUTPUT_GAIN, Columns, ParamSpec, affine

MOST_LAYERS = 64


@dataclass(frozen=True)
class Linear(Controller):
    """One layer and tanh."""

    def param_specs(self, inputs: int, outputs: int, output_std: Columns | None) -> list[ParamSpec]:
        """Bias and weight."""
        if output_std is None:
            return affine("output", inputs, outputs, gain=OUTPUT_GAIN)
        return [ParamSpec("output.bias", (outputs,), 0.0), ParamSpec("output.weight", (outputs, inputs), output_std)]

    def step(self, params: Mapping[str, Array], state: Array, inputs: Array) -> tuple[Array, Array]:
        """tanh(W·x + b)."""
        return tanh_layer(params, "output", inputs), state

    def compile(self, params: Mapping[str, np.ndarray]) -> Any:
        """The layer."""
        return compile_layers(params, ("output",))


@dataclass(frozen=True)
class MLP(Controller):
    """Layers of tanh units, then a linear layer and tanh.

    Attributes:
        hidden: the number of units of each hidden layer.
    """

    hidden: tuple[int, ...] = (16,)

    def __post_init__(self) -> None:
        if not isinstance(self.hidden, tuple) or not self.hidden:
            raise ValueError(f"hidden must be a tuple of layer sizes, not {self.hidden!r}")
        require_count("layers of hidden", len(self.hidden), most=MOST_LAYERS)
        for units in self.hidden:
            require_count("hidden", units)

    def param_specs(self, inputs: int, outputs: int, output_std: Columns | None) -> list[ParamSpec]:
        """Bias and weight of each layer."""
        sizes = (inputs, *self.hidden)
        hidden = [spec for i, units in enumerate(self.hidden) for spec in affine(f"hidden.{i}", sizes[i], units)]
        return [*hidden, *affine("output", self.hidden[-1], outputs, gain=OUTPUT_GAIN)]

    def step(self, params: Mapping[str, Array], state: Array, inputs: Array) -> tuple[Array, Array]:
        """Layer after layer."""
        for name in self._names():
            inputs = tanh_layer(params, name, inputs)
        return inputs, state

    def compile(self, params: Mapping[str, np.ndarray]) -> Any:
        """The layers."""
        return compile_layers(params, self._names())

    def _names(self) -> tuple[str, ...]:
        return (*(f"hidden.{i}" for i in range(len(self.hidden))), "output")


def tanh_layer(params: Mapping[str, Array], name: str, x: Array) -> Array:
    """tanh(W·x + b) of a batch."""
    xp = namespace(x=x)
    return xp.tanh(x @ params[f"{name}.weight"].T + params[f"{name}.bias"])


class LayerArrays(NamedTuple):
    """Weight and bias of a tanh layer, and the layers after it."""

    weight: Any
    bias: Any
    rest: Any


class NoLayer(NamedTuple):
    """The end of the layers."""

    nothing: Any


def compile_layers(params: Mapping[str, np.ndarray], names: tuple[str, ...]) -> Any:
    """The named layers as a chain."""
    chain: Any = NoLayer(0)
    for name in reversed(names):
        chain = LayerArrays(own(params[f"{name}.weight"]), own(params[f"{name}.bias"]), chain)
    return chain


@compiled(fastmath={"contract", "reassoc"})
def apply_tanh_layer(weight, bias, x):
    """tanh(weight·x + bias)."""
    out = np.empty(len(bias), np.float32)
    for i in range(len(out)):
        total = np.float32(0)
        for j in range(len(x)):
            total += weight[i, j] * x[j]
        out[i] = math.tanh(total + bias[i])
    return out


@dispatched
def apply_layers(layers, x) -> Any:
    """Compiled code: all layers of a chain."""


@implements(apply_layers, LayerArrays)
def _apply_and_go_on(layers, x):
    return apply_layers(layers.rest, apply_tanh_layer(layers.weight, layers.bias, x))


@implements(apply_layers, NoLayer)
def _return_outputs(layers, x):
    return x


@implements(control, LayerArrays)
@compiled(inner=True)
def control_feedforward(controller, inputs, state):
    """Layer after layer; the state is empty."""
    return apply_layers(controller, inputs), state
