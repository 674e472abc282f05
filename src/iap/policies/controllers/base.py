"""The interface of all controllers: inputs and state → outputs in [−1, 1] and the next state."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from iap._compile import dispatched
from iap.attention.arrays import Array
from iap.policies.params import Columns, ParamSpec


@dispatched
def control(controller, inputs, state) -> Any:
    """Compiled code: one step of a controller → outputs, next state.

    `controller` is the NamedTuple that `Controller.compile` returns; its class selects the implementation.
    """


@dataclass(frozen=True)
class Controller:
    """The base of all controllers: a frozen config and the functions that belong to it.

    A new controller is one file with a subclass and one line in `controllers/__init__.py` (or an entry point of the
    group `iap.controllers`). It has to override `param_specs` and `step`; one with a memory also `state_size`. Without
    `compile` it runs `step` on NumPy arrays.
    """

    def state_size(self, inputs: int) -> int:
        """The length of the state, which is zeros at the start of an episode; 0 for a controller without memory."""
        return 0

    def param_specs(self, inputs: int, outputs: int, output_std: Columns | None) -> list[ParamSpec]:
        """The controller's arrays of parameters, in the order of θ.

        Args:
            inputs: number of inputs.
            outputs: number of outputs.
            output_std: the initial standard deviation of each input's weights, for a controller whose inputs go
                straight to the outputs; None for the default.
        """
        raise NotImplementedError

    def step(self, params: Mapping[str, Array], state: Array, inputs: Array) -> tuple[Array, Array]:
        """Outputs (n, outputs) and next states (n, state_size) of a batch, differentiably, in any array library."""
        raise NotImplementedError

    def compile(self, params: Mapping[str, np.ndarray]) -> Any:
        """A NamedTuple of arrays for which `control` is implemented; None if there is none."""
        return None


def own(array: Array) -> np.ndarray:
    """A writable copy: compiled functions have another version for read-only arrays."""
    return np.array(array, np.float32)
