"""Any observation with images → `{"image": (H, W, C) uint8, uint16 or float32, "sensors": (n,) float32}`."""

from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.spaces.utils import flatdim, flatten

from iap._validation import require_count
from iap.envs.image_layout import IMAGE_DTYPES, LEAST_SIDE, Layout, is_image, layout_of

Observation = dict[str, np.ndarray]
Size = tuple[int, int]
Path = tuple[Any, ...]  # of an entry of a nested observation

IMAGE_AXES = 3
SENSOR_SPACES = (spaces.Box, spaces.Discrete, spaces.MultiDiscrete, spaces.MultiBinary)


def observation_space(image: spaces.Box, sensors: int = 0) -> spaces.Dict:
    """The space of an image and a number of sensors; without the key if there are none."""
    if sensors == 0:  # libraries such as Stable-Baselines3 cannot store arrays without elements
        return spaces.Dict(image=image)
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


def from_observation(env: gymnasium.Env, size: Size | None, cameras: Sequence[str] | None = None) -> gymnasium.Env:
    """The environment with the images of its observation as "image", and all other entries as "sensors".

    Several images are put below each other, in the order of `cameras`; by default all of them, in alphabetical order.
    """
    space = env.observation_space
    if size is None and cameras is None and _conforms(space):
        return env
    entries = _entries(space)
    images = _choose_images(space, entries, cameras)
    layouts = {path: layout_of(_name(path), entries[path], size) for path in images}
    _require_alike(layouts)
    others = {path: entry for path, entry in entries.items() if path not in images and not _is_image(path, entry)}
    sensors = spaces.Dict({_name(path): _sensor(path, entry) for path, entry in others.items()})
    count = flatdim(sensors)

    def convert(observation: Any) -> Observation:
        views = [layout.convert(_at(observation, path)) for path, layout in layouts.items()]
        image = views[0] if len(views) == 1 else np.concatenate(views)
        values = {_name(path): _at(observation, path) for path in others}
        return {"image": image} | ({"sensors": np.asarray(flatten(sensors, values), np.float32)} if count else {})

    return _Converted(env, observation_space(_joined_space(list(layouts.values())), count), convert)


def from_render(env: gymnasium.Env, size: Size | None) -> gymnasium.Env:
    """The environment with what `render` returns as "image"; its own observation is dropped."""
    env.reset()
    picture = np.asarray(env.render())
    if picture.dtype != np.uint8 or picture.ndim not in (2, IMAGE_AXES):
        raise ValueError(f"{env.spec and env.spec.id} renders {picture.dtype} of shape {picture.shape}, not an image")
    layout = layout_of("render", spaces.Box(0, 255, picture.shape, np.uint8), size)

    def convert(_observation: Any) -> Observation:
        return {"image": layout.convert(np.asarray(env.render()))}

    return _Converted(env, observation_space(layout.space), convert)


class _Converted(gymnasium.ObservationWrapper):
    """An environment with another observation."""

    def __init__(self, env: gymnasium.Env, space: spaces.Dict, convert: Callable[[Any], Observation]) -> None:
        super().__init__(env)
        self.observation_space = space
        self._convert = convert

    def observation(self, observation: Any) -> Observation:
        return self._convert(observation)


def _conforms(space: spaces.Space) -> bool:
    if not isinstance(space, spaces.Dict) or not {"image"} <= {*space.keys()} <= {"image", "sensors"}:
        return False
    image, sensors = space["image"], space.get("sensors")
    fits = isinstance(image, spaces.Box) and len(image.shape) == IMAGE_AXES and image.dtype in IMAGE_DTYPES
    if not fits or layout_of("image", image, None).space.shape != image.shape:
        return False
    if sensors is None:
        return True
    is_vector = isinstance(sensors, spaces.Box) and len(sensors.shape) == 1 and sensors.shape[0] > 0
    return is_vector and sensors.dtype == np.float32


def _entries(space: spaces.Space, path: Path = ()) -> dict[Path, spaces.Space]:
    """All entries of a nested Dict or Tuple by their paths; the whole space if it is neither."""
    if isinstance(space, spaces.Dict | spaces.Tuple):
        parts = space.items() if isinstance(space, spaces.Dict) else enumerate(space.spaces)
        return {inner: entry for key, part in parts for inner, entry in _entries(part, (*path, key)).items()}
    return {path: space}


def _name(path: Path) -> str:
    return ".".join(map(str, path)) or "observation"


def _is_image(path: Path, entry: spaces.Space) -> bool:
    return is_image(entry, LEAST_SIDE if path else 1)  # the whole observation is an image, however small


def _at(observation: Any, path: Path) -> Any:
    for key in path:
        observation = observation[key]
    return observation


def _choose_images(space: spaces.Space, entries: dict[Path, spaces.Space], cameras: Sequence[str] | None) -> list[Path]:
    """The entries that are images, or those that `cameras` names."""
    named = {_name(path): path for path, entry in entries.items() if _is_image(path, entry)}
    if cameras is not None:
        wanted = [cameras] if isinstance(cameras, str) else list(cameras)
        unknown = [name for name in wanted if name not in named]
        if unknown or not wanted:
            there = ", ".join(named) or "no images"
            raise ValueError(
                f"cameras must name images of the observation, {there}, not {', '.join(unknown) or 'none'}"
            )
        return [named[name] for name in wanted]
    if not named:
        reasons = "".join(
            f"; {_name(path)} is {entry.dtype} of shape {entry.shape}"
            for path, entry in entries.items()
            if isinstance(entry, spaces.Box)
        )
        raise ValueError(
            f"observations contain no image: {space}{reasons}. An image is {', '.join(map(str, IMAGE_DTYPES))} or "
            f"float64 of shape (H, W) or (H, W, C), at least {LEAST_SIDE} pixels high and wide if it has one channel. "
            f'If the environment can render, use image_from="render"'
        )
    return [named[name] for name in sorted(named)]


def _require_alike(layouts: dict[Path, Layout]) -> None:
    """Refuse several images that cannot be put below each other."""
    kinds = {_name(path): (str(layout.space.dtype), *layout.space.shape[1:]) for path, layout in layouts.items()}
    bounds = {(layout.space.low.min().item(), layout.space.high.max().item()) for layout in layouts.values()}
    if len(set(kinds.values())) > 1 or len(bounds) > 1:
        shown = ", ".join(
            f"{_name(path)} {layout.space.dtype} {layout.space.shape}" for path, layout in layouts.items()
        )
        raise ValueError(
            f"images are put below each other, so they need one dtype, range, width and number of channels: {shown}. "
            f"Choose with cameras=(name, …), or set image_size"
        )


def _joined_space(layouts: list[Layout]) -> spaces.Box:
    first = layouts[0].space
    height = sum(layout.space.shape[0] for layout in layouts)
    shape = (height, *first.shape[1:])
    return spaces.Box(first.low.min().item(), first.high.max().item(), shape, first.dtype)


def _sensor(path: Path, entry: spaces.Space) -> spaces.Space:
    if not isinstance(entry, SENSOR_SPACES):
        raise ValueError(f"observation {_name(path)!r} cannot become sensors: {entry}; remove it with a wrapper")
    return entry
