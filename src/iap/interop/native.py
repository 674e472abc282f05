"""The C code of a policy, compiled and called through ctypes: for tests, timing, and acting in Python."""

import ctypes
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from iap._observations import sensors_of
from iap.interop.c.files import CFiles, policy_to_c
from iap.interop.c.source import Field
from iap.interop.compiling import FAST, compile_c
from iap.policies import Attention, Policy

KINDS: dict[str, Any] = {"float": ctypes.c_float, "uint8_t": ctypes.c_uint8, "uint16_t": ctypes.c_uint16}
KINDS |= {"uint32_t": ctypes.c_uint32, "int32_t": ctypes.c_int32}


def state_type(files: CFiles) -> type[ctypes.Structure]:
    """The struct NAME_state."""
    memory: Any = type("Memory", (ctypes.Structure,), {"_fields_": [_field(files, field) for field in files.memory]})
    fields = [("side", memory * files.sides), *(_field(files, field) for field in files.work)]
    return type("State", (ctypes.Structure,), {"_fields_": fields})


def _field(files: CFiles, field: Field) -> tuple[str, Any]:
    kind = field.kind
    if kind == f"{files.name}_pixel":
        kind = files.pixel
    if kind == f"{files.name}_index":
        kind = files.index
    return field.name, KINDS[kind] * field.count if field.count else KINDS[kind]


class NativeState:
    """The state of an episode, which a step changes."""

    def __init__(self, memory: Any, inputs: np.ndarray) -> None:
        self.memory, self.inputs = memory, inputs

    @property
    def hold_steps(self) -> int:
        """Steps until the next image is encoded."""
        return self.memory.side[0].hold_steps

    def selected(self, side: int = 0) -> np.ndarray:
        """The selected patches of the last image, of the image itself or of its mirror image."""
        return np.array(self.memory.side[side].selected)


class NativePolicy:
    """A policy that acts through its C code: `reset`, `needs_image` and `act` as `Policy` has them.

    Unlike a `Policy`, it changes the state that it is given.

    Example:
        >>> import iap
        >>> from iap.interop.native import NativePolicy
        >>> native = NativePolicy(iap.load_policy("zoo:seek"))
        >>> env = iap.make_env("iap/Seek-v0")
        >>> observation, _ = env.reset(seed=0)
        >>> action, state, attention = native.act(native.reset(), observation)
        >>> action.shape, attention.scores.shape
        ((2,), (256,))
    """

    def __init__(self, policy: Policy, image_type: str = "uint8", *, flags: Sequence[str] = FAST) -> None:
        """Write, compile and load the C code of a policy.

        Args:
            policy: the policy.
            image_type: of its images, "uint8" or "float32".
            flags: of the compiler.
        """
        self.config = policy.config
        self.inputs_size = policy.inputs_size
        self._window = policy.config.encoder.window(policy.config.input_shape)
        self._dtype = np.dtype(image_type)
        self.files = policy_to_c(policy, "policy", image_type)
        self._state_type = state_type(self.files)
        with tempfile.TemporaryDirectory() as folder:
            path = compile_c(self.files, Path(folder), "policy.so", flags=(*flags, "-shared", "-fPIC"))
            self.library = ctypes.CDLL(str(path))
        size = ctypes.sizeof(self._state_type)
        self.library.policy_state_size.restype = ctypes.c_size_t
        if self.library.policy_state_size() != size:
            raise RuntimeError(f"the state has {size} bytes in Python but {self.library.policy_state_size()} in C")

    def reset(self, seed: int = 0) -> NativeState:
        """The state at the start of an episode; the seed is not used."""
        memory: Any = self._state_type()
        return NativeState(memory, np.frombuffer(memory, np.float32, self.inputs_size))

    def needs_image(self, state: NativeState) -> bool:
        """Whether the next step encodes an image."""
        return bool(self.library.policy_needs_image(ctypes.byref(state.memory)))

    def act(
        self, state: NativeState, observation: Mapping[str, Any]
    ) -> tuple[np.ndarray, NativeState, Attention | None]:
        """The action in [−1, 1], the same state after the step, and the attention (None if no image was encoded)."""
        encodes, window = self.needs_image(state), self._window
        image = np.ascontiguousarray(observation["image"], self._dtype) if encodes else None
        if image is not None and image.shape != self.config.image_shape:
            raise ValueError(f"image must be of shape {self.config.image_shape}, not {image.shape}")
        sensors = np.ascontiguousarray(sensors_of(observation))
        if sensors.shape != (self.config.sensors,):
            raise ValueError(f"sensors must be of shape ({self.config.sensors},), not {sensors.shape}")
        action = np.empty(self.config.actions, np.float32)
        scores = np.zeros(0 if window is None else window.grid.patches, np.float32)
        arrays = [None if x is None else ctypes.c_void_p(x.ctypes.data) for x in (image, sensors, action, scores)]
        if self.library.policy_act(ctypes.byref(state.memory), *arrays) != 0:
            raise ValueError("image and sensors must be finite, but hold NaN or infinity")
        if not encodes or window is None:
            return action, state, None
        return action, state, Attention(scores, self._selected(state, scores), *window)

    def _selected(self, state: NativeState, scores: np.ndarray) -> np.ndarray:
        """All selected patches, in the coordinates of the image, best first."""
        if not any(field.name == "selected" for field in self.files.memory):
            return np.empty(0, np.int64)
        found = [state.selected(side).astype(np.int64) for side in range(self.files.sides)]
        if len(found) > 1:
            assert self._window is not None
            columns = self._window.grid.columns
            found[1] = found[1] + columns - 1 - 2 * (found[1] % columns)
        selected = np.unique(np.concatenate(found))
        return selected[np.argsort(-scores[selected], kind="stable")]
