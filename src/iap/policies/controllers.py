"""What the controller receives → what it gives, in [−1, 1]."""

import numpy as np

from iap.policies.kernels import tanh_layer, with_products
from iap.policies.specs import Controller, Quadratic
from iap.policies.trees import Affine, LayersParams, LSTMParams

NO_MEMORY = np.zeros((2, 0), np.float32)
CHANGES = np.float32(5)  # how much stronger changes are told, which are small from step to step


class Feedforward:
    """Layers, each followed by tanh: a linear controller is one with a single layer."""

    begin = NO_MEMORY

    def __init__(self, params: LayersParams) -> None:
        self.layers = [_own(layer) for layer in params.layers]

    def __call__(self, x: np.ndarray, hidden: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The outputs, and the memory, which is none."""
        for weight, bias in self.layers:
            x = tanh_layer(weight, bias, x)
        return x, hidden


class Multiplied:
    """A layer on the numbers and their products, followed by tanh; its memory is the last numbers, if they count."""

    begin = NO_MEMORY

    def __init__(self, params: LayersParams, changes: bool) -> None:
        [self._layer] = [_own(layer) for layer in params.layers]
        self._changes = changes

    def __call__(self, x: np.ndarray, hidden: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The outputs, and the memory."""
        if not self._changes:
            return tanh_layer(*self._layer, with_products(x)), hidden
        last = hidden[0] if hidden.size else x
        return tanh_layer(*self._layer, with_products(np.concatenate([x, CHANGES * (x - last)]))), x[None]


class Recurrent:
    """An LSTM and a layer with tanh; its memory is h and c."""

    def __init__(self, params: LSTMParams) -> None:
        self._units = params.weight_hh.shape[1]
        self._weight = np.concatenate([params.weight_ih, params.weight_hh], axis=1)
        self._bias = params.bias_ih + params.bias_hh
        self._output = _own(params.output)
        self.begin = np.zeros((2, self._units), np.float32)

    def __call__(self, x: np.ndarray, hidden: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The outputs and the next memory."""
        h, c = hidden
        i, f, g, o = (self._weight @ np.concatenate([x, h]) + self._bias).reshape(4, self._units)
        c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
        h = _sigmoid(o) * np.tanh(c)
        return tanh_layer(*self._output, h), np.stack([h, c])


def controller_of(spec: Controller, params: LayersParams | LSTMParams) -> Feedforward | Multiplied | Recurrent:
    """The controller of a spec, with these parameters."""
    if isinstance(params, LSTMParams):
        return Recurrent(params)
    return Multiplied(params, spec.changes) if isinstance(spec, Quadratic) else Feedforward(params)


def _own(layer: Affine) -> tuple[np.ndarray, np.ndarray]:
    """Copies, which unlike parts of θ can be written to: compiled loops tell the two apart, and know only these."""
    return layer.weight.copy(), np.array(layer.bias)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return np.float32(0.5) * (1 + np.tanh(np.float32(0.5) * x))  # which cannot overflow
