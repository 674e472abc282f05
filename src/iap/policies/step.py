"""One step of a policy as one compiled call, for every encoder, controller and hierarchy.

    image → preprocessing → encoder → features of the frames → + sensors → normalised → controller → action

All parts are NamedTuples of arrays; their classes choose the code that is compiled.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int

from iap._compile import compiled
from iap.policies.encoders import Context, encode
from iap.policies.hierarchy import decide
from iap.policies.preprocessing import preprocess


class State(NamedTuple):
    """All of a policy's memory between two steps; a policy never changes one, it returns the next.

    Attributes:
        inputs: the controller's inputs at the last step before normalisation: features, then sensors. While no image is
            encoded the features stay and the sensors change; running statistics are computed from here.
        previous: features of the frames that were encoded before the last one, newest first, (frames − 1, r).
        first: features of the episode's first frame, (r,); empty if they are not used.
        hidden: the controller's state.
        low_hidden: the low-level controller's state.
        latent: the command of the high level.
        keys: stored keys, for encoders that do not recompute them at each frame.
        image: the last encoded image, if preprocessing uses it; empty otherwise.
        first_image: the episode's first image, if preprocessing uses it; empty otherwise.
        frames: the number of images that were encoded.
        hold_steps: steps until the next image is encoded.
        seed: of the random numbers of encoders that sample patches.
    """

    inputs: Float[np.ndarray, " d"]
    previous: Float[np.ndarray, "n r"]
    first: Float[np.ndarray, " r"]
    hidden: Float[np.ndarray, " units"]
    low_hidden: Float[np.ndarray, " units"]
    latent: Float[np.ndarray, " latent"]
    keys: Float[np.ndarray, "heads D L"]
    image: np.ndarray
    first_image: np.ndarray
    frames: int = 0
    hold_steps: int = 0
    seed: int = 0

    @property
    def memory(self) -> "Memory":
        """The part that changes at every step."""
        return Memory(self.inputs, self.hidden, self.low_hidden, self.latent, self.hold_steps)

    def with_memory(self, memory: "Memory") -> "State":
        """The state after a step at which no image was encoded."""
        return self._replace(
            inputs=memory.inputs,
            hidden=memory.hidden,
            low_hidden=memory.low_hidden,
            latent=memory.latent,
            hold_steps=memory.hold_steps,
        )


class Outcome(NamedTuple):
    """What a compiled step returns: action, next state, and what was attended to, empty if no image was encoded."""

    action: Float[np.ndarray, " k"]
    state: State
    scores: Float[np.ndarray, " L"]
    selected: Int[np.ndarray, " l"]


class Memory(NamedTuple):
    """The part of the state that changes at every step; the rest changes only when an image is encoded."""

    inputs: Any
    hidden: Any
    low_hidden: Any
    latent: Any
    hold_steps: Any


class ControlArrays(NamedTuple):
    """The part of a policy that acts at every step.

    Attributes:
        controller: what `control` takes.
        hierarchy: what `decide` takes.
        mean, scale, clip: of the normaliser.
        features: the number of features that the controller receives.
    """

    controller: Any
    hierarchy: Any
    mean: Any
    scale: Any
    clip: Any
    features: Any


class PolicyArrays(NamedTuple):
    """A policy in compiled code, for images of one dtype.

    Attributes:
        preprocessing: what `preprocess` takes.
        encoder: what `encode` takes.
        control: the part that acts at every step.
        keeps_image: whether preprocessing uses earlier images.
        relative, uses_first: `relative_to_first_frame` and `first_frame_features`.
    """

    preprocessing: Any
    encoder: Any
    control: Any
    keeps_image: Any
    relative: Any
    uses_first: Any


@compiled
def act_on_image(policy, state, image, sensors, uniforms):
    """A step at which an image is encoded."""
    previous_image, first_image = state.image, state.first_image
    if policy.keeps_image and state.frames == 0:
        previous_image = first_image = image.copy()
    shown = preprocess(policy.preprocessing, image, previous_image, first_image)
    context = Context(state.keys, state.frames, uniforms)
    encoding, scores, selected, keys = encode(policy.encoder, shown, context)
    features, previous, first = combine_frames(policy, state, encoding)
    if policy.keeps_image:
        previous_image = image.copy()  # a camera may reuse its memory
    memory = Memory(state.inputs, state.hidden, state.low_hidden, state.latent, state.hold_steps)
    action, m = _decide(policy.control, memory, features, sensors, True)
    after = State(
        m.inputs,
        previous,
        first,
        m.hidden,
        m.low_hidden,
        m.latent,
        keys,
        previous_image,
        first_image,
        state.frames + 1,
        m.hold_steps,
        state.seed,
    )
    return Outcome(action, after, scores, selected)


@compiled
def act_on_sensors(control, memory, sensors):
    """A step at which no image is encoded: the features stay. Returns the action and the memory after it."""
    return _decide(control, memory, memory.inputs, sensors, False)


@compiled(inner=True)
def _decide(control, memory, features, sensors, encoded):
    """The action on the features, of which there may be more, and the sensors; and the memory after it."""
    inputs, normal = normalise_inputs(control, features, sensors)
    action, hidden, low_hidden, latent, hold_steps = decide(
        control.hierarchy, control.controller, normal, memory, encoded
    )
    return action, Memory(inputs, hidden, low_hidden, latent, hold_steps)


@compiled
def encode_one(encoder, image):
    """The features of one preprocessed image, without a step."""
    context = Context(np.empty((0, 0, 0), np.float32), 0, np.empty(0, np.float32))
    features, _, _, _ = encode(encoder, image, context)
    return features


@compiled(inner=True)
def combine_frames(policy, state, encoding):
    """The features of this frame and of earlier ones, and what the state stores of them.

    The features are this frame's, minus the first frame's if relative; then the differences to those of earlier frames,
    zeros where there was none yet; or else the first frame's features. Loops compile faster than slices.
    """
    size, earlier = len(encoding), len(state.previous)
    features = np.zeros(policy.control.features, np.float32)
    first, previous = state.first, state.previous
    if len(first) > 0 and state.frames == 0:
        first = encoding
    for j in range(size):
        features[j] = encoding[j] - first[j] if policy.relative else encoding[j]
        if policy.uses_first:
            features[size + j] = first[j]
    for i in range(min(earlier, state.frames)):
        for j in range(size):
            before = previous[i, j] - first[j] if policy.relative else previous[i, j]
            features[(i + 1) * size + j] = features[j] - before
    if earlier > 0:
        previous = np.empty_like(state.previous)
        for i in range(earlier):
            for j in range(size):
                previous[i, j] = encoding[j] if i == 0 else state.previous[i - 1, j]
    return features, previous, first


@compiled(inner=True)
def normalise_inputs(control, features, sensors):
    """Features and sensors as one vector, and the same normalised."""
    count = control.features
    inputs = np.empty(count + len(sensors), np.float32)
    for i in range(len(inputs)):
        inputs[i] = features[i] if i < count else sensors[i - count]
    return inputs, apply_normaliser(inputs, control.mean, control.scale, control.clip)


@compiled(inner=True)
def apply_normaliser(x, mean, scale, clip):
    """(x − mean)·scale, clipped to ±clip, as float32; NaN stays NaN."""
    normal = np.empty(len(x), np.float32)
    for i in range(len(x)):
        value = (x[i] - mean[i]) * scale[i]
        if value > clip:
            value = clip
        elif value < -clip:
            value = -clip
        normal[i] = value
    return normal
