"""Videos of an episode: the scene, the camera image with the attended patches, the scores, and the return so far."""

import math
import os
import subprocess
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from types import TracebackType
from typing import Self

import imageio_ffmpeg
import numpy as np
from jaxtyping import Num, UInt8
from PIL import Image, ImageDraw, ImageFont

from iap.attention.patches import centres_of
from iap.policies import Attention
from iap.viz.overlays import HEAT, RED, as_picture, enlarge, heat_map, overlay

SCENE_PX = 480  # minimum height of a scene; a smaller one is enlarged
INSET_SHARES = (0.36, 0.3)  # maximum share of the height and width of the scene, so that its middle stays visible
MARGIN_PX = 8
CAPTION_PX = 20
MIN_RAMP_PX = 26
STRIP_PX = 40
MAX_OVERLAP = 3  # patches longer than this many strides are drawn by their centres
MIN_OUTLINE_PX = 11  # minimum side of the outline of an attended patch, so that a single pixel is visible
LINE_PX = 2
DARK, LIGHT, PALE = (24, 24, 24), (255, 255, 255), 200
ENCODINGS = {
    ".mp4": ["-c:v", "libx264", "-crf", "18", "-pix_fmt", "yuv420p", "-movflags", "+faststart"],
    # one palette per frame, so that ffmpeg never holds the whole video
    ".gif": ["-lavfi", "split[a][b];[a]palettegen=stats_mode=single[p];[b][p]paletteuse=new=1:dither=none"],
}

Picture = UInt8[np.ndarray, "H W 3"]


