"""Kept patches → numbers: pixels, centres or a projection of each, or a few heads' pool of all."""

from collections.abc import Callable
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from iap.attention.patches import as_pixels, centres_of
from iap.policies.encoder_configs import AttentionAgent, MultiHeadRank, Rank
from iap.policies.kernels import above_least, pool_patches
from iap.policies.sizes import CENTRE, patches_of, value_size, window_of
from iap.policies.trees import Affine, RankParams

Cut = Callable[[np.ndarray, np.ndarray], np.ndarray]  # image, patches chosen → a row of numbers each
Read = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]  # image, patches chosen, all scores → readout


def reader_of(encoder: Rank, image_shape: tuple[int, int, int], params: RankParams) -> Read:
    """How this encoder reads the patches it keeps."""
    centres = scaled_centres(encoder, image_shape)
    if params.heads is not None:
        return Pooled(encoder, params.heads, centres)
    cut = _cutter(encoder, image_shape)
    parts: dict[str, Cut] = {
        "pixels": cut,
        "centres": lambda _image, chosen: centres[chosen],
        "projection": lambda image, chosen: cut(image, chosen) @ projection,
    }
    projection = np.empty(0) if params.projection is None else params.projection.weight.T
    wanted = [parts[value] for value in encoder.values]

    def read(image: np.ndarray, chosen: np.ndarray, _scores: np.ndarray) -> np.ndarray:
        if encoder.order == "image":
            chosen = np.sort(chosen)
        rows = np.concatenate([part(image, chosen) for part in wanted], axis=1)
        if not encoder.masked:
            return rows.ravel()
        in_place = np.zeros((len(centres), value_size(encoder, image_shape[2])), np.float32)
        in_place[chosen] = rows
        return in_place.ravel()

    return read


def scaled_centres(
    encoder: Rank | MultiHeadRank | AttentionAgent, image_shape: tuple[int, int, int]
) -> Float[np.ndarray, "L 2"]:
    """Each patch's centre, (row, column), the image's edges being at ±1."""
    centres = centres_of(patches_of(encoder, image_shape), *window_of(encoder))
    return (2 * centres + 1) / np.array(image_shape[:2], np.float32) - 1


def _cutter(encoder: Rank, image_shape: tuple[int, int, int]) -> Cut:
    """Cuts the chosen patches out of an image: rows of `extract`, without those that nobody asked for."""
    places = np.arange(np.prod(image_shape)).reshape(image_shape)
    grid, side = patches_of(encoder, image_shape), encoder.patch
    corners = places[:: encoder.stride, :: encoder.stride, 0][: grid.rows, : grid.columns].reshape(-1, 1)
    within = places[:side, :side].reshape(1, -1)

    def cut(image: np.ndarray, chosen: Int[np.ndarray, " l"]) -> Float[np.ndarray, "l c"]:
        return as_pixels(image.ravel()[corners[chosen] + within])

    return cut


class Pooled:
    """A few heads, each weighing patches by mean colour, place and score: centroid, second moments, mass, in turn."""

    def __init__(self, encoder: Rank, heads: Affine, centres: Float[np.ndarray, "L 2"]) -> None:
        patch, pixels = (encoder.patch, encoder.stride), encoder.patch**2
        places, weights, biases = (np.array(x, np.float64) for x in (centres, heads.weight, heads.bias))
        if not encoder.position_weighted:
            weights = np.hstack([weights, np.zeros((len(weights), CENTRE))])
        self.score_weighted, self._alike = encoder.score_weighted, np.ones(encoder.top_k)
        self._bytes = (*patch, places, 1 / (255 * pixels), -0.5, weights, biases)
        self._floats = (*patch, places, 1 / pixels, 0.0, weights, biases)

    def __call__(self, image: np.ndarray, chosen: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """The readout."""
        shares = above_least(scores, chosen) if self.score_weighted else self._alike
        return pool_patches(image, chosen, shares, *self.arguments(image))

    def arguments(self, image: np.ndarray) -> tuple[Any, ...]:
        """What `pool_patches` takes beside an image such as this, the chosen patches and their shares."""
        return self._bytes if image.dtype == np.uint8 else self._floats
