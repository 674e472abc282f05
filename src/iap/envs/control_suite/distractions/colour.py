"""Random colours for all materials of a model."""

from typing import Any

import numpy as np
from jaxtyping import Float

STEP_PER_SCALE = 0.03

Colours = Float[np.ndarray, "materials 3"]


def colour_ranges(original: Colours, scale: float) -> tuple[Colours, Colours]:
    """The lowest and the highest colours: each channel within ±scale of the original, and within 0..1."""
    return np.clip(original - scale, 0, 1), np.clip(original + scale, 0, 1)


def draw_colours(low: Colours, high: Colours, rng: np.random.Generator) -> Colours:
    """The colours of an episode."""
    return rng.uniform(low, high)


def walk_colours(colours: Colours, low: Colours, high: Colours, scale: float, rng: np.random.Generator) -> Colours:
    """One step of the random walk."""
    return np.clip(colours + rng.normal(0, STEP_PER_SCALE * scale, colours.shape), low, high)


class ColourDistraction:
    """The colours of a model's materials. Colours of geoms would make the floor opaque."""

    def __init__(self, model: Any, scale: float, dynamic: bool) -> None:
        self._materials = model.mat_rgba[:, :3]
        self._scale, self._dynamic = scale, dynamic
        self._low, self._high = colour_ranges(self._materials.astype(float), scale)

    def reset(self, rng: np.random.Generator) -> None:
        """Draw the colours of an episode."""
        self._rng = rng
        self._colours = draw_colours(self._low, self._high, rng)

    def advance(self) -> None:
        """Advance by one step of the task."""
        if self._dynamic:
            self._colours = walk_colours(self._colours, self._low, self._high, self._scale, self._rng)

    def apply(self, _data: Any) -> None:
        """Write the colours into the model."""
        self._materials[:] = self._colours
