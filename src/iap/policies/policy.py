"""A policy that acts: spec and parameters folded once, then state and observation → action and next state."""

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from jaxtyping import Float

from iap.attention.arrays import require_count, require_finite
from iap.policies.encoders_old import encoder_of
from iap.policies.hierarchy import OneLevel, TwoLevels
from iap.policies.kernels import fill_features, follow, receive
from iap.policies.looking import Look
from iap.policies.normalization import Normaliser
from iap.policies.params import require_params
from iap.policies.preprocessing import show
from iap.policies.specs import PolicyConfig
from iap.policies.state import Attention, State
from iap.policies.trees import Params

BLIND = Look(np.empty(0, np.float32))


class Policy:
    """Acts on observations; all its memory is in the state, so the same state and observation give the same action.

    The controller receives the features of the last looks and the sensors of this step, normalised together; a low
    level receives the command and the same normalised sensors. It reuses working memory: give each thread its own.
    """

    def __init__(self, spec: PolicyConfig, params: Params, normaliser: Normaliser | None = None) -> None:
        self.spec = spec
        self.params = require_params(spec, params)
        self.normaliser = Normaliser.none(spec.inputs_size) if normaliser is None else normaliser
        self.inputs_size = spec.inputs_size
        if len(self.normaliser.mean) != spec.inputs_size:
            raise ValueError(f"normaliser has {len(self.normaliser.mean)} numbers, but inputs have {spec.inputs_size}")
        self.features_size = spec.features_size
        self.encoder = encoder_of(spec, params)
        # Whether a look's readout is all of its features.
        self.forgets = spec.frames == 1 and not spec.relative_to_first_frame and not spec.first_frame_features
        self.normal = (self.normaliser if spec.normalise else Normaliser.none(spec.inputs_size)).folded
        self.hierarchy = OneLevel(spec, params) if spec.hierarchy is None else TwoLevels(spec, params)

    def begin(self, seed: int = 0) -> State:
        """The state at the start of an episode; the seed matters only to a policy that samples its patches."""
        return State(
            inputs=np.zeros(self.inputs_size, np.float32),
            readouts=np.zeros((0, self.spec.readout_size), np.float32),
            hidden=self.hierarchy.begin,
            latent_size=np.zeros(0 if self.spec.hierarchy is None else self.spec.hierarchy.latent_size, np.float32),
            seed=require_count("seed", seed, least=0),
        )

    def needs_image(self, state: State) -> bool:
        """Whether the next step looks at the image; else it may be stale, missing or None."""
        return self.encoder is not None and state.hold == 0

    def act(
        self, state: State, observation: Mapping[str, Any]
    ) -> tuple[Float[np.ndarray, " k"], State, Attention | None]:
        """The action in [−1, 1], the next state, and what was attended to (None if nothing was looked at)."""
        if state.hold > 0 and self.hierarchy.follows is not None:
            inputs, action = follow(
                state.inputs,
                self.features_size,
                self.sensors(observation),
                *self.normal,
                state.latent,
                *self.hierarchy.follows,
            )
            _, readouts, hidden, latent, keys, images, looks, hold, seed = state
            return action, State(inputs, readouts, hidden, latent, keys, images, looks, hold - 1, seed), None
        readouts, keys, images, looks, attention = state.readouts, state.keys, state.images, state.looks, None
        if state.hold == 0:
            (readout, attention, keys), images = self._look(observation, state)
            features, readouts = self._remember(readout, readouts)
            looks += 1
        else:
            features = state.inputs[: self.features_size]
        inputs, normal = receive(features, self.sensors(observation), *self.normal)
        action, hidden, latent, hold = self.hierarchy.decide(normal, state)
        return action, State(inputs, readouts, hidden, latent, keys, images, looks, hold, state.seed), attention

    def _look(self, observation: Mapping[str, Any], state: State) -> tuple[Look, tuple[np.ndarray, np.ndarray] | None]:
        """What comes of looking, and the images to remember if more than this one is seen."""
        if self.encoder is None:
            return BLIND, None
        image = self.image(observation)
        if self.spec.preprocessing == ("image",):
            return self.encoder.look(image, state), None
        image = image.copy()  # cameras may draw over their images
        before, first = state.images or (image, image)
        seen = show(self.spec.preprocessing, image, before, first)
        return self.encoder.look(seen, state), (image, first)

    def _remember(self, readout: np.ndarray, before: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The features: this readout, then its differences to those before or the first; and what to remember."""
        if self.forgets:
            return readout, before
        if self.spec.relative_to_first_frame:
            return self._remember_from_first(readout, before)
        if self.spec.first_frame_features:
            first = before if len(before) else readout[None]
            return np.concatenate([readout, first[0]]), first
        features = np.empty(self.features_size, np.float32)
        fill_features(readout, before, features)
        newest = readout[None]
        return features, newest if self.spec.frames == 2 else np.concatenate([newest, before[: self.spec.frames - 2]])  # noqa: PLR2004

    def _remember_from_first(self, readout: np.ndarray, before: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same, with readouts counted from the episode's first one, which is remembered last."""
        first = before[-1:] if len(before) else readout[None]
        features = np.empty(self.features_size, np.float32)
        fill_features(readout - first[0], before[:-1] - first, features)
        newest = np.concatenate([readout[None], before[:-1]])[: self.spec.frames - 1]
        return features, np.concatenate([newest, first])

    def image(self, observation: Mapping[str, Any]) -> np.ndarray:
        """The image of an observation, contiguous, if it is what the spec says."""
        image = observation["image"]
        if not isinstance(image, np.ndarray):
            raise TypeError(f"image must be a NumPy array at a step that looks, not {type(image).__name__}")
        if image.shape != self.spec.image_shape:
            raise ValueError(f"image must be of shape {self.spec.image_shape}, not {image.shape}")
        if image.dtype == np.uint8:
            return np.ascontiguousarray(image)
        if image.dtype not in (np.float32, np.float64):
            raise TypeError(f"image must be uint8, float32 or float64, not {image.dtype}")
        image = np.ascontiguousarray(image, np.float32)
        if not math.isfinite(np.vdot(image, image)):  # which may be no more than an overflow
            require_finite("image", image)
        return image

    def sensors(self, observation: Mapping[str, Any]) -> np.ndarray:
        """The sensors of an observation, if they are as many as the spec says."""
        sensors = np.asarray(observation["sensors"], np.float32)
        if sensors.shape != (self.spec.sensors,):
            raise ValueError(f"sensors must be of shape ({self.spec.sensors},), not {sensors.shape}")
        return sensors
