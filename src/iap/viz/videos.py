"""Writing frames to a video file."""

import os
import subprocess
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

import imageio_ffmpeg
import numpy as np
from jaxtyping import UInt8

ENCODINGS = {
    ".mp4": ["-c:v", "libx264", "-crf", "23", "-pix_fmt", "yuv420p", "-movflags", "+faststart"],
    ".webm": ["-c:v", "libvpx-vp9", "-crf", "34", "-b:v", "0", "-pix_fmt", "yuv420p", "-row-mt", "1"],
    # one palette per frame, so that ffmpeg never holds the whole video
    ".gif": ["-lavfi", "split[a][b];[a]palettegen=stats_mode=single[p];[b][p]paletteuse=new=1:dither=none"],
}

Picture = UInt8[np.ndarray, "H W 3"]


class VideoWriter:
    """Writes frames to an .mp4, .webm or .gif file, which appears complete after the `with` block, or not at all.

    with VideoWriter("episode.mp4", fps=30) as video:
        video.add(frame)
    """

    def __init__(self, path: str | Path, fps: float = 30) -> None:
        self.path = Path(path)
        if self.path.suffix.lower() not in ENCODINGS:
            raise ValueError(f"path must end in {' or '.join(ENCODINGS)}, not {self.path.name!r}")
        if not 0 < fps <= 1000:  # noqa: PLR2004
            raise ValueError(f"fps must be more than 0 and at most 1000, not {fps}")
        self.fps = fps
        self._partial = self.path.with_name(f".{self.path.stem}.{os.getpid()}.part{self.path.suffix}")
        self._shape: tuple[int, ...] | None = None
        self._ffmpeg: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        if self.path.is_dir():
            raise IsADirectoryError(f"{self.path} is a folder")
        self._partial.touch()  # raises before the first frame if the folder is not writable
        self._errors = tempfile.TemporaryFile()
        return self

    def add(self, frame: Picture) -> None:
        """Append a frame of the same size. Odd sides are padded to even ones, which players need."""
        if frame.dtype != np.uint8 or frame.ndim != 3 or frame.shape[-1] != 3:  # noqa: PLR2004
            raise ValueError(f"frame must be (height, width, 3) uint8, not {frame.shape} {frame.dtype}")
        self._shape = self._shape or frame.shape
        if frame.shape != self._shape:
            raise ValueError(f"frame must be of shape {self._shape} like the first, not {frame.shape}")
        height, width = frame.shape[:2]
        padded = np.pad(frame, [(0, height % 2), (0, width % 2), (0, 0)], mode="edge")
        self._ffmpeg = self._ffmpeg or self._start(*padded.shape[:2])
        try:
            self._ffmpeg.stdin.write(padded.tobytes())  # pyright: ignore[reportOptionalMemberAccess]
        except BrokenPipeError:
            self._ffmpeg.wait()
            raise self._failure() from None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        try:
            if kind is None:
                self._finish()
        finally:
            if self._ffmpeg is not None:
                self._ffmpeg.kill()
                self._ffmpeg.communicate()
            self._errors.close()
            self._partial.unlink(missing_ok=True)

    def _start(self, height: int, width: int) -> subprocess.Popen[bytes]:
        raw = ["-f", "rawvideo", "-pix_fmt", "rgb24", "-s", f"{width}x{height}", "-r", f"{self.fps:g}", "-i", "-"]
        command = [imageio_ffmpeg.get_ffmpeg_exe(), "-v", "error", "-y", *raw]
        command += [*ENCODINGS[self.path.suffix.lower()], str(self._partial.absolute())]
        # in its own session, so that Ctrl-C does not end the encoder before its last frame
        return subprocess.Popen(command, stdin=subprocess.PIPE, stderr=self._errors, start_new_session=True)

    def _finish(self) -> None:
        if self._ffmpeg is None:
            raise ValueError(f"{self.path} would be a video without frames")
        self._ffmpeg.communicate()
        if self._ffmpeg.returncode != 0:
            raise self._failure()
        self._partial.replace(self.path)

    def _failure(self) -> OSError:
        self._errors.seek(0)
        return OSError(f"{self.path} could not be written: {self._errors.read().decode(errors='replace').strip()}")
