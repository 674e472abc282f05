"""The inputs and outputs of an exported graph: observation, state → action, scores, next state."""

from typing import NamedTuple

import numpy as np

from iap.interop.kept_frames import kept_frames
from iap.policies.config import PolicyConfig

STATE, NEXT = "state_", "next_"


class Tensor(NamedTuple):
    """An input or an output: its dtype and its shape."""

    dtype: np.dtype
    shape: tuple[int, ...]


def sides_of(config: PolicyConfig) -> int:
    """The leading axis of the state: 2 for a symmetric policy, with the mirror image second."""
    return 1 if config.symmetry is None else 2


def holds(config: PolicyConfig) -> bool:
    """Whether there are steps at which no image is encoded."""
    return config.image_every > 1 or (config.hierarchy is not None and config.hierarchy.max_command_steps > 1)


def observation_tensors(config: PolicyConfig, image_type: str) -> dict[str, Tensor]:
    """The image and the sensors, if the policy has them."""
    tensors = {}
    if config.encoder.uses_image:
        tensors["image"] = Tensor(np.dtype(image_type), config.image_shape)
    if config.sensors:
        tensors["sensors"] = Tensor(np.dtype(np.float32), (config.sensors,))
    return tensors


def state_tensors(config: PolicyConfig, image_type: str) -> dict[str, Tensor]:
    """All of the state; zeros at the start of an episode."""
    sides, hierarchy, size = sides_of(config), config.hierarchy, config.encoding_size
    floats = {
        "features": (config.features_size,) if holds(config) else (0,),
        "previous": (config.frames - 1, size),
        "first": (size,) if config.relative_to_first_frame or config.first_frame_features else (0,),
        "hidden": (config.controller.state_size(config.controller_inputs_size),),
    }
    if hierarchy is not None:
        floats["low_hidden"] = (hierarchy.low_level.state_size(hierarchy.latent_size + config.sensors),)
        floats["latent"] = (hierarchy.latent_size,) if holds(config) else (0,)
    tensors = {name: Tensor(np.dtype(np.float32), (sides, *shape)) for name, shape in floats.items() if np.prod(shape)}
    tensors |= {f"{frame}_image": Tensor(np.dtype(image_type), config.image_shape) for frame in kept_frames(config)}
    if {"previous", "first", "previous_image", "first_image"} & set(tensors):
        tensors["frames"] = Tensor(np.dtype(np.int64), ())
    if holds(config):
        tensors["hold_steps"] = Tensor(np.dtype(np.int64), ())
    return tensors
