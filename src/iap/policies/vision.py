"""Image → readout, by each kind of vision, with all that does not depend on the image done beforehand."""

import numpy as np

from iap.attention.features import featurise
from iap.attention.mixing import layer_norm, mix
from iap.attention.ranking import rank_scores, with_unit_rows
from iap.policies.convolutions import Convolutions
from iap.policies.looking import Look, Projector
from iap.policies.multi_rankers import MultiRanker
from iap.policies.rankers import ExactRanker, Ranker
from iap.policies.sizes import Shape, layers_of, patches_of
from iap.policies.specs import CNN, ExactRank, MultiRank, PolicySpec, Rank, Trans
from iap.policies.state import Attention, State
from iap.policies.trees import ExactRankParams, LayersParams, MultiRankParams, Params, RankParams, TransParams

NONE_CHOSEN = np.empty(0, np.int64)


class Mixer:
    """IAP-trans."""

    def __init__(self, vision: Trans, image_shape: Shape, params: TransParams) -> None:
        self._vision = vision
        self._grid = patches_of(vision, image_shape)
        self._project = Projector(vision, image_shape, [params.query, params.key, params.value], vision.positions)
        self._pooling = params.pooling
        self._weights = np.abs(params.pooling).mean(axis=0)

    def look(self, image: np.ndarray, _state: State) -> Look:
        """Mix all patches; none is chosen, and the scores tell how much attention reaches each, signs of P aside."""
        vision = self._vision
        queries, keys, values = self._project(image)
        features, key_features = featurise(vision.kernel, queries, keys)
        if vision.normalise_rows:
            features = with_unit_rows(features, key_features)
        mixed = mix(self._pooling, features, key_features, values, residual=vision.residual)
        mixed = layer_norm(mixed) if vision.layer_norm else mixed
        scores = rank_scores(features, key_features, pooling=self._weights).values
        return Look(mixed.ravel(), Attention(scores, NONE_CHOSEN, self._grid, vision.patch, vision.stride))


class Convolver:
    """A CNN."""

    def __init__(self, vision: CNN, image_shape: Shape, params: LayersParams) -> None:
        self._convolve = Convolutions(layers_of(vision, image_shape), image_shape, params.layers)

    def look(self, image: np.ndarray, _state: State) -> Look:
        """The outputs of the last layer."""
        return Look(self._convolve(image).flatten())


def vision_of(spec: PolicySpec, params: Params) -> Ranker | MultiRanker | Mixer | ExactRanker | Convolver | None:
    """The vision of a spec, with these parameters; None if it is blind."""
    match spec.vision, params.vision:
        case Rank() as vision, RankParams() as evolved:
            return Ranker(vision, spec.seen_shape, evolved, spec.keys_every)
        case MultiRank() as vision, MultiRankParams() as evolved:
            return MultiRanker(vision, spec.seen_shape, evolved)
        case Trans() as vision, TransParams() as evolved:
            return Mixer(vision, spec.seen_shape, evolved)
        case ExactRank() as vision, ExactRankParams() as evolved:
            return ExactRanker(vision, spec.seen_shape, evolved)
        case CNN() as vision, LayersParams() as evolved:
            return Convolver(vision, spec.seen_shape, evolved)
        case _, None:
            return None
    raise TypeError(f"params are of another vision than {spec.vision}")
