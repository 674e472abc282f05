"""What comes of a look, and the patches' way into attention."""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from iap.attention.patches import as_pixels, extract
from iap.attention.positions import Positions, place
from iap.policies.encoder_configs import AttentionAgent, Rank, Trans
from iap.policies.sizes import Shape, patches_of
from iap.policies.state import Attention
from iap.policies.trees import Affine


class Look(NamedTuple):
    """What comes of looking once; `keys` are those to store."""

    readout: Float[np.ndarray, " r"]
    attention: Attention | None = None
    keys: Float[np.ndarray, "heads D L"] | None = None


class Projector:
    """X′W of an image: patches with positions, times weights; the positions' share is computed once."""

    def __init__(
        self,
        encoder: Rank | Trans | AttentionAgent,
        image_shape: Shape,
        layers: list[Affine],
        positions: Positions,
        centre: float = 0.5,
    ) -> None:
        self._patch, self._stride, self._centre = encoder.patch, encoder.stride, centre
        grid, pixels = patches_of(encoder, image_shape), encoder.patch**2 * image_shape[2]
        weights = np.concatenate([layer.weight for layer in layers]).T
        blank = np.zeros((grid.patches, pixels), np.float32)
        biases = [np.zeros(len(layer.weight), np.float32) if layer.bias is None else layer.bias for layer in layers]
        self._share = place(blank, grid, positions) @ weights + np.concatenate(biases)
        self._weights = np.ascontiguousarray(weights[:pixels])
        self._ends = np.cumsum([len(layer.weight) for layer in layers])[:-1]

    def __call__(self, image: np.ndarray) -> list[np.ndarray]:
        """One (L, d) matrix a layer."""
        tokens = extract(as_pixels(image, self._centre), self._patch, self._stride)
        return np.split(tokens @ self._weights + self._share, self._ends, axis=1)
