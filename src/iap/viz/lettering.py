"""Text in pictures: fonts, lines of a caption with a swatch or a colour scale, and labels at points of a scene."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageDraw, ImageFont

Colour = tuple[int, int, int]
Picture = UInt8[np.ndarray, "H W 3"]
Box = tuple[float, float, float, float]  # left, top, right, bottom

DARK: Colour = (24, 24, 24)
LIGHT: Colour = (255, 255, 255)
PALE: Colour = (200, 200, 200)
OUTLINE: Colour = (255, 0, 230)  # of attended patches: a colour that neither scenes nor colour scales have
LINE_PX = 22  # height of a line of a caption
TEXT_PX, SMALLEST_PX = 16, 9
RAMP_PX, LEAST_RAMP_PX = 10, 24
PAD_PX = 6
RING_PX = 5  # radius of the mark at a labelled point
REACHES_PX = (48, 75, 105)  # distances of a label from its point
DIRECTIONS = ((0, -1), (0.8, -0.7), (-0.8, -0.7), (1, 0), (-1, 0), (0, 1), (0.8, 0.7), (-0.8, 0.7))


class Line(NamedTuple):
    """A line of a caption.

    Attributes:
        text: at the left.
        end: at the right, behind the colour scale.
        scale: the name of a colour map, drawn between `text` and `end`.
        swatch: whether a square in the colour of the outlines comes first.
    """

    text: str
    end: str = ""
    scale: str = ""
    swatch: bool = False


class Label(NamedTuple):
    """The name of a point in a picture: row and column from 0 to 1. Without a name only the point is marked."""

    name: str
    row: float
    column: float


@lru_cache
def font(size: int, *, bold: bool = False) -> ImageFont.FreeTypeFont:
    """The font of matplotlib, which is the same on every machine."""
    import matplotlib as mpl

    name = f"DejaVuSans{'-Bold' if bold else ''}.ttf"
    return ImageFont.truetype(Path(mpl.get_data_path(), "fonts", "ttf", name), size)


def fitting(text: str, width_px: float, size: int, *, bold: bool = False) -> ImageFont.FreeTypeFont:
    """The font in which a text is at most so wide, if that is legible."""
    needed = font(size, bold=bold).getlength(text) or 1
    return font(max(SMALLEST_PX, min(size, int(size * width_px / needed))), bold=bold)


def caption(lines: Sequence[Line], width: int, size: int = TEXT_PX) -> Picture:
    """Lines of text on a dark ground."""
    ground = Image.new("RGB", (width, len(lines) * LINE_PX + 4), DARK)
    draw = ImageDraw.Draw(ground)
    for number, line in enumerate(lines):
        _draw_line(ground, draw, line, number * LINE_PX + LINE_PX // 2 + 2, size)
    return np.asarray(ground)


def _draw_line(ground: Image.Image, draw: ImageDraw.ImageDraw, line: Line, middle: int, size: int) -> None:
    left, right = PAD_PX, ground.width - PAD_PX
    if line.swatch:
        draw.rectangle((left, middle - 6, left + 12, middle + 6), outline=OUTLINE, width=3)
        left += 19
    reserved = LEAST_RAMP_PX + 2 * PAD_PX if line.scale else 0
    shown = fitting(line.text + line.end, right - left - reserved, size)
    draw.text((left, middle), line.text, LIGHT, shown, anchor="lm")
    draw.text((right, middle), line.end, LIGHT, shown, anchor="rm")
    if line.scale:
        first = round(left + shown.getlength(line.text)) + PAD_PX
        last = round(right - shown.getlength(line.end)) - PAD_PX
        ramp = coloured(np.linspace(0, 1, max(1, last - first)), line.scale)[None]
        ground.paste(Image.fromarray(ramp.repeat(RAMP_PX, axis=0)), (first, middle - RAMP_PX // 2))


def coloured(shares: np.ndarray, scale: str) -> UInt8[np.ndarray, "*shape 3"]:
    """Numbers from 0 to 1 in the colours of a scale."""
    from matplotlib import colormaps

    return colormaps[scale](shares, bytes=True)[..., :3]


def with_labels(picture: Picture, labels: Sequence[Label]) -> Picture:
    """The picture with a ring at each point, and its name beside it where it covers no other name."""
    image = Image.fromarray(picture)
    draw = ImageDraw.Draw(image)
    height, width = picture.shape[:2]
    points = [
        (name, column * width, row * height) for name, row, column in labels if 0 <= row <= 1 and 0 <= column <= 1
    ]
    taken: list[Box] = [(x - RING_PX, y - RING_PX, x + RING_PX, y + RING_PX) for _, x, y in points]
    for name, x, y in points:
        for radius, colour in ((RING_PX + 1, DARK), (RING_PX, LIGHT)):
            draw.ellipse((x - radius, y - radius, x + radius, y + radius), outline=colour, width=2)
        if name:
            taken.append(_draw_name(draw, name, (x, y), (width, height), taken))
    return np.array(image)


def with_parts(picture: Picture, names: Sequence[str]) -> Picture:
    """The picture with lines between its equal parts, one below the other, and their names."""
    image = Image.fromarray(picture)
    draw = ImageDraw.Draw(image)
    height, width = picture.shape[:2]
    for number, name in enumerate(names):
        top = round(number * height / len(names))
        if number:
            draw.line((0, top, width, top), fill=DARK, width=3)
        shown = fitting(name, width - 2 * PAD_PX, TEXT_PX - 2)
        box = (0, top, shown.getlength(name) + 2 * PAD_PX, top + LINE_PX - 2)
        draw.rectangle(box, fill=DARK)
        draw.text((PAD_PX, top + LINE_PX // 2 - 1), name, LIGHT, shown, anchor="lm")
    return np.array(image)


def _draw_name(
    draw: ImageDraw.ImageDraw, name: str, point: tuple[float, float], size: tuple[int, int], taken: Sequence[Box]
) -> Box:
    shown = font(TEXT_PX)
    half = shown.getlength(name) / 2 + PAD_PX, LINE_PX / 2
    places = list(_places(point, half, size))
    box = next((place for place in places if not any(_overlap(place, other) for other in taken)), places[0])
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    near = min(max(point[0], box[0]), box[2]), min(max(point[1], box[1]), box[3])
    for colour, width in ((DARK, 4), (LIGHT, 2)):
        draw.line((*point, *near), fill=colour, width=width)
    draw.rounded_rectangle(box, 5, fill=DARK, outline=LIGHT)
    draw.text((x, y), name, LIGHT, shown, anchor="mm")
    return box


def _places(point: tuple[float, float], half: tuple[float, float], size: tuple[int, int]) -> Iterator[Box]:
    """Where a name can be, the best place first: near the point, preferably above it, inside the picture."""
    for reach in REACHES_PX:
        for right, down in DIRECTIONS:
            x = point[0] + right * (reach + half[0] * abs(right))
            y = point[1] + down * reach
            x, y = (min(max(at, side), full - side) for at, side, full in zip((x, y), half, size, strict=True))
            yield x - half[0], y - half[1], x + half[0], y + half[1]


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
