"""A policy that acts: config and parameters compiled once, then state and observation → action and next state."""

import math
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float

from iap._compile import specialised
from iap._observations import sensors_of
from iap._validation import NotFiniteError, require_count
from iap.attention.arrays import require_finite
from iap.policies.config import PolicyConfig
from iap.policies.encoders.base import NO_KEYS, NO_SCORES, NO_SELECTION, NO_UNIFORMS, Attention
from iap.policies.hierarchy import FlatArrays, HierarchyArrays
from iap.policies.normalization import Normaliser
from iap.policies.params import Params, flatten, require_params, unflatten
from iap.policies.preprocessing import compile_preprocessing
from iap.policies.reference import step_in_numpy
from iap.policies.serialization import EnvReference, PolicyFile, load, save
from iap.policies.step import ControlArrays, PolicyArrays, State, act_on_image, act_on_sensors
from iap.policies.symmetry import (
    SymmetricState,
    act_on_image_symmetrically,
    act_on_sensors_symmetrically,
    flip,
    reflect_both,
    reflect_sensors,
    reflection_of,
)

Action = Float[np.ndarray, " k"]
NO_IMAGE = np.empty((0, 0, 0), np.uint8)


class Policy:
    """Acts on observations; all memory is in the state, so the same state and observation give the same action.

    Attributes:
        config: what was chosen.
        params: what was learnt.
        normaliser: running statistics of the controller's inputs.
        env: the environment that the policy was trained in, if that is known.
        facts: of its training.

    Example:
        >>> import iap
        >>> policy = iap.load_policy("zoo:seek")
        >>> env = iap.make_env(policy.env)
        >>> observation, _ = env.reset(seed=0)
        >>> state = policy.reset()
        >>> action, state, attention = policy.act(state, observation)
        >>> action.shape, len(attention.selected)
        ((2,), 16)
    """

    def __init__(
        self,
        config: PolicyConfig,
        params: Params | Float[np.ndarray, " p"],
        normaliser: Normaliser | None = None,
        *,
        env: EnvReference | None = None,
        facts: Mapping[str, Any] | None = None,
        compiled: bool = True,
    ) -> None:
        """A policy of a config and its parameters, as named arrays or as θ.

        Args:
            config: what was chosen.
            params: what was learnt.
            normaliser: statistics of the controller's inputs; none by default.
            env: the environment it is for.
            facts: of its training, kept in its file.
            compiled: whether steps are compiled. Without, or if a part has no compiled code, they run in plain NumPy.
        """
        self.config, self.env, self.facts = config, env, dict(facts or {})
        self.params = require_params(config, unflatten(config, params) if isinstance(params, np.ndarray) else params)
        self.normaliser = Normaliser.none(config.inputs_size) if normaliser is None else normaliser
        if len(self.normaliser.mean) != config.inputs_size:
            raise ValueError(
                f"normaliser has {len(self.normaliser.mean)} numbers, but the controller receives {config.inputs_size}"
            )
        self.inputs_size = config.inputs_size
        self._applied = self.normaliser if config.normalise else Normaliser.none(config.inputs_size)
        self._window = config.encoder.window(config.input_shape)
        self._reflection = None
        if config.symmetry is not None:
            columns = 1 if self._window is None else self._window.grid.columns
            self._reflection = reflection_of(config.symmetry, config.sensors, config.actions, columns)
        self._arrays: dict[np.dtype, PolicyArrays | None] = {}
        self._entries: dict[tuple[str, np.dtype | None], Any] = {}
        self._is_compiled = compiled

    @property
    def theta(self) -> Float[np.ndarray, " p"]:
        """The parameters as one vector."""
        return flatten(self.params)

    def reset(self, seed: int = 0) -> State | SymmetricState:
        """The state at the start of an episode; the seed matters only to encoders that sample patches."""
        config, hierarchy = self.config, self.config.hierarchy
        size = config.encoding_size
        uses_first = config.relative_to_first_frame or config.first_frame_features
        latent = 0 if hierarchy is None else hierarchy.latent_size
        low = 0 if hierarchy is None else hierarchy.low_level.state_size(latent + config.sensors)
        state = State(
            inputs=np.zeros(config.inputs_size, np.float32),
            previous=np.zeros((config.frames - 1, size), np.float32),
            first=np.zeros(size if uses_first else 0, np.float32),
            hidden=np.zeros(config.controller.state_size(config.controller_inputs_size), np.float32),
            low_hidden=np.zeros(low, np.float32),
            latent=np.zeros(latent, np.float32),
            keys=NO_KEYS,
            image=NO_IMAGE,
            first_image=NO_IMAGE,
            seed=require_count("seed", seed, least=0),
        )
        return state if self._reflection is None else SymmetricState(state, state)

    def needs_image(self, state: State | SymmetricState) -> bool:
        """Whether the next step encodes an image; otherwise it may be stale, missing or None."""
        return self.config.encoder.uses_image and state.hold_steps == 0

    def act(
        self, state: State | SymmetricState, observation: Mapping[str, Any]
    ) -> tuple[Action, State | SymmetricState, Attention | None]:
        """The action in [−1, 1], the next state, and what was attended to (None if no image was encoded).

        Args:
            state: that `reset` or the last step returned.
            observation: {"image": (H, W, C), "sensors": (n,)}.
        """
        sensors = self._sensors(observation)
        if state.hold_steps > 0:
            action, after, _, _ = self._step(state, None, sensors)
            return action, after, None
        image = self._image(observation) if self.config.encoder.uses_image else NO_IMAGE
        state = _with_image_type(state, image)
        action, after, scores, selected = self._step(state, image, sensors)
        return action, after, None if self._window is None else Attention(scores, selected, *self._window)

    def save(self, path: str | Path) -> None:
        """Write a policy file, replaced whole or not at all."""
        save(path, self.to_file())

    def to_file(self) -> PolicyFile:
        """The content of its policy file."""
        if self.env is None:
            raise ValueError('the policy has no env: set policy.env, for example to iap.EnvConfig("CarRacing-v3")')
        return PolicyFile(self.config, self.theta, self.normaliser, self.env.id, dict(self.env.kwargs), self.facts)

    @classmethod
    def load(cls, path: str | Path) -> "Policy":
        """The policy of a file."""
        return cls.of(load(path))

    @classmethod
    def of(cls, file: PolicyFile) -> "Policy":
        """The policy that a file describes."""
        env = EnvReference(file.env_id, file.env_kwargs)
        return cls(file.config, file.theta, file.normaliser, env=env, facts=file.facts)

    def compiled_for(self, dtype: np.dtype) -> PolicyArrays | None:
        """The policy for compiled steps on images of one dtype; None if a part has no compiled code."""
        if dtype not in self._arrays:
            self._arrays[dtype] = self._compile(dtype)
        return self._arrays[dtype]

    def _step(
        self, state: Any, image: np.ndarray | None, sensors: np.ndarray
    ) -> tuple[Action, Any, np.ndarray, np.ndarray]:
        dtype = state.image.dtype if isinstance(state, State) else state.plain.image.dtype
        arrays, uniforms = self.compiled_for(dtype), self._uniforms(state)
        if arrays is None:
            return self._step_in_numpy(state, image, sensors, uniforms)
        if image is None:
            return self._act_on_sensors(arrays.control, state, sensors)
        if self._reflection is None:
            step = self._entry("image", dtype, act_on_image, arrays, state, image, sensors, uniforms)
            return step(arrays, state, image, sensors, uniforms)
        arguments = arrays, self._reflection, *state, image, sensors, uniforms  # both states
        both = self._entry("image", dtype, act_on_image_symmetrically, *arguments)(*arguments)
        return both.action, SymmetricState(both.plain, both.mirrored), both.scores, both.selected

    def _act_on_sensors(
        self, control: ControlArrays, state: Any, sensors: np.ndarray
    ) -> tuple[Action, Any, np.ndarray, np.ndarray]:
        if self._reflection is None:
            arguments: Any = control, state.memory, sensors
            action, memory = self._entry("sensors", None, act_on_sensors, *arguments)(*arguments)
            return action, state.with_memory(memory), NO_SCORES, NO_SELECTION
        plain, mirrored = state
        arguments = control, self._reflection, plain.memory, mirrored.memory, sensors
        action, one, other = self._entry("sensors", None, act_on_sensors_symmetrically, *arguments)(*arguments)
        return action, SymmetricState(plain.with_memory(one), mirrored.with_memory(other)), NO_SCORES, NO_SELECTION

    def _entry(self, kind: str, dtype: np.dtype | None, function: Any, *arguments: Any) -> Any:
        """The compiled code for these types of arguments, which are the same at every step of one kind and dtype."""
        key = kind, dtype
        if key not in self._entries:
            self._entries[key] = specialised(function, *arguments)
        return self._entries[key]

    def _step_in_numpy(
        self, state: Any, image: np.ndarray | None, sensors: np.ndarray, uniforms: np.ndarray
    ) -> tuple[Action, Any, np.ndarray, np.ndarray]:
        step = partial(step_in_numpy, self.config, self.params, self._applied)
        reflection = self._reflection
        if reflection is None:
            return step(state, image, sensors, uniforms)
        one = step(state.plain, image, sensors, uniforms)
        flipped = None if image is None else flip(image)
        other = step(state.mirrored, flipped, reflect_sensors(sensors, reflection), uniforms)
        return reflect_both(one, other, reflection)

    def _compile(self, dtype: np.dtype) -> PolicyArrays | None:
        """The policy for compiled steps on images of one dtype; None if a part has no compiled code."""
        config, params = self.config, self.params
        if not self._is_compiled:
            return None
        encoder = config.encoder.compile(params["encoder"], config.input_shape, dtype)
        controller = config.controller.compile(params["controller"])
        hierarchy: Any = FlatArrays(config.image_every)
        if config.hierarchy is not None:
            low = config.hierarchy.low_level.compile(params["low_level"])
            sizes = config.controller_inputs_size, config.features_size, config.hierarchy.max_command_steps
            hierarchy = None if low is None else HierarchyArrays(low, *sizes)
        if encoder is None or controller is None or hierarchy is None:
            return None
        mean, scale, clip = self._applied.coefficients
        return PolicyArrays(
            compile_preprocessing(config.preprocessing),
            encoder,
            ControlArrays(controller, hierarchy, np.array(mean), np.array(scale), clip, config.features_size),
            config.preprocessing != ("image",),
            config.relative_to_first_frame,
            config.first_frame_features,
        )

    def _uniforms(self, state: Any) -> np.ndarray:
        """The random numbers of this frame: they depend on the seed and the number of frames alone."""
        if not self.config.encoder.samples or state.hold_steps > 0:
            return NO_UNIFORMS
        assert self._window is not None
        bits = np.random.Philox(key=state.seed, counter=state.frames << 128)
        return np.random.Generator(bits).random(self._window.grid.patches, np.float32)

    def _image(self, observation: Mapping[str, Any]) -> np.ndarray:
        """The image of an observation, contiguous and writable, if it is of the config's shape."""
        image = observation["image"]
        if not isinstance(image, np.ndarray):
            raise TypeError(f"image must be a NumPy array at a step that encodes it, not {type(image).__name__}")
        if image.shape != self.config.image_shape:
            raise ValueError(f"image must be of shape {self.config.image_shape}, not {image.shape}{_fix(image, self)}")
        image = self.config.formatted(image)
        if image.dtype != np.uint8:
            if image.dtype not in (np.float32, np.float64):
                raise TypeError(f"image must be uint8, float32 or float64, not {image.dtype}")
            with np.errstate(over="ignore"):  # to infinity, which is refused
                image = np.ascontiguousarray(image, np.float32)
            if not math.isfinite(np.vdot(image, image)):  # which may be no more than an overflow
                require_finite("image", image)
        return image if image.flags.c_contiguous and image.flags.writeable else image.copy()

    def _sensors(self, observation: Mapping[str, Any]) -> np.ndarray:
        """The sensors of an observation, if they are as many as in the config."""
        sensors = sensors_of(observation)
        if sensors.shape != (self.config.sensors,):
            raise ValueError(f"sensors must be of shape ({self.config.sensors},), not {sensors.shape}")
        if not math.isfinite(sum(sensors.tolist())):  # one NaN or infinity makes the sum NaN or infinite
            raise NotFiniteError(f"sensors must be finite, not {sensors}")
        return sensors if sensors.flags.writeable and sensors.flags.c_contiguous else sensors.copy()


def _fix(image: np.ndarray, policy: Policy) -> str:
    """What to do about an image of another shape, if that is clear."""
    height, width, channels = policy.config.image_shape
    if image.shape == (channels, height, width):
        return ": its channels come first, so pass image.transpose(1, 2, 0)"
    if channels == 1 and image.shape == (height, width):
        return ": pass image[..., None]"
    if image.ndim == len(policy.config.image_shape) and image.shape[2] == channels:
        return ": resize it to that height and width"
    return ""


def _with_image_type(state: Any, image: np.ndarray) -> Any:
    """The state of an episode's start, with empty images of the dtype that the episode has."""
    if isinstance(state, SymmetricState):
        return SymmetricState(*(_with_image_type(one, image) for one in state))
    if state.image.dtype == image.dtype:
        return state
    if state.frames > 0:
        raise TypeError(f"image must stay {state.image.dtype} throughout an episode, not become {image.dtype}")
    empty = np.empty((0, 0, 0), image.dtype)
    return state._replace(image=empty, first_image=empty)
