"""A baseline: random actions, the same for the same seed."""

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float


class RandomState(NamedTuple):
    """The seed of the episode, the number of its steps, and no inputs."""

    seed: int
    step: int
    inputs: np.ndarray


class RandomActions:
    """An actor whose raw numbers are uniform in [−1, 1]; the choices of a Discrete are then equally likely."""

    inputs_size = 0

    def __init__(self, actions: int) -> None:
        self._actions = actions

    def reset(self, seed: int = 0) -> RandomState:
        """The state at the start of an episode."""
        return RandomState(seed, 0, np.empty(0, np.float32))

    def needs_image(self, state: RandomState) -> bool:
        """Never."""
        return False

    def act(
        self, state: RandomState, observation: Mapping[str, Any]
    ) -> tuple[Float[np.ndarray, " k"], RandomState, None]:
        """The next random numbers."""
        rng = np.random.default_rng((state.seed, state.step))
        raw = rng.uniform(-1, 1, self._actions).astype(np.float32)
        return raw, state._replace(step=state.step + 1), None
