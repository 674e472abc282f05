"""A graph in the making: nodes, constants, and branches that see the names of the graph around them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

OPSET = 18
IR_VERSION = 9


class Graph:
    """Nodes and constants of an ONNX graph; every operation returns the name of its output."""

    def __init__(self) -> None:
        self.constants: dict[str, Any] = {}
        self._nodes: list[Any] = []
        self._count = 0

    def op(self, kind: str, *inputs: Any, outputs: int = 1, **attributes: Any) -> Any:
        """Add a node; inputs are names, or NumPy arrays and numbers, which become constants."""
        from onnx import helper

        names = [self._name(kind) for _ in range(outputs)]
        given = [x if isinstance(x, str) else self.constant(x) for x in inputs]
        self._nodes.append(helper.make_node(kind, given, names, **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, value: Any) -> str:
        """A constant; Python integers are int64, other numbers float32."""
        from onnx import numpy_helper

        array = np.asarray(value)
        if array.dtype == np.float64:
            array = array.astype(np.float32)
        name = self._name("constant")
        self.constants[name] = numpy_helper.from_array(np.ascontiguousarray(array).reshape(array.shape), name)
        return name

    def name_output(self, value: str, name: str) -> None:
        """Give a value the name of an output of the whole graph."""
        from onnx import helper

        self._nodes.append(helper.make_node("Identity", [value], [name]))

    @contextmanager
    def branch(self) -> Iterator[list[Any]]:
        """Collect the nodes that are added inside, for a branch of an `If`."""
        outer, self._nodes = self._nodes, []
        try:
            yield self._nodes
        finally:
            self._nodes = outer

    def nodes(self) -> list[Any]:
        """All nodes so far."""
        return self._nodes

    def _name(self, kind: str) -> str:
        self._count += 1
        return f"{kind}_{self._count}"

    # Operations that are used often.

    def reduce(self, kind: str, x: str, axis: int, *, keep: bool = True) -> str:
        """ReduceSum, ReduceMean, ReduceMax or ReduceMin over one axis."""
        return self.op(f"Reduce{kind}", x, np.array([axis]), keepdims=int(keep))

    def reshape(self, x: str, *shape: int) -> str:
        """Reshape; 0 keeps a size and −1 is computed."""
        return self.op("Reshape", x, np.array(shape, np.int64))

    def transpose(self, x: str, *order: int) -> str:
        """Transpose."""
        return self.op("Transpose", x, perm=order)

    def slice(self, x: str, start: int, stop: int, axis: int) -> str:
        """x[start:stop] of one axis."""
        return self.op("Slice", x, np.array([start]), np.array([stop]), np.array([axis]))

    def concat(self, *parts: str, axis: int) -> str:
        """Concat; one part is returned as it is."""
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=axis)

    def unsqueeze(self, x: str, axis: int) -> str:
        """A new axis of size 1."""
        return self.op("Unsqueeze", x, np.array([axis]))

    def affine(self, x: str, weight: np.ndarray, bias: np.ndarray) -> str:
        """x·Wᵀ + b."""
        return self.op("Add", self.op("MatMul", x, weight.T), bias)

    def either(self, condition: str, x: Any, y: Any) -> str:
        """Where."""
        return self.op("Where", condition, x, y)

    def convolve(
        self, x: str, weights: np.ndarray, channels: int, stride: int, biases: np.ndarray | None = None
    ) -> str:
        """Weights (filters, taps in the order row, column, channel) on (n, C, H, W)."""
        side = round((weights.shape[1] // channels) ** 0.5)
        kernel = weights.reshape(len(weights), side, side, channels).transpose(0, 3, 1, 2)
        others = [] if biases is None else [biases]
        return self.op("Conv", x, kernel, *others, strides=[stride, stride])
