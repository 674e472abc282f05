"""What a policy attends to in any images: of a camera, a folder or a video, without an environment."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import UInt8

from iap.attention.patches import centres_of
from iap.policies import Attention, Policy, PolicyConfig, init
from iap.viz.frames import Frame

COLOURS = (1, 3)  # channels of a camera
BYTE = 255


class Attended(NamedTuple):
    """One image and what was attended to.

    Attributes:
        name: of the image.
        image: as the policy receives it, uint8.
        attention: scores and selected patches.
        row: of a table: the best patch and the mean of the selected ones, in pixels of the original image.
    """

    name: str
    image: UInt8[np.ndarray, "h w c"]
    attention: Attention
    row: dict[str, Any]


def untrained(config: PolicyConfig, seed: int) -> Policy:
    """A policy with the random parameters of a seed."""
    return Policy(config, init(config, seed))


def _without_compilation(policy: Policy) -> Policy:
    """The same policy in plain NumPy: to compile takes longer than a few images."""
    return Policy(policy.config, policy.params, policy.normaliser, compiled=False)


def attend_to(policy: Policy, frames: Iterable[Frame]) -> Iterator[Attended]:
    """Run the policy over images as over the frames of an episode; its sensors are 0."""
    require_camera(policy.config)
    policy = _without_compilation(policy)
    sensors = np.zeros(policy.config.sensors, np.float32)
    state = policy.reset()
    for frame in frames:
        image = fitted(frame.image, policy.config)
        observation = {"image": _in_format(image, policy.config), "sensors": sensors}
        while not policy.needs_image(state):  # a command is held
            _, state, _ = policy.act(state, observation)
        action, state, attention = policy.act(state, observation)
        assert attention is not None
        yield Attended(frame.name, image, attention, _row(frame, image, attention, action))


def require_camera(config: PolicyConfig) -> None:
    """Refuse a policy that has no attention, or whose images are not those of a camera."""
    if config.encoder.window(config.input_shape) is None:
        raise ValueError(f"policy must have attention, but its encoder is {type(config.encoder).__name__}")
    if config.image_shape[2] not in COLOURS:
        raise ValueError(f"policy must take grey or colour images, but its images have shape {config.image_shape}")
    if config.image_format is not None and not config.image_format.scaled:
        raise ValueError(f"policy must take camera images, but its images are {config.image_format}")


def fitted(image: UInt8[np.ndarray, "H W 3"], config: PolicyConfig) -> UInt8[np.ndarray, "h w c"]:
    """The image in the size and with the channels that the policy takes."""
    from PIL import Image

    height, width, channels = config.image_shape
    picture = Image.fromarray(image)
    if channels == 1:
        picture = picture.convert("L")
    if picture.size != (width, height):
        picture = picture.resize((width, height), Image.Resampling.BOX)
    return np.array(picture).reshape(height, width, channels)


def config_for_images(config: PolicyConfig, **options: Any) -> PolicyConfig:
    """A policy's config with other options of its encoder, where they are given."""
    chosen = {name: value for name, value in options.items() if value is not None}
    return replace(config, encoder=replace(config.encoder, **chosen))


def _in_format(image: UInt8[np.ndarray, "h w c"], config: PolicyConfig) -> np.ndarray:
    """The image with the dtype and range that the policy was trained on."""
    format_ = config.image_format
    if format_ is None or format_.is_plain:
        return image
    assert format_.low is not None
    assert format_.high is not None
    return (format_.low + image / BYTE * (format_.high - format_.low)).astype(format_.dtype)


def _row(frame: Frame, image: np.ndarray, attention: Attention, action: np.ndarray) -> dict[str, Any]:
    scale = np.array(frame.image.shape[:2]) / np.array(image.shape[:2])
    centres = (centres_of(attention.grid, attention.patch, attention.stride)[attention.selected] + 0.5) * scale
    (best_y, best_x), (mean_y, mean_x) = centres[0], centres.mean(axis=0)
    places = {"best_x": best_x, "best_y": best_y, "mean_x": mean_x, "mean_y": mean_y}
    numbers = {name: round(float(value), 1) for name, value in places.items()}
    actions = {f"action_{i}": round(float(value), 4) for i, value in enumerate(action)}
    return {"image": frame.name, "selected": len(attention.selected), **numbers, **actions}
