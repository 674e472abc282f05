"""Controllers in ONNX: (n, inputs) and (n, state) → outputs and next state."""

from collections.abc import Mapping

import numpy as np

from iap.interop.onnx.graph import Graph
from iap.policies import GRU, LSTM, MLP, Linear, Quadratic
from iap.policies.controllers.quadratic import DELTA_GAIN

Arrays = Mapping[str, np.ndarray]
Result = tuple[str, str | None]  # names of the outputs and of the next state


def add_layers(graph: Graph, controller: Linear | MLP, params: Arrays, inputs: str, state: str | None) -> Result:
    """Layers of tanh units."""
    hidden = len(controller.hidden) if isinstance(controller, MLP) else 0
    for name in [*(f"hidden.{i}" for i in range(hidden)), "output"]:
        inputs = _tanh_layer(graph, params, name, inputs)
    return inputs, state


def add_lstm(graph: Graph, controller: LSTM, params: Arrays, inputs: str, state: str | None) -> Result:
    """An LSTM and a layer of tanh units; the state is h, then c."""
    assert state is not None
    u, op = controller.units, graph.op
    h, c = graph.slice(state, 0, u, 1), graph.slice(state, u, 2 * u, 1)
    gates = op("Add", _gates(graph, params, "ih", inputs), _gates(graph, params, "hh", h))
    i, f, g, o = (graph.slice(gates, k * u, (k + 1) * u, 1) for k in range(4))
    c = op("Add", op("Mul", op("Sigmoid", f), c), op("Mul", op("Sigmoid", i), op("Tanh", g)))
    h = op("Mul", op("Sigmoid", o), op("Tanh", c))
    return _tanh_layer(graph, params, "output", h), graph.concat(h, c, axis=1)


def add_gru(graph: Graph, controller: GRU, params: Arrays, inputs: str, state: str | None) -> Result:
    """A GRU and a layer of tanh units."""
    assert state is not None
    u, op = controller.units, graph.op
    own, carried = _gates(graph, params, "ih", inputs), _gates(graph, params, "hh", state)
    parts = [(graph.slice(own, k * u, (k + 1) * u, 1), graph.slice(carried, k * u, (k + 1) * u, 1)) for k in range(3)]
    r, z = (op("Sigmoid", op("Add", *parts[k])) for k in range(2))
    n = op("Tanh", op("Add", parts[2][0], op("Mul", r, parts[2][1])))
    h = op("Add", n, op("Mul", z, op("Sub", state, n)))
    return _tanh_layer(graph, params, "output", h), h


def add_quadratic(graph: Graph, controller: Quadratic, params: Arrays, inputs: str, state: str | None) -> Result:
    """A layer on inputs and products of inputs."""
    op, x = graph.op, inputs
    products = params["output.weight"].shape[1]
    count = int(((8 * products + 9) ** 0.5 - 3) / 2 + 0.5)  # products = count + count·(count + 1)/2
    if controller.deltas:
        assert state is not None
        size = count // 2
        has_last = op("Greater", graph.slice(state, 0, 1, 1), 0.0)
        last = graph.either(has_last, graph.slice(state, 1, size + 1, 1), inputs)
        x = graph.concat(inputs, op("Mul", op("Sub", inputs, last), float(DELTA_GAIN)), axis=1)
        ones = op("Add", op("Mul", graph.slice(inputs, 0, 1, 1), 0.0), 1.0)
        state = graph.concat(ones, inputs, axis=1)
    first, second = np.triu_indices(count)
    pairs = op("Mul", op("Gather", x, first, axis=1), op("Gather", x, second, axis=1))
    return _tanh_layer(graph, params, "output", graph.concat(x, pairs, axis=1)), state


def _gates(graph: Graph, params: Arrays, which: str, x: str) -> str:
    return graph.affine(x, params[f"weight_{which}"], params[f"bias_{which}"])


def _tanh_layer(graph: Graph, params: Arrays, name: str, x: str) -> str:
    return graph.op("Tanh", graph.affine(x, params[f"{name}.weight"], params[f"{name}.bias"]))
