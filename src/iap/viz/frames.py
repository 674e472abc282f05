"""Images from files: one image, a folder of images in order of their names, or a video."""

import re
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import imageio_ffmpeg
import numpy as np
from jaxtyping import UInt8
from PIL import Image

from iap._validation import printable

IMAGES = (".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm")
VIDEOS = (".mp4", ".webm", ".mkv", ".mov", ".avi", ".m4v")
LARGEST_PIXELS = 50_000_000
DEFAULT_FPS = 25.0


def _ffmpeg() -> list[str]:
    return [imageio_ffmpeg.get_ffmpeg_exe(), "-hide_banner"]


class Frame(NamedTuple):
    """One image and its name."""

    name: str
    image: UInt8[np.ndarray, "H W 3"]


def is_video(path: Path) -> bool:
    """Whether a path has the suffix of a video."""
    return path.suffix.lower() in VIDEOS


def frames_of(path: Path, most: int | None = None) -> Iterator[Frame]:
    """The images of a file or folder, in order; at most so many."""
    if not path.exists():
        raise FileNotFoundError(f"there is no image, folder or video {path}")
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if file.suffix.lower() in IMAGES)
        if not files:
            raise ValueError(f"{path} has no images ({', '.join(IMAGES)})")
        yield from (_read(file) for file in files[:most])
    elif is_video(path):
        yield from _read_video(path, most)
    elif path.suffix.lower() in IMAGES:
        yield _read(path)
    else:
        raise ValueError(
            f"{path} must be an image ({', '.join(IMAGES)}), a folder of images, or a video ({', '.join(VIDEOS)})"
        )


def frame_rate(path: Path) -> float:
    """Frames a second of a video."""
    done = subprocess.run([*_ffmpeg(), "-i", path], capture_output=True, text=True, errors="replace", check=False)
    found = re.search(r"([0-9.]+) fps", done.stderr)
    return float(found[1]) if found else DEFAULT_FPS


def _read(path: Path) -> Frame:
    try:
        with Image.open(path) as opened:
            width, height = opened.size
            if width * height > LARGEST_PIXELS:
                raise ValueError(f"it has {width}×{height} pixels, more than the {LARGEST_PIXELS:,} that are read")
            return Frame(path.stem, np.asarray(opened.convert("RGB")))
    except Exception as error:  # Pillow raises many kinds of errors for damaged files
        raise ValueError(printable(f"{path} cannot be read as an image: {error}")) from error


def _read_video(path: Path, most: int | None) -> Iterator[Frame]:
    """The frames of a video, which ffmpeg writes to a pipe as PPM: a header with width and height, then the pixels."""
    command = [*_ffmpeg(), "-v", "error", "-i", str(path), "-f", "image2pipe", "-c:v", "ppm", "-"]
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=errors) as ffmpeg,
    ):
        assert ffmpeg.stdout is not None
        count = 0
        while count != most and ffmpeg.stdout.readline() == b"P6\n":
            width, height = map(int, ffmpeg.stdout.readline().split())
            ffmpeg.stdout.readline()  # the largest value, 255
            content = ffmpeg.stdout.read(width * height * 3)
            yield Frame(f"{count:06d}", np.frombuffer(content, np.uint8).reshape(height, width, 3))
            count += 1
        ffmpeg.kill()
        if count == 0:
            errors.seek(0)
            reason = errors.read().decode(errors="replace").strip().splitlines()[-1:] or ["it has no frames"]
            raise ValueError(f"{path} cannot be read as a video: {reason[0]}")
