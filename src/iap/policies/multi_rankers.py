"""IAP-rank with several heads, which see with the same queries and keys."""

import numpy as np

from iap.attention.features import ReLU
from iap.attention.fused import Layer, fold
from iap.attention.positions import Positions
from iap.policies.convolutions import Convolutions
from iap.policies.looking import Look
from iap.policies.multi_rank_loops import rank_heads, read_heads
from iap.policies.readout import scaled_centres
from iap.policies.sizes import Shape, patches_of, window_of
from iap.policies.state import Attention, State
from iap.policies.trees import MultiRankParams
from iap.policies.vision_specs import MultiRank


class MultiRanker:
    """Each head ranks all patches, and tells where its best ones lie."""

    def __init__(self, vision: MultiRank, image_shape: Shape, params: MultiRankParams) -> None:
        self._vision, self._grid, self._window = vision, patches_of(vision, image_shape), window_of(vision)
        self._stem = Convolutions(vision.stem, image_shape, params.stem)
        self._centres = scaled_centres(vision, image_shape).astype(np.float64)
        self._gains = np.array(params.gains, np.float32)
        self._fused = fold(
            ReLU(),
            Layer(params.query.weight.T, params.query.bias),
            Layer(params.key.weight.T, params.key.bias),
            self._stem.shapes[-1],
            patch=vision.patch,
            stride=vision.stride,
            positions=Positions("none"),
        )

    def look(self, image: np.ndarray, _state: State) -> Look:
        """Score all patches head by head; attended is what any head has chosen."""
        vision = self._vision
        if vision.stem:
            image = self._stem(image)
        image, (patch, stride, steps, weights, rows, columns, x, _) = self._fused.prepare(image)
        scores = rank_heads(image, patch, stride, steps, weights, rows, columns, x, self._gains)
        readout, chosen, best = read_heads(scores, vision.keep, self._centres)
        chosen = np.unique(chosen)
        chosen = chosen[np.argsort(-best[chosen], kind="stable")]
        return Look(readout, Attention(best, chosen, self._grid, *self._window))
