"""Image → readout, by each kind of encoder, with all that does not depend on the image done beforehand."""

import numpy as np

from iap.attention.features import featurise
from iap.attention.mixing import layer_norm, mix
from iap.attention.ranking import rank_scores, with_unit_rows
from iap.policies.convolutions import Convolutions
from iap.policies.looking import Look, Projector
from iap.policies.multi_head_rank import MultiHeadRanker
from iap.policies.rankers import AttentionAgentRanker, Ranker
from iap.policies.sizes import Shape, layers_of, patches_of
from iap.policies.specs import CNN, AttentionAgent, MultiHeadRank, PolicyConfig, Rank, Trans
from iap.policies.state import Attention, State
from iap.policies.trees import AttentionAgentParams, LayersParams, MultiHeadRankParams, Params, RankParams, TransParams

NONE_CHOSEN = np.empty(0, np.int64)


class Mixer:
    """IAP-trans."""

    def __init__(self, encoder: Trans, image_shape: Shape, params: TransParams) -> None:
        self._vision = encoder
        self._grid = patches_of(encoder, image_shape)
        self._project = Projector(encoder, image_shape, [params.query, params.key, params.value], encoder.positions)
        self._pooling = params.pooling
        self._weights = np.abs(params.pooling).mean(axis=0)

    def look(self, image: np.ndarray, _state: State) -> Look:
        """Mix all patches; none is chosen, and the scores tell how much attention reaches each, signs of P aside."""
        encoder = self._vision
        queries, keys, values = self._project(image)
        features, key_features = featurise(encoder.kernel, queries, keys)
        if encoder.normalise_rows:
            features = with_unit_rows(features, key_features)
        mixed = mix(self._pooling, features, key_features, values, residual=encoder.residual)
        mixed = layer_norm(mixed) if encoder.layer_norm else mixed
        scores = rank_scores(features, key_features, pooling=self._weights).values
        return Look(mixed.ravel(), Attention(scores, NONE_CHOSEN, self._grid, encoder.patch, encoder.stride))


class Convolver:
    """A CNN."""

    def __init__(self, encoder: CNN, image_shape: Shape, params: LayersParams) -> None:
        self._convolve = Convolutions(layers_of(encoder, image_shape), image_shape, params.layers)

    def look(self, image: np.ndarray, _state: State) -> Look:
        """The outputs of the last layer."""
        return Look(self._convolve(image).flatten())


def encoder_of(
    spec: PolicyConfig, params: Params
) -> Ranker | MultiHeadRanker | Mixer | AttentionAgentRanker | Convolver | None:
    """The encoder of a spec, with these parameters; None if it is blind."""
    match spec.encoder, params.encoder:
        case Rank() as encoder, RankParams() as evolved:
            return Ranker(encoder, spec.input_shape, evolved, spec.keys_every)
        case MultiHeadRank() as encoder, MultiHeadRankParams() as evolved:
            return MultiHeadRanker(encoder, spec.input_shape, evolved)
        case Trans() as encoder, TransParams() as evolved:
            return Mixer(encoder, spec.input_shape, evolved)
        case AttentionAgent() as encoder, AttentionAgentParams() as evolved:
            return AttentionAgentRanker(encoder, spec.input_shape, evolved)
        case CNN() as encoder, LayersParams() as evolved:
            return Convolver(encoder, spec.input_shape, evolved)
        case _, None:
            return None
    raise TypeError(f"params are of another encoder than {spec.encoder}")
