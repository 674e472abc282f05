"""Hierarchical policies: a high level gives a command for some steps, a low level acts at every step."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from iap._compile import compiled, dispatched, implements
from iap._validation import require_count, require_flags, require_positive, require_type
from iap.policies.controllers import Controller, Linear, control
from iap.policies.params import Columns


@dataclass(frozen=True)
class Hierarchy:
    """A high-level controller that gives commands, and a low-level one that acts on the command and the sensors.

    Attributes:
        latent_size: the length of a command.
        max_command_steps: the longest duration of a command; the high level chooses from 1 to this.
        low_level: the low-level controller.
        high_level_sensors: whether the high level receives the sensors besides the features; the low level always does.
        command_gain: the initial gain of the low level for commands. Commands must have an effect from the start:
            otherwise good and bad commands give the same return. At a gain of 2 most commands saturate the actions.
    """

    latent_size: int = 2
    max_command_steps: int = 10
    low_level: Controller = Linear()  # noqa: RUF009
    high_level_sensors: bool = True
    command_gain: float = 2.0

    def __post_init__(self) -> None:
        require_count("latent_size", self.latent_size)
        require_count("max_command_steps", self.max_command_steps)
        require_type("low_level", self.low_level, Controller)
        require_flags(self, "high_level_sensors")
        require_positive("command_gain", self.command_gain)

    def command_std(self, sensors: int) -> Columns:
        """The initial standard deviation of the low level's weights, if it is linear: commands, then sensors."""
        return column_std(self.latent_size, self.command_gain * math.sqrt(self.latent_size), sensors)


def column_std(leading: int, gain: float, sensors: int, sensor_gain: float = 0.1) -> Columns:
    """The standard deviation of each column of a last layer: leading inputs at a gain, then sensors near zero."""
    values = gain / math.sqrt(max(1, leading)), sensor_gain / math.sqrt(max(1, sensors))
    return Columns((leading, sensors), values)


def command_steps(output: float, max_command_steps: int) -> int:
    """The duration of a command in steps: the high level's last output, from [−1, 1] to 1 … max_command_steps."""
    share = (float(output) + 1) / 2
    return 1 + round(share * (max_command_steps - 1))


class FlatArrays(NamedTuple):
    """No hierarchy: the controller acts at every step, and an image is encoded every `image_every` steps."""

    image_every: Any


class HierarchyArrays(NamedTuple):
    """A low level below the controller.

    Attributes:
        low_level: the low-level controller, compiled.
        high_level_inputs: the number of inputs that the high level receives, from the first on.
        features: the number of inputs that are features.
        max_command_steps: as in `Hierarchy`.
    """

    low_level: Any
    high_level_inputs: Any
    features: Any
    max_command_steps: Any


@dispatched
def decide(hierarchy, controller, inputs, state, encoded) -> Any:
    """Compiled code: normalised inputs → action, hidden states, command, and steps until the next encoded image."""


@implements(decide, FlatArrays)
@compiled(inner=True)
def _decide_flat(hierarchy, controller, inputs, state, encoded):
    action, hidden = control(controller, inputs, state.hidden)
    hold_steps = (hierarchy.image_every if encoded else state.hold_steps) - 1
    return action, hidden, state.low_hidden, state.latent, hold_steps


@implements(decide, HierarchyArrays)
@compiled(inner=True)
def _decide_in_hierarchy(hierarchy, controller, inputs, state, encoded):
    hidden, latent, hold_steps = state.hidden, state.latent, state.hold_steps
    if encoded:
        outputs, hidden = control(controller, inputs[: hierarchy.high_level_inputs], state.hidden)
        latent = outputs[:-1].copy()
        share = (np.float64(outputs[-1]) + 1) / 2
        hold_steps = 1 + round(share * (hierarchy.max_command_steps - 1))
    x = np.empty(len(latent) + len(inputs) - hierarchy.features, np.float32)
    for i in range(len(x)):
        x[i] = latent[i] if i < len(latent) else inputs[hierarchy.features + i - len(latent)]
    action, low_hidden = control(hierarchy.low_level, x, state.low_hidden)
    return action, hidden, low_hidden, latent, hold_steps - 1