class VideoWriter:
    """Writes frames to an .mp4 or .gif file, which appears complete after the `with` block, or not at all.

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


def compose(
    scene: Picture | None,
    camera_image: Num[np.ndarray, "h w c"],
    attention: Attention | None,
    total: float,
    step: int,
) -> Picture:
    """Draw one frame of a video.

    The upper corners of the scene show the camera image with the attended patches in red, and the scores as a heat map.
    A line below shows the return and the step.

    Args:
        scene: view of the whole scene; if None, the camera image fills the frame.
        camera_image: input of the policy.
        attention: its attention, None if it has none. Between two encoded frames, pass the last attention.
        total: return so far.
        step: number of steps so far.
    """
    if scene is None:
        body = side_by_side(camera_image, attention)
    else:
        camera = _camera_picture(camera_image)
        scene = as_picture(scene)
        zoom = max(1.0, SCENE_PX / scene.shape[0])
        body = _resize(scene, zoom, Image.Resampling.BICUBIC)
        height, width = (int(share * side) for share, side in zip(INSET_SHARES, body.shape, strict=False))
        _put(body, [*_views(camera, attention, height, width)][: 1 if attention is None else 2])
    frame = np.concatenate([body, _strip(body.shape[1], total, step)])
    return np.pad(frame, [(0, frame.shape[0] % 2), (0, frame.shape[1] % 2), (0, 0)], mode="edge")


def side_by_side(camera_image: Num[np.ndarray, "h w c"], attention: Attention | None) -> Picture:
    """Draw the camera image with the attended patches, and the scores beside it."""
    camera = _camera_picture(camera_image)
    zoom = max(1, round(SCENE_PX / camera.shape[0]))
    views = [*_views(camera, attention, zoom * camera.shape[0], zoom * camera.shape[1])]
    height, width = views[0].shape[:2]
    body = np.full((height + 2 * MARGIN_PX, 2 * width + 3 * MARGIN_PX, 3), DARK, np.uint8)
    _put(body, views)
    return body


def _camera_picture(image: Num[np.ndarray, "h w c"]) -> Picture:
    """Return the first three channels of an image with more, else one, as a picture."""
    return as_picture(image[..., :3] if image.shape[-1] >= 3 else image[..., :1])  # noqa: PLR2004


def _put(body: Picture, views: Sequence[Picture]) -> None:
    """Put pictures into the upper corners."""
    for view, right in zip(views, (False, True), strict=False):
        left = body.shape[1] - MARGIN_PX - view.shape[1] if right else MARGIN_PX
        body[MARGIN_PX : MARGIN_PX + view.shape[0], left : left + view.shape[1]] = view


def _views(camera: Picture, attention: Attention | None, height: int, width: int) -> tuple[Picture, Picture]:
    """Return the camera image with the attended patches, and the scores, with captions, to fit `height` and `width`."""
    zoom = min(height / camera.shape[0], width / camera.shape[1])
    if attention is None:
        return _with_caption(_fit(camera, zoom), "camera image"), _with_caption(_fit(camera // 4, zoom), "no attention")
    part, side = _drawn_part(attention)
    marked, heat = camera.copy(), camera // 3
    marked[part] = overlay(camera[part], attention.selected, attention.grid, side, attention.stride)
    heat[part] = heat_map(camera[part], attention.scores, attention.grid, side, attention.stride)
    marked, heat = _fit(marked, zoom), _fit(heat, zoom)
    _outline_selected(marked, attention, side, zoom)
    count = len(attention.selected)
    caption = f"attended: {count} of {attention.grid.patches:,}" if count else "camera image"
    return _with_caption(marked, caption, has_mark=count > 0), _with_caption(heat, "attention: low", "high")


def _drawn_part(attention: Attention) -> tuple[tuple[slice, slice], int]:
    """Return the part of the image in which patches are drawn, and the side to draw them with.

    Patches that overlap many times would cover the whole image. Of these only the centres are drawn, one stride wide.
    """
    patch, stride = attention.patch, attention.stride
    if patch <= MAX_OVERLAP * stride:
        return np.s_[:, :], patch
    edge = (patch - stride) // 2
    rows, columns = (slice(edge, edge + cells * stride) for cells in attention.grid)
    return (rows, columns), stride


def _fit(picture: Picture, zoom: float) -> Picture:
    """Return the picture enlarged without blur: each pixel becomes a square, or nearly one for a fractional `zoom`."""
    return _resize(enlarge(picture, max(1, math.ceil(zoom))), zoom / max(1, math.ceil(zoom)), Image.Resampling.BOX)


def _resize(picture: Picture, zoom: float, resampling: Image.Resampling) -> Picture:
    height, width = (max(1, round(side * zoom)) for side in picture.shape[:2])
    return np.array(Image.fromarray(picture).resize((width, height), resampling))


def _outline_selected(picture: Picture, attention: Attention, side: int, zoom: float) -> None:
    """Draw a red outline around each group of attended patches."""
    half = max(side * zoom, MIN_OUTLINE_PX) / 2
    centres = (centres_of(attention.grid, attention.patch, attention.stride)[attention.selected] + 0.5) * zoom
    inside = np.zeros((2, *picture.shape[:2]), bool)
    for mask, reach in zip(inside, (half, half - LINE_PX), strict=True):
        for (top, left), (bottom, right) in zip(np.rint(centres - reach), np.rint(centres + reach), strict=True):
            mask[max(0, int(top)) : int(bottom), max(0, int(left)) : int(right)] = True
    picture[inside[0] & ~inside[1]] = RED


def _with_caption(picture: Picture, caption: str, end: str = "", *, has_mark: bool = False) -> Picture:
    """Return the picture with a border and a line of text, with a red mark before it or a colour scale after it."""
    from matplotlib import colormaps

    width, middle = picture.shape[1], CAPTION_PX // 2
    line = Image.new("RGB", (width, CAPTION_PX), DARK)
    draw = ImageDraw.Draw(line)
    left, right = 18 if has_mark else 4, width - 4
    font = _font(_font_size(caption + end, right - left - (MIN_RAMP_PX if end else 0)))
    if has_mark:
        draw.rectangle((4, middle - 4, 12, middle + 4), fill=RED)
    draw.text((left, middle), caption, LIGHT, font, anchor="lm")
    if end:
        draw.text((right, middle), end, LIGHT, font, anchor="rm")
        first, last = (round(draw.textlength(word, font)) + 5 for word in (caption, end))
        ramp = colormaps[HEAT](np.linspace(0, 1, max(1, right - last - left - first)), bytes=True)[None, :, :3]
        line.paste(Image.fromarray(ramp.repeat(9, axis=0)), (left + first, middle - 4))
    return np.pad(np.concatenate([picture, np.asarray(line)]), [(1, 1), (1, 1), (0, 0)], constant_values=PALE)


def _font_size(text: str, width_px: int) -> int:
    """Return the font size for a caption to fit, but not below what is legible."""
    return max(7, min(12, int(12 * width_px / _font(12).getlength(text))))


def _strip(width: int, total: float, step: int) -> Picture:
    """Return a line with the return and the number of steps."""
    strip = Image.new("RGB", (width, STRIP_PX), DARK)
    draw = ImageDraw.Draw(strip)
    digits = 1 if abs(total) >= 10 else 2  # noqa: PLR2004
    text = f"return {round(total, digits) + 0.0:,.{digits}f}"  # + 0.0 turns −0 into 0
    draw.text((MARGIN_PX, STRIP_PX // 2), text, LIGHT, _font(22), anchor="lm")
    draw.text((width - MARGIN_PX, STRIP_PX // 2), f"step {step:,}", (PALE,) * 3, _font(16), anchor="rm")
    return np.asarray(strip)


@lru_cache
def _font(size: int) -> ImageFont.FreeTypeFont:
    """Return the font of matplotlib, which is the same on every machine."""
    import matplotlib as mpl

    return ImageFont.truetype(Path(mpl.get_data_path(), "fonts", "ttf", "DejaVuSans.ttf"), size)
