"""An image or a video in place of the sky."""

from collections.abc import Sequence, Sized
from typing import Any, NamedTuple

import numpy as np

from iap.envs.control_suite.distractions.sources import Video
from iap.envs.rendering.camera import load_mujoco

GROUND_ALPHA = {"reacher": 0.0, "walker": 1.0, "cheetah": 1.0}  # opacity of the floor, through which the sky shows
DEFAULT_GROUND_ALPHA = 0.3
GROUND_MATERIAL = "grid"


class Moment(NamedTuple):
    """The current frame of a video, and the direction in which it plays, ±1."""

    video: int
    frame: int
    direction: int


def ground_alpha(domain: str) -> float:
    """The opacity of the floor if there is a background."""
    return GROUND_ALPHA.get(domain, DEFAULT_GROUND_ALPHA)


def draw_moment(videos: Sequence[Sized], rng: np.random.Generator) -> Moment:
    """A random frame of a random video, and a random direction."""
    video = int(rng.integers(len(videos)))
    return Moment(video, int(rng.integers(len(videos[video]))), int(rng.choice([-1, 1])))


def play(moment: Moment, length: int) -> Moment:
    """The next frame; the direction is reversed at both ends."""
    if not 0 <= moment.frame + moment.direction < length:
        moment = moment._replace(direction=-moment.direction)
    return moment._replace(frame=min(max(moment.frame + moment.direction, 0), length - 1))


class BackgroundDistraction:
    """The sky texture of a model, with the same image on each of its six sides.

    Attributes:
        texture: its number in the model.
        version: incremented with each new image; cameras upload the texture when it changes.
    """

    def __init__(self, model: Any, domain: str, videos: Sequence[Video], side: int, dynamic: bool) -> None:
        """The sky of `model`, with images from `videos`, whose frames have `side`² pixels."""
        mujoco = load_mujoco()
        skies = np.flatnonzero(model.tex_type == mujoco.mjtTexture.mjTEXTURE_SKYBOX)
        if not skies.size:
            raise ValueError(f"{domain} has no sky to put a background on")
        self.texture = int(skies[0])
        model.tex_width[self.texture] = model.tex_height[self.texture] = side  # a square is used for all six sides
        start = model.tex_adr[self.texture]
        self._pixels = model.tex_data[start : start + 3 * side**2].reshape(side, side, 3)
        ground = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_MATERIAL.value, GROUND_MATERIAL)
        if ground >= 0:
            model.mat_rgba[ground, 3] = ground_alpha(domain)
        self._videos, self._dynamic = videos, dynamic
        self._applied: tuple[int, int] | None = None
        self.version = 0

    def reset(self, rng: np.random.Generator) -> None:
        """Draw the video and the first frame of an episode."""
        self._moment = draw_moment(self._videos, rng)

    def advance(self) -> None:
        """Advance by one step of the task."""
        if self._dynamic:
            self._moment = play(self._moment, len(self._videos[self._moment.video]))

    def apply(self, _data: Any) -> None:
        """Write the current frame into the model, if it is not there already."""
        video, frame, _ = self._moment
        if self._applied != (video, frame):
            self._pixels[:] = self._videos[video].frame(frame)[:, ::-1]  # mirrored, since the camera is inside the sky
            self._applied = (video, frame)
            self.version += 1
