"""The films of the documentation: a video of an episode, and a small GIF of some of its frames."""

import tempfile
from pathlib import Path

import imageio_ffmpeg
import numpy as np
from pages import IMAGES
from PIL import Image

from iap.evaluation.video import film
from iap.policies import PolicyFile

GIF_WIDTH, COLOURS = 360, 48


def filmed(policy: PolicyFile, seed: int, steps: int, out: Path | None = None) -> list[np.ndarray]:
    """The frames of `iap watch` for the first steps of an episode; the video is kept if `out` is given."""
    with tempfile.TemporaryDirectory() as folder:
        video = out or Path(folder) / "episode.mp4"
        film(policy, video, seed=seed, max_steps=steps)
        reader = imageio_ffmpeg.read_frames(str(video))
        width, height = next(reader)["size"]
        return [np.frombuffer(frame, np.uint8).reshape(height, width, 3) for frame in reader]


def write_animation(policy: PolicyFile, name: str, seed: int, steps: int, every: int, step_ms: int) -> list[np.ndarray]:
    """Write `NAME.mp4`, and `NAME.gif` of one frame in `every`; return the frames."""
    frames = filmed(policy, seed, steps, IMAGES / f"{name}.mp4")
    height, width, _ = frames[0].shape
    size = (GIF_WIDTH, round(GIF_WIDTH * height / width))
    small = [
        Image.fromarray(frame).resize(size, Image.Resampling.LANCZOS).quantize(COLOURS, dither=Image.Dither.NONE)
        for frame in frames[::every]
    ]
    gif = IMAGES / f"{name}.gif"
    small[0].save(gif, save_all=True, append_images=small[1:], duration=step_ms * every, loop=0, optimize=True)
    return frames
