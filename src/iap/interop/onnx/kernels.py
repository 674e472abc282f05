"""The kernels in ONNX: features of queries or keys (n, L, d) as values and logs of their sizes."""

from typing import Any, NamedTuple

import numpy as np

from iap.attention.features import Kernel, ReLU, Softmax, draw_projections
from iap.interop.onnx.graph import Graph


class Features(NamedTuple):
    """values·e^logs, both of a shape that broadcasts to (n, L, features); constant factors 1/√m are left out.

    The logs of ReLU features are None: all are 0.
    """

    values: Any
    logs: str | None


def add_features(graph: Graph, kernel: Kernel, queries: str, keys: str, d: int) -> tuple[Features, Features]:
    """The features of queries and of keys."""
    op = graph.op
    if isinstance(kernel, ReLU):
        return Features(op("Relu", queries), None), Features(op("Relu", keys), None)
    x, y = (_kernel_inputs(graph, kernel, side, d) for side in (queries, keys))
    omega = draw_projections(kernel.projections, d, kernel.seed)
    if kernel.features == "trigonometric":
        return _trigonometric(graph, x, omega), _trigonometric(graph, y, omega)
    slope, shift = _adapted(graph, x, y, omega) if kernel.features == "favor++" else (None, None)
    if kernel.features == "hyperbolic":
        omega = np.concatenate([omega, -omega])
    one = np.ones((1, 1, len(omega)), np.float32)
    logs = []
    for side in (x, y):
        exponents = op("MatMul", side, omega.T)
        if slope is not None:
            exponents = op("Add", op("Mul", exponents, slope), shift)
        logs.append(op("Sub", exponents, _half_norms(graph, side)))
    return Features(one, logs[0]), Features(one, logs[1])


def _kernel_inputs(graph: Graph, kernel: Softmax, u: str, d: int) -> str:
    """u/d^¼, or d^¼·u/‖u‖, and 0 where u is 0."""
    op, quarter = graph.op, d**0.25
    if not kernel.normalised:
        return op("Div", u, quarter)
    squared = graph.reduce("Sum", op("Mul", u, u), 2)
    norm = op("Sqrt", graph.either(op("Greater", squared, 0.0), squared, 1.0))
    return op("Mul", u, op("Div", quarter, norm))


def _half_norms(graph: Graph, x: str) -> str:
    return graph.op("Mul", graph.reduce("Sum", graph.op("Mul", x, x), 2), 0.5)


def _trigonometric(graph: Graph, x: str, omega: np.ndarray) -> Features:
    angles = graph.op("MatMul", x, omega.T)
    waves = graph.concat(graph.op("Sin", angles), graph.op("Cos", angles), axis=2)
    return Features(waves, _half_norms(graph, x))


def _adapted(graph: Graph, x: str, y: str, omega: np.ndarray) -> tuple[str, str]:
    """FAVOR++'s √(1 − 4A), and A‖ω‖² + d/4·log(1 − 4A) of each ω, as `favor_plus_plus_parameter` has them."""
    op, d = graph.op, omega.shape[1]
    norms = [graph.reduce("Mean", graph.reduce("Sum", op("Mul", side, side), 2), 1) for side in (x, y)]
    means = [graph.reduce("Mean", side, 1) for side in (x, y)]
    both = op("Mul", graph.reduce("Sum", op("Mul", *means), 2), 2.0)
    s = op("Max", op("Add", op("Add", *norms), both), 0.0)
    t = op("Add", op("Mul", s, 2.0), float(d))
    root = op("Sqrt", op("Add", op("Mul", op("Mul", op("Div", float(d), t), op("Div", s, t)), 8.0), 1.0))
    inverse_rho = op("Div", op("Mul", t, op("Add", root, 1.0)), 2.0 * d)
    a = op("Div", op("Sub", 1.0, inverse_rho), 8.0)
    spread = op("Sub", 1.0, op("Mul", a, 4.0))
    squares = np.sum(omega * omega, axis=1)[None, None].astype(np.float32)
    return op("Sqrt", spread), op("Add", op("Mul", a, squares), op("Mul", op("Log", spread), d / 4))
