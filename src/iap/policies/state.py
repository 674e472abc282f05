"""What a policy carries from step to step, and what it shows of its attention."""

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np
from jaxtyping import Float, Int

from iap.attention.patches import Grid


class State(NamedTuple):
    """All of a policy's memory; a policy never changes one, it makes the next.

    Attributes:
        inputs: what the controller received at the last step, before normalisation: features, then sensors. Between
            looks the features stay and the sensors go on; their running statistics are gathered from here.
        readouts: of the looks before the last one, the newest first; as many as there were, up to frames − 1. With
            `relative_to_first_frame` or `first_frame_features`, the first look's comes after them.
        hidden: the controller's own memory.
        latent: the command of the high level.
        keys: those stored at the last refresh, if keys are refreshed less often than queries.
        images: the last one that was looked at and the episode's first, if more is seen than the image itself.
        looks: how many there were.
        hold: steps to come before the next look.
        seed: of what is sampled; with `looks` it tells all random numbers.
    """

    inputs: Float[np.ndarray, " d"]
    readouts: Float[np.ndarray, "n r"]
    hidden: Float[np.ndarray, "2 units"]
    latent: Float[np.ndarray, " latent"]
    keys: Float[np.ndarray, "heads D L"] | None = None
    images: tuple[np.ndarray, np.ndarray] | None = None
    looks: int = 0
    hold: int = 0
    seed: int = 0


class Attention(NamedTuple):
    """One look, for the eye: the score of each patch, up to one positive factor, and which were chosen, best first."""

    scores: Float[np.ndarray, " L"]
    chosen: Int[np.ndarray, " l"]
    grid: Grid
    patch: int
    stride: int


class Actor(Protocol):
    """Whatever acts: a policy, or one made of policies. Its states are its own affair, but for their `inputs`."""

    inputs_size: int

    def begin(self, seed: int = 0) -> Any:
        """The state at the start of an episode."""
        ...

    def needs_image(self, state: Any) -> bool:
        """Whether the next step looks at the image."""
        ...

    def act(self, state: Any, observation: Mapping[str, Any]) -> tuple[Float[np.ndarray, " k"], Any, Attention | None]:
        """The action in [−1, 1], the next state, and what was attended to (None if nothing was looked at)."""
        ...
