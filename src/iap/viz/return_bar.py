"""The return so far on a scale with the returns that it is compared with."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from PIL import Image, ImageDraw

from iap.viz.lettering import DARK, LIGHT, PALE, Colour, Picture, font

HEIGHT_PX, BAR_PX = 74, 14
MARGIN_PX, TEXT_PX = 8, 15
NUMBER_SHARE = 0.27  # of the width, for the return in digits
FILLED: Colour = (80, 200, 120)
EMPTY: Colour = (70, 70, 70)
MARGIN_SHARE = 0.06  # of the scale, beyond the smallest and the largest return


class Reference(NamedTuple):
    """A return to compare with."""

    name: str
    value: float


def return_bar(width: int, total: float, references: Sequence[Reference] = ()) -> Picture:
    """The return in digits, and as a bar on a scale on which the references are marked."""
    ground = Image.new("RGB", (width, HEIGHT_PX), DARK)
    draw = ImageDraw.Draw(ground)
    draw.text((MARGIN_PX, HEIGHT_PX // 2 - 11), "return so far", PALE, font(TEXT_PX), anchor="lm")
    draw.text((MARGIN_PX, HEIGHT_PX // 2 + 13), shown(total), LIGHT, font(26, bold=True), anchor="lm")
    if references:
        _draw_scale(draw, (round(NUMBER_SHARE * width), width - MARGIN_PX), total, references)
    return np.asarray(ground)


def _draw_scale(
    draw: ImageDraw.ImageDraw, ends: tuple[int, int], total: float, references: Sequence[Reference]
) -> None:
    """The bar starts at 0, or at the end of the scale that is nearer to it."""
    values = [0.0, *(reference.value for reference in references)]
    spread = (max(values) - min(values)) or 1.0
    low, high = min(values) - MARGIN_SHARE * spread, max(values) + MARGIN_SHARE * spread

    def at(value: float) -> int:
        return round(ends[0] + (min(max(value, low), high) - low) / (high - low) * (ends[1] - ends[0]))

    top, bottom = (HEIGHT_PX - BAR_PX) // 2, (HEIGHT_PX + BAR_PX) // 2
    draw.rectangle((ends[0], top, ends[1], bottom), fill=EMPTY)
    start, end = sorted((at(0.0), at(total)))
    draw.rectangle((start, top, end, bottom), fill=FILLED)
    draw.rectangle((at(total) - 2, top - 4, at(total) + 2, bottom + 4), fill=LIGHT)
    free = {False: float(ends[0]), True: float(ends[0])}  # above and below the bar: where the last text ends
    for is_above, reference in _sides(references):
        x, text = at(reference.value), f"{reference.name} {shown(reference.value)}"
        half = font(TEXT_PX).getlength(text) / 2
        centre = max(min(max(x, ends[0] + half), ends[1] - half), free[is_above] + half)
        draw.line((x, top - 6 if is_above else top, x, bottom if is_above else bottom + 6), fill=LIGHT, width=2)
        y = top - 15 if is_above else bottom + 15
        draw.text((centre, y), text, LIGHT, font(TEXT_PX), anchor="mm")
        free[is_above] = centre + half + MARGIN_PX


def _sides(references: Sequence[Reference]) -> list[tuple[bool, Reference]]:
    """The references in order of their values, alternately below and above the bar."""
    ordered = sorted(references, key=lambda reference: reference.value)
    return [(number % 2 == 1, reference) for number, reference in enumerate(ordered)]


def shown(value: float) -> str:
    """A return with at most three digits behind its sign and point."""
    digits = 0 if abs(value) >= 100 else 1 if abs(value) >= 10 else 2  # noqa: PLR2004
    return f"{round(value, digits) + 0.0:,.{digits}f}"  # + 0.0 turns −0 into 0
