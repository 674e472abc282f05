"""Backgrounds from files: folders of frames, images, and video files. The centre square of each image is used."""

import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageOps

from iap.envs.control_suite.distractions.cache import PICTURES, Picture

IMAGES = frozenset({".jpg", ".jpeg", ".png", ".bmp", ".webp", ".gif", ".ppm", ".tif", ".tiff"})
VIDEO_FILES = frozenset({".mp4", ".avi", ".mov", ".mkv", ".webm", ".m4v", ".mpg", ".mpeg"})
MAX_FRAMES = 300  # from the start of a video file; they are kept in memory


class ImageSequence:
    """A video of image files, one per frame."""

    def __init__(self, paths: Sequence[Path], side: int) -> None:
        self._paths, self._side = paths, side

    def __len__(self) -> int:
        return len(self._paths)

    def frame(self, index: int) -> Picture:
        """One image."""
        path = self._paths[index]
        return PICTURES.get((path, self._side), lambda: _read_image(path, self._side))


class VideoFile:
    """A part of a video file, from `start` to `end` as fractions of its length."""

    def __init__(self, path: Path, side: int, start: float = 0.0, end: float = 1.0) -> None:
        self._path, self._side, self._start, self._end = path, side, start, end

    def __len__(self) -> int:
        return len(self._frames())

    def frame(self, index: int) -> Picture:
        """One frame."""
        return self._frames()[index]

    def _frames(self) -> UInt8[np.ndarray, "frames side side 3"]:
        whole = PICTURES.get((self._path, self._side), lambda: _read_video(self._path, self._side))
        part = whole[round(self._start * len(whole)) : round(self._end * len(whole))]
        if not len(part):
            raise ValueError(f"backgrounds: the video {self._path} has too few frames to hold some out: {len(whole)}")
        return part


def _read_image(path: Path, side: int) -> Picture:
    try:
        with Image.open(path) as image:
            image.draft("RGB", (2 * side, 2 * side))  # decodes a large JPEG at a lower resolution
            square = ImageOps.fit(image.convert("RGB"), (side, side), Image.Resampling.BILINEAR)
    except Exception as error:  # Pillow's decoders raise many kinds of errors for broken files
        raise ValueError(f"backgrounds: cannot read the image {path}: {error}") from error
    return np.array(square)


def _read_video(path: Path, side: int) -> UInt8[np.ndarray, "frames side side 3"]:
    import imageio_ffmpeg

    square = f"crop='min(iw,ih)':'min(iw,ih)',scale={side}:{side}"
    command = [imageio_ffmpeg.get_ffmpeg_exe(), "-nostdin", "-v", "error", "-i", str(path), "-vf", square]
    command += ["-frames:v", str(MAX_FRAMES), "-f", "rawvideo", "-pix_fmt", "rgb24", "-"]
    done = subprocess.run(command, capture_output=True, check=False)
    frames = np.frombuffer(done.stdout, np.uint8)
    if done.returncode != 0 or not frames.size or frames.size % (3 * side**2):
        why = done.stderr.decode(errors="replace").strip().splitlines() or ["it has no frames"]
        raise ValueError(f"backgrounds: cannot read the video {path}: {why[-1]}")
    return frames.reshape(-1, side, side, 3)
