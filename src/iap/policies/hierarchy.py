"""From what the controller receives to an action: at one level, or by a command that a second level follows."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from iap.policies.controllers import Feedforward, Multiplied, Recurrent, controller_of
from iap.policies.specs import PolicyConfig
from iap.policies.state import State
from iap.policies.trees import Params


class Decision(NamedTuple):
    """The action, and what of the state changes with it."""

    action: Float[np.ndarray, " k"]
    hidden: Float[np.ndarray, "2 units"]
    latent: Float[np.ndarray, " latent"]
    hold: int


class OneLevel:
    """The controller acts at every step; the image is looked at every so many."""

    follows = commands = None

    def __init__(self, spec: PolicyConfig, params: Params) -> None:
        self._controller = controller_of(spec.controller, params.controller)
        self._look_every = spec.image_every
        self.begin = self._controller.begin

    def decide(self, inputs: Float[np.ndarray, " d"], state: State) -> Decision:
        """The action of this step."""
        action, hidden = self._controller(inputs, state.hidden)
        hold = (state.hold or self._look_every) - 1
        return Decision(action, hidden, state.latent, hold)


class TwoLevels:
    """The controller commands when it looks; the low level acts at every step on the command and the sensors."""

    def __init__(self, spec: PolicyConfig, params: Params) -> None:
        assert spec.hierarchy is not None
        assert params.low is not None
        self._high = controller_of(spec.controller, params.controller)
        self._low = controller_of(spec.hierarchy.low_level, params.low)
        self._longest_hold = spec.hierarchy.max_command_steps
        self._features_size, self._high_inputs_size = spec.features_size, spec.controller_inputs_size
        self.begin = self._low.begin if self._low.begin.size else self._high.begin  # one of them has a memory at most
        # The layers of `loops.follow` and `loops.command`, where a level is but one: most steps are no more than that.
        high, low = _only_layer(self._high), _only_layer(self._low)
        self.follows = low
        self.commands = high and low and (self._high_inputs_size, *high, self._longest_hold, *low)

    def decide(self, inputs: Float[np.ndarray, " d"], state: State) -> Decision:
        """The action of this step, under the command held or a new one."""
        hidden, latent, hold = state.hidden, state.latent, state.hold
        if hold == 0:
            outputs, hidden = self._high(inputs[: self._high_inputs_size], hidden)
            latent, hold = command_of(outputs, self._longest_hold)
        action, hidden = self._low(np.concatenate([latent, inputs[self._features_size :]]), hidden)
        return Decision(action, hidden, latent, hold - 1)


def _only_layer(controller: Feedforward | Multiplied | Recurrent) -> tuple[np.ndarray, np.ndarray] | None:
    return controller.layers[0] if isinstance(controller, Feedforward) and len(controller.layers) == 1 else None


class Command(NamedTuple):
    """What a high level says: a latent vector in [−1, 1], and for how many steps it holds."""

    latent: Float[np.ndarray, " latent"]
    command_steps: int


def command_of(outputs: Float[np.ndarray, " latent+1"], max_command_steps: int) -> Command:
    """The high level's outputs, in [−1, 1], as a command; the last tells how long, from 1 to `max_command_steps` steps."""
    share = (float(outputs[-1]) + 1) / 2
    return Command(outputs[:-1], 1 + round(share * (max_command_steps - 1)))
