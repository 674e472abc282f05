"""Visions that rank patches and keep a few: IAP-rank, and AttentionAgent's."""

from typing import Any

import numpy as np

from iap.attention.exact import exact_scores
from iap.attention.features import Softmax
from iap.attention.kernels.ranker import Layer, compile_ranker
from iap.attention.patches import centres_of
from iap.attention.positions import Positions
from iap.attention.selection import FEW, sample, top_of_image
from iap.policies.encoder_configs import AttentionAgent, Rank
from iap.policies.looking import Look, Projector
from iap.policies.readout import Pooled, reader_of
from iap.policies.sizes import Shape, patches_of
from iap.policies.state import Attention, State
from iap.policies.trees import Affine, AttentionAgentParams, RankParams


class Ranker:
    """IAP-rank; keys may be of an image before."""

    def __init__(self, encoder: Rank, image_shape: Shape, params: RankParams, keys_every: int) -> None:
        self._vision, self._keys_every = encoder, keys_every
        self.grid, self.patch, self.stride = patches_of(encoder, image_shape), encoder.patch, encoder.stride
        self._read = reader_of(encoder, image_shape, params)
        pooling = None if params.pooling is None else 1 + params.pooling
        self._fused = compile_ranker(
            encoder.kernel,
            _layer(params.query),
            _layer(params.key),
            image_shape,
            patch=encoder.patch,
            stride=encoder.stride,
            positions=encoder.positions,
            pooling=pooling,
            normalise_rows=encoder.normalise_rows,
        )
        is_plain = keys_every == 1 and encoder.select == "top" and encoder.top_k <= FEW
        self.glances = is_plain and isinstance(self._read, Pooled)

    def look(self, image: np.ndarray, state: State) -> Look:
        """Score all patches, keep a few, and read those."""
        scores, keys = self._score(image, state)
        chosen = self._choose(scores, state)
        attention = Attention(scores, chosen, self.grid, self.patch, self.stride)
        return Look(self._read(image, chosen, scores), attention, keys)

    def glance(self, image: np.ndarray) -> tuple[Any, ...]:
        """The arguments with which `loops.glance` gives what `look` does, if this encoder `glances`."""
        assert isinstance(self._read, Pooled)
        image = self._fused.check(image)
        ranking = self._fused.arrays(image.dtype)
        return image, ranking, self._vision.top_k, self._vision.score_weighted, self._read.arguments(image)

    def _score(self, image: np.ndarray, state: State) -> tuple[np.ndarray, np.ndarray | None]:
        """The scores, and if keys are stored, those that were used: refreshed when it is time."""
        if self._keys_every == 1:
            return self._fused.values(image), None
        keys = state.keys
        if keys is None or state.looks % self._keys_every == 0:
            keys = self._fused.keys_of(image)
        return self._fused.values(image, keys), keys

    def _choose(self, scores: np.ndarray, state: State) -> np.ndarray:
        if self._vision.select == "top":
            return top_of_image(scores, self._vision.top_k)
        bits = np.random.Philox(key=state.seed, counter=state.looks << 128)  # a stream of its own for each look
        uniforms = np.random.Generator(bits).random(len(scores), np.float32)
        return sample(scores, self._vision.top_k, uniforms, self._vision.kernel)


class AttentionAgentRanker:
    """AttentionAgent's encoder, or the same with linear attention."""

    def __init__(self, encoder: AttentionAgent, image_shape: Shape, params: AttentionAgentParams) -> None:
        self._vision, self._grid = encoder, patches_of(encoder, image_shape)
        self._centres = centres_of(self._grid, encoder.patch, encoder.stride) / np.array(image_shape[:2], np.float32)
        inputs = encoder.patch**2 * image_shape[2]
        # The softmax kernel divides logits by √d: here goes the rest of the way to √inputs.
        rest = (encoder.d / inputs) ** 0.25 if encoder.scale_by == "input" else 1.0
        query, key = _scaled(params.query, rest), _scaled(params.key, rest)
        positions = Positions("none")
        self._fused = self._project = None
        if not encoder.linear:
            self._project = Projector(encoder, image_shape, [query, key], positions, centre=0)
            return
        self._fused = compile_ranker(
            encoder.kernel,
            _layer(query),
            _layer(key),
            image_shape,
            patch=encoder.patch,
            stride=encoder.stride,
            positions=positions,
            centre=0,
            normalise_rows=True,
        )

    def look(self, image: np.ndarray, _state: State) -> Look:
        """The centres of the most important patches, best first."""
        encoder = self._vision
        scores = self._score(image)
        chosen = top_of_image(scores, encoder.top_k)
        attention = Attention(scores, chosen, self._grid, encoder.patch, encoder.stride)
        return Look(self._centres[chosen].ravel(), attention)

    def _score(self, image: np.ndarray) -> np.ndarray:
        if self._fused is not None:
            return self._fused.values(image)
        assert self._project is not None
        return exact_scores(Softmax(), *self._project(image), normalise_rows=True).values


def _layer(affine: Affine) -> Layer:
    return Layer(affine.weight.T, affine.bias)


def _scaled(affine: Affine, factor: float) -> Affine:
    factor32 = np.float32(factor)
    return Affine(None if affine.bias is None else affine.bias * factor32, affine.weight * factor32)
