"""IAP-rank with several heads, which see with the same queries and keys."""

import numpy as np

from iap.attention.features import ReLU
from iap.attention.kernels.ranker import Layer, compile_ranker
from iap.attention.positions import Positions
from iap.policies.convolutions import Convolutions
from iap.policies.encoder_configs import MultiHeadRank
from iap.policies.looking import Look
from iap.policies.multi_head_rank_kernels import rank_heads, read_heads
from iap.policies.readout import scaled_centres
from iap.policies.sizes import Shape, patches_of, window_of
from iap.policies.state import Attention, State
from iap.policies.trees import MultiHeadRankParams


class MultiHeadRanker:
    """Each head ranks all patches, and tells where its best ones lie."""

    def __init__(self, encoder: MultiHeadRank, image_shape: Shape, params: MultiHeadRankParams) -> None:
        self._vision, self._grid, self._window = encoder, patches_of(encoder, image_shape), window_of(encoder)
        self._stem = Convolutions(encoder.stem, image_shape, params.stem)
        self._centres = scaled_centres(encoder, image_shape).astype(np.float64)
        self._gains = np.array(params.gains, np.float32)
        self._fused = compile_ranker(
            ReLU(),
            Layer(params.query.weight.T, params.query.bias),
            Layer(params.key.weight.T, params.key.bias),
            self._stem.shapes[-1],
            patch=encoder.patch,
            stride=encoder.stride,
            positions=Positions("none"),
        )

    def look(self, image: np.ndarray, _state: State) -> Look:
        """Score all patches head by head; attended is what any head has chosen."""
        encoder = self._vision
        if encoder.stem:
            image = self._stem(image)
        image = self._fused.check(image)
        patch, stride, steps, _, weights, rows, columns, x = self._fused.arrays(image.dtype).projection
        scores = rank_heads(image, patch, stride, steps, weights, rows, columns, x, self._gains)
        readout, chosen, best = read_heads(scores, encoder.top_k, self._centres)
        chosen = np.unique(chosen)
        chosen = chosen[np.argsort(-best[chosen], kind="stable")]
        return Look(readout, Attention(best, chosen, self._grid, *self._window))
