"""The films of the documentation: a video of an episode, and a small GIF of some of its frames.

Run it: python benchmarks/animation.py draws docs/images/seek.png; the scripts of the other pages draw their own.
"""

import tempfile
from pathlib import Path

import imageio_ffmpeg
import numpy as np
from pages import IMAGES
from PIL import Image

from iap.evaluation.video import film
from iap.policies import PolicyFile
from iap.zoo.locate import locate_policy

SEEK_STEP = 30
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


def main() -> None:
    """One step of `zoo:seek`."""
    policy, _ = locate_policy("zoo:seek")
    Image.fromarray(filmed(policy, seed=0, steps=SEEK_STEP + 1)[SEEK_STEP]).save(IMAGES / "seek.png", optimize=True)


if __name__ == "__main__":
    main()
