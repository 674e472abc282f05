"""One step of a policy in plain NumPy, through the encoders' `forward` and the controllers' `step`.

It is what the compiled step is tested against, and what runs encoders and controllers without compiled code.
"""

import numpy as np

from iap.policies.config import PolicyConfig
from iap.policies.encoders import Context
from iap.policies.hierarchy import command_steps
from iap.policies.normalization import Normaliser
from iap.policies.params import Params
from iap.policies.preprocessing import preprocess_image
from iap.policies.step import Outcome, State

NO_SCORES, NO_SELECTION = np.empty(0, np.float32), np.empty(0, np.int64)


def step_in_numpy(
    config: PolicyConfig,
    params: Params,
    normaliser: Normaliser,
    state: State,
    image: np.ndarray | None,
    sensors: np.ndarray,
    uniforms: np.ndarray,
) -> Outcome:
    """A step; `image` is None if none is encoded."""
    if image is None:
        return _decide(config, params, normaliser, state, state.inputs[: config.features_size], sensors, encoded=False)
    previous_image, first_image = state.image, state.first_image
    if config.preprocessing != ("image",) and state.frames == 0:
        previous_image = first_image = image.copy()
    shown = preprocess_image(config.preprocessing, image, previous_image, first_image)
    context = Context(state.keys, state.frames, uniforms)
    encoding, keys = config.encoder.forward_frame(params["encoder"], shown, context)
    features, previous, first = _combine_frames(config, state, np.asarray(encoding.features[0], np.float32))
    outcome = _decide(config, params, normaliser, state, features, sensors, encoded=True)
    kept = image.copy() if config.preprocessing != ("image",) else previous_image
    after = outcome.state._replace(
        previous=previous, first=first, keys=keys, image=kept, first_image=first_image, frames=state.frames + 1
    )
    scores = NO_SCORES if encoding.scores is None else _scaled(np.asarray(encoding.scores[0]))
    selected = NO_SELECTION if encoding.selected is None else np.asarray(encoding.selected[0])
    return Outcome(outcome.action, after, scores, selected)


def _scaled(scores: np.ndarray) -> np.ndarray:
    """With the largest magnitude 1, as compiled: the scores of an image and of its mirror image are added."""
    largest = np.abs(scores).max()
    return scores / largest if largest > 0 else scores


def _combine_frames(
    config: PolicyConfig, state: State, encoding: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    first = encoding if len(state.first) and state.frames == 0 else state.first
    origin = first if config.relative_to_first_frame else np.float32(0)
    newest = encoding - origin
    if config.first_frame_features:
        return np.concatenate([newest, first]), state.previous, first
    known = min(len(state.previous), state.frames)
    differences = np.zeros_like(state.previous)
    differences[:known] = newest - (state.previous[:known] - origin)
    previous = np.concatenate([encoding[None], state.previous])[: len(state.previous)]
    return np.concatenate([newest, differences.ravel()]), previous, first


def _decide(
    config: PolicyConfig,
    params: Params,
    normaliser: Normaliser,
    state: State,
    features: np.ndarray,
    sensors: np.ndarray,
    *,
    encoded: bool,
) -> Outcome:
    inputs = np.concatenate([features, sensors]).astype(np.float32)
    normal, hierarchy = normaliser.apply(inputs), config.hierarchy
    hidden, low_hidden, latent = state.hidden, state.low_hidden, state.latent
    if hierarchy is None:
        action, hidden = _control(config.controller, params["controller"], hidden, normal)
        hold_steps = (config.image_every if encoded else state.hold_steps) - 1
    else:
        hold_steps = state.hold_steps
        if encoded:
            high_inputs = normal[: config.controller_inputs_size]
            outputs, hidden = _control(config.controller, params["controller"], hidden, high_inputs)
            latent, hold_steps = outputs[:-1], command_steps(outputs[-1], hierarchy.max_command_steps)
        low_inputs = np.concatenate([latent, normal[config.features_size :]])
        action, low_hidden = _control(hierarchy.low_level, params["low_level"], low_hidden, low_inputs)
        hold_steps -= 1
    after = state._replace(inputs=inputs, hidden=hidden, low_hidden=low_hidden, latent=latent, hold_steps=hold_steps)
    return Outcome(action, after, NO_SCORES, NO_SELECTION)


def _control(controller, params, state, inputs):
    outputs, after = controller.step(params, state[None], inputs[None])
    return np.asarray(outputs[0], np.float32), np.asarray(after[0], np.float32)
