"""What the controller receives → what it gives, before the last tanh."""

import numpy as np

from iap.policies.trees import LayersParams, LSTMParams

NO_MEMORY = np.zeros((2, 0), np.float32)


class Feedforward:
    """Layers with tanh between them: a linear controller is one with a single layer."""

    begin = NO_MEMORY

    def __init__(self, params: LayersParams) -> None:
        *self._hidden, self._output = [(layer.weight, layer.bias) for layer in params.layers]

    def __call__(self, x: np.ndarray, hidden: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The outputs, and the memory, which is none."""
        for weight, bias in self._hidden:
            x = np.tanh(weight @ x + bias)
        weight, bias = self._output
        return weight @ x + bias, hidden


class Recurrent:
    """An LSTM and a linear layer; its memory is h and c."""

    def __init__(self, params: LSTMParams) -> None:
        self._units = params.weight_hh.shape[1]
        self._weight = np.concatenate([params.weight_ih, params.weight_hh], axis=1)
        self._bias = params.bias_ih + params.bias_hh
        self._output = (params.output.weight, params.output.bias)
        self.begin = np.zeros((2, self._units), np.float32)

    def __call__(self, x: np.ndarray, hidden: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The outputs and the next memory."""
        h, c = hidden
        i, f, g, o = (self._weight @ np.concatenate([x, h]) + self._bias).reshape(4, self._units)
        c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
        h = _sigmoid(o) * np.tanh(c)
        weight, bias = self._output
        return weight @ h + bias, np.stack([h, c])


def controller_of(params: LayersParams | LSTMParams) -> Feedforward | Recurrent:
    """The controller with these parameters."""
    return Recurrent(params) if isinstance(params, LSTMParams) else Feedforward(params)


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return np.float32(0.5) * (1 + np.tanh(np.float32(0.5) * x))  # which cannot overflow
