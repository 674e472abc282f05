"""Any observation that contains an image → `{"image": (H, W, C) uint8 or float32, "sensors": (n,) float32}`."""

from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.spaces.utils import flatdim, flatten

from iap._validation import require_count

Observation = dict[str, np.ndarray]
Size = tuple[int, int]

IMAGE_DIMENSIONS = (2, 3)
SENSOR_SPACES = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)
MAX_CHANNELS = 4  # an image of shape (3, 96, 96) is taken to have its channels first


def observation_space(image: spaces.Box, sensors: int = 0) -> spaces.Dict:
    """The space of an image and a number of sensors."""
    return spaces.Dict(image=image, sensors=spaces.Box(-np.inf, np.inf, (sensors,), np.float32))


def rgb_space(size: Size) -> spaces.Box:
    """The space of a colour image."""
    return spaces.Box(0, 255, (*size, 3), np.uint8)


def require_size(name: str, size: object, most: int | None = None) -> Size:
    """`size` as (height, width) in pixels."""
    if not isinstance(size, Sequence) or isinstance(size, str) or len(size) != 2:  # noqa: PLR2004
        raise ValueError(f"{name} must be (height, width), not {size!r}")
    height, width = (require_count(name, side, most=most) for side in size)
    return height, width


def from_observation(env: gymnasium.Env, size: Size | None) -> gymnasium.Env:
    """The environment with the one image of its observation as "image", and all other entries as "sensors"."""
    space = env.observation_space
    if size is None and _conforms(space):
        return env
    name, image, others = _split(space)
    for other, entry in others.items():
        if not isinstance(entry, SENSOR_SPACES):
            raise ValueError(f"observation {other!r} cannot become sensors: {entry}; remove it with a wrapper")

    def convert(observation: Any) -> Observation:
        pixels = observation if name is None else observation[name]
        sensors = flatten(others, observation) if others.spaces else np.zeros(0)
        return {"image": _as_image(pixels, size), "sensors": np.asarray(sensors, np.float32)}

    return _Converted(env, observation_space(_image_space(image, size), flatdim(others)), convert)


def from_render(env: gymnasium.Env, size: Size | None) -> gymnasium.Env:
    """The environment with what `render` returns as "image"; its own observation is dropped."""
    env.reset()
    picture = np.asarray(env.render())
    if picture.dtype != np.uint8 or picture.ndim not in IMAGE_DIMENSIONS:
        raise ValueError(f"{env.spec and env.spec.id} renders {picture.dtype} of shape {picture.shape}, not an image")

    def convert(_observation: Any) -> Observation:
        return {"image": _as_image(np.asarray(env.render()), size), "sensors": np.zeros(0, np.float32)}

    image = spaces.Box(0, 255, _as_image(picture, size).shape, np.uint8)
    return _Converted(env, observation_space(image), convert)


class _Converted(gymnasium.ObservationWrapper):
    """An environment with another observation."""

    def __init__(self, env: gymnasium.Env, space: spaces.Dict, convert: Callable[[Any], Observation]) -> None:
        super().__init__(env)
        self.observation_space = space
        self._convert = convert

    def observation(self, observation: Any) -> Observation:
        return self._convert(observation)


def _conforms(space: spaces.Space) -> bool:
    if not isinstance(space, spaces.Dict) or space.keys() != {"image", "sensors"}:
        return False
    image, sensors = space["image"], space["sensors"]
    is_image = _is_image(image) and len(image.shape) == max(IMAGE_DIMENSIONS) and image.dtype in (np.uint8, np.float32)
    return is_image and isinstance(sensors, spaces.Box) and len(sensors.shape) == 1 and sensors.dtype == np.float32


def _is_image(space: spaces.Space) -> TypeGuard[spaces.Box]:
    return (
        isinstance(space, spaces.Box)
        and len(space.shape) in IMAGE_DIMENSIONS
        and (space.dtype == np.uint8 or np.issubdtype(space.dtype, np.floating))
    )


def _split(space: spaces.Space) -> tuple[str | None, spaces.Box, spaces.Dict]:
    """The name of the image (None if it is the whole observation), its space, and the space of the rest."""
    entries: dict[Any, spaces.Space] = dict(space.spaces) if isinstance(space, spaces.Dict) else {None: space}
    images = [name for name, entry in entries.items() if _is_image(entry)]
    if not images:
        raise ValueError(
            f'observations contain no image: {space}. If the environment can render, use image_from="render"'
        )
    if len(images) > 1:
        raise ValueError(f"observations contain several images, {', '.join(map(str, images))}: join them in a wrapper")
    image = entries.pop(images[0])
    assert isinstance(image, spaces.Box)
    if len(image.shape) == max(IMAGE_DIMENSIONS) and image.shape[0] <= MAX_CHANNELS < image.shape[2]:
        raise ValueError(f"image has its channels first, {image.shape}: transpose it in a wrapper")
    return images[0], image, spaces.Dict(entries)


def _image_space(image: spaces.Box, size: Size | None) -> spaces.Box:
    shape = image.shape if len(image.shape) == max(IMAGE_DIMENSIONS) else (*image.shape, 1)
    dtype = np.uint8 if image.dtype == np.uint8 else np.float32
    return spaces.Box(image.low.min().item(), image.high.max().item(), (*(size or shape[:2]), shape[2]), dtype)


def _as_image(pixels: np.ndarray, size: Size | None) -> np.ndarray:
    image = pixels if pixels.ndim == max(IMAGE_DIMENSIONS) else pixels[..., None]
    if image.dtype != np.uint8:
        image = image.astype(np.float32, copy=False)
    if size is None or image.shape[:2] == size:
        return image
    return np.stack([_resized(image[..., channel], size) for channel in range(image.shape[2])], axis=-1)


def _resized(channel: np.ndarray, size: Size) -> np.ndarray:
    """Box filter: each new pixel is the mean over its area. A larger image repeats pixels."""
    from PIL import Image

    return np.asarray(Image.fromarray(channel).resize((size[1], size[0]), Image.Resampling.BOX))
