"""Another colour for every material of a model."""

from typing import Any

import numpy as np
from jaxtyping import Float

STEP_PER_SCALE = 0.03

Colours = Float[np.ndarray, "materials 3"]


def colour_ranges(own: Colours, scale: float) -> tuple[Colours, Colours]:
    """The lowest and the highest colours: each channel up to ±scale from its own, and within 0..1."""
    return np.clip(own - scale, 0, 1), np.clip(own + scale, 0, 1)


def draw_colours(low: Colours, high: Colours, rng: np.random.Generator) -> Colours:
    """Colours of an episode."""
    return rng.uniform(low, high)


def walk_colours(colours: Colours, low: Colours, high: Colours, scale: float, rng: np.random.Generator) -> Colours:
    """One step of the random walk."""
    return np.clip(colours + rng.normal(0, STEP_PER_SCALE * scale, colours.shape), low, high)


class ColourDistraction:
    """The colours of a model's materials; of the materials and not the shapes, which would make the floor opaque."""

    def __init__(self, model: Any, scale: float, dynamic: bool) -> None:
        self._shown = model.mat_rgba[:, :3]
        self._scale, self._dynamic = scale, dynamic
        self._low, self._high = colour_ranges(self._shown.astype(float), scale)

    def begin(self, rng: np.random.Generator) -> None:
        """Choose the colours of an episode."""
        self._rng = rng
        self._colours = draw_colours(self._low, self._high, rng)

    def advance(self) -> None:
        """Let a step of the task pass."""
        if self._dynamic:
            self._colours = walk_colours(self._colours, self._low, self._high, self._scale, self._rng)

    def show(self, _data: Any) -> None:
        """Put the colours into the model."""
        self._shown[:] = self._colours
