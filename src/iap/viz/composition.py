"""A frame of a video: title, scene with labels, the policy's image with attended patches, the scores, the return."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Num
from PIL import Image, ImageDraw

from iap.policies import Attention
from iap.viz.lettering import (
    DARK,
    LIGHT,
    PALE,
    Label,
    Line,
    Picture,
    caption,
    coloured,
    fitting,
    with_labels,
    with_parts,
)
from iap.viz.outlines import outline
from iap.viz.overlays import HEAT, as_picture, enlarge, heat_map
from iap.viz.return_bar import Reference, return_bar

SCENE_PX = 480  # minimum height of a scene; a smaller one is enlarged
LEAST_PANEL_PX = 200  # width of a panel beside the scene, so that its caption is legible
MOST_PANELS_PX = 420  # width of both, if they are side by side
STACKED_SHARE = 0.85  # of the size side by side, at which panels are rather one above the other
MARGIN_PX = 8
TITLE_PX = 62
DEPTH = "Blues"  # light is near; unlike the colours of the scores
DEFAULT_TITLE = "input"


class Film(NamedTuple):
    """What all frames of a video have in common.

    Attributes:
        task: the name of the task.
        goal: what the policy should do.
        policy: the name of the policy.
        references: returns to compare with.
        image_title: what the policy's image shows.
        image_unit: of the numbers of an image that is not of a camera, such as "m" of depths.
        image_parts: names of the equal parts, one below the other, of an image of several cameras.
    """

    task: str = ""
    goal: str = ""
    policy: str = ""
    references: tuple[Reference, ...] = ()
    image_title: str = DEFAULT_TITLE
    image_unit: str = ""
    image_parts: tuple[str, ...] = ()


class Panels(NamedTuple):
    """The policy's image with the attended patches, and the scores."""

    image: Picture
    scores: Picture


def compose(
    scene: Picture | None,
    image: Num[np.ndarray, "h w c"],
    attention: Attention | None,
    total: float,
    step: int,
    film: Film = Film(),  # noqa: B008
    labels: Sequence[Label] = (),
    depths: tuple[float, float] | None = None,
) -> Picture:
    """Draw one frame of a video.

    Beside the scene are the policy's image, with outlines around the attended patches, and the scores as a heat map.
    Above are task and goal, below is the return.

    Args:
        scene: view of the whole scene; if None, the policy's image takes its place.
        image: input of the policy.
        attention: its attention, None if it has none. Between two encoded frames, pass the last attention.
        total: return so far.
        step: number of steps so far.
        film: what all frames have in common.
        labels: names of points of the scene.
        depths: the smallest and the largest number of an image that is not of a camera; by default those of this image.
    """
    if scene is None:
        body = side_by_side(image, attention, film, depths, labels)
    else:
        shown = as_picture(scene)
        shown = with_labels(_resize(shown, max(1.0, SCENE_PX / shown.shape[0]), Image.Resampling.BICUBIC), labels)
        body = _beside(shown, image, attention, film, depths)
    parts = [body, return_bar(body.shape[1], total, film.references)]
    if film.task or film.goal:
        parts.insert(0, _title(body.shape[1], film, step))
    frame = np.concatenate(parts)
    return np.pad(frame, [(0, frame.shape[0] % 2), (0, frame.shape[1] % 2), (0, 0)], mode="edge")


def side_by_side(
    image: Num[np.ndarray, "h w c"],
    attention: Attention | None,
    film: Film = Film(),  # noqa: B008
    depths: tuple[float, float] | None = None,
    labels: Sequence[Label] = (),
) -> Picture:
    """Draw the image with the attended patches, and the scores beside it."""
    zoom = max(1, round(SCENE_PX / image.shape[0]))
    panels = _panels(image, attention, zoom, film, depths, labels)
    return _row([_framed(panel) for panel in panels])


def _beside(
    scene: Picture, image: np.ndarray, attention: Attention | None, film: Film, depths: tuple[float, float] | None
) -> Picture:
    """The scene, and right of it the panels: one above the other, or side by side where they are larger then."""
    height, width = image.shape[:2]
    captions = sum(part.shape[0] for part in _captions(image, attention, LEAST_PANEL_PX, film, depths))
    room = scene.shape[0] - captions - MARGIN_PX - 4
    stacked, wide = room / 2 / height, (MOST_PANELS_PX - MARGIN_PX) / 2 / width
    wide = min(wide, (scene.shape[0] - captions / 2 - 4) / height)
    is_stacked = stacked >= STACKED_SHARE * wide
    zoom = min(stacked, MOST_PANELS_PX / width) if is_stacked else wide
    panels = [_framed(panel) for panel in _panels(image, attention, zoom, film, depths)]
    column = _column(panels) if is_stacked else _row(panels, margin=0)
    return _row([scene, column])


def _panels(
    image: np.ndarray,
    attention: Attention | None,
    zoom: float,
    film: Film,
    depths: tuple[float, float] | None,
    labels: Sequence[Label] = (),
) -> Panels:
    """The two panels with their captions."""
    camera = camera_picture(image, film.image_unit, depths)
    marked = _fit(camera, zoom)
    grey = np.repeat(camera.mean(axis=-1, keepdims=True) / 3, 3, axis=-1).astype(np.uint8)
    heat = _fit(grey, zoom)
    if attention is not None:
        window = attention.grid, attention.patch, attention.stride
        if len(attention.selected):
            outline(marked, attention.selected, *window, zoom)
        heat = _fit(heat_map(camera, attention.scores, *window), zoom)
    marked = with_labels(with_parts(marked, film.image_parts), labels)
    width = max(LEAST_PANEL_PX, marked.shape[1])
    texts = _captions(image, attention, width, film, depths)
    return Panels(
        *(np.concatenate([_centred(part, width), text]) for part, text in zip((marked, heat), texts, strict=True))
    )


def _captions(
    image: np.ndarray, attention: Attention | None, width: int, film: Film, depths: tuple[float, float] | None
) -> Panels:
    """The captions of the two panels, of the same height."""
    height, columns = image.shape[:2]
    lines = [Line(f"{film.image_title}, {columns} × {height}")]
    if film.image_unit:
        low, high = depths or _range(image)
        lines.append(Line(f"{low:.2f}", f"{high:.2f} {film.image_unit}", DEPTH))
    count = 0 if attention is None else len(attention.selected)
    if attention is not None and count:
        lines.append(Line(f"attended: {count} of {attention.grid.patches:,}", swatch=True))
    scores = [Line("attention score"), Line("low", "high", HEAT)] if attention is not None else [Line("no attention")]
    most = max(len(lines), len(scores))
    lines, scores = (part + [Line("")] * (most - len(part)) for part in (lines, scores))
    return Panels(caption(lines, width), caption(scores, width))


def camera_picture(
    image: Num[np.ndarray, "h w c"], unit: str = "", depths: tuple[float, float] | None = None
) -> Picture:
    """The first three channels of an image with more, else one, as a picture; numbers with a unit in colours."""
    if unit:
        low, high = depths or _range(image)
        return coloured(np.clip((image[..., 0] - low) / (high - low or 1), 0, 1), DEPTH)
    return as_picture(image[..., :3] if image.shape[-1] >= 3 else image[..., :1])  # noqa: PLR2004


def _range(image: np.ndarray) -> tuple[float, float]:
    return float(image[..., 0].min()), float(image[..., 0].max())


def _title(width: int, film: Film, step: int) -> Picture:
    """Two lines: task, policy and step; and the goal."""
    ground = Image.new("RGB", (width, TITLE_PX), DARK)
    draw = ImageDraw.Draw(ground)
    steps = f"{film.policy}   step {step:,}" if film.policy else f"step {step:,}"
    small = fitting(steps, width / 2, 17)
    room = width - 4 * MARGIN_PX - small.getlength(steps)
    draw.text((MARGIN_PX, 20), film.task, LIGHT, fitting(film.task, room, 24, bold=True), anchor="lm")
    draw.text((width - MARGIN_PX, 20), steps, PALE, small, anchor="rm")
    draw.text((MARGIN_PX, 46), film.goal, LIGHT, fitting(film.goal, width - 2 * MARGIN_PX, 18), anchor="lm")
    return np.asarray(ground)


def _fit(picture: Picture, zoom: float) -> Picture:
    """Return the picture enlarged without blur: each pixel becomes a square, or nearly one for a fractional `zoom`."""
    return _resize(enlarge(picture, max(1, math.ceil(zoom))), zoom / max(1, math.ceil(zoom)), Image.Resampling.BOX)


def _resize(picture: Picture, zoom: float, resampling: Image.Resampling) -> Picture:
    height, width = (max(1, round(side * zoom)) for side in picture.shape[:2])
    return np.array(Image.fromarray(picture).resize((width, height), resampling))


def _framed(picture: Picture) -> Picture:
    return np.pad(picture, [(1, 1), (1, 1), (0, 0)], constant_values=PALE[0])


def _centred(picture: Picture, width: int) -> Picture:
    left = (width - picture.shape[1]) // 2
    ground = np.full((picture.shape[0], width, 3), DARK[0], np.uint8)
    ground[:, left : left + picture.shape[1]] = picture
    return ground


def _row(pictures: Sequence[Picture], margin: int = MARGIN_PX) -> Picture:
    """Pictures side by side on a dark ground, with their upper edges aligned."""
    height = max(part.shape[0] for part in pictures) + 2 * margin
    width = sum(part.shape[1] for part in pictures) + (len(pictures) - 1) * MARGIN_PX + 2 * margin
    ground, left = np.full((height, width, 3), DARK[0], np.uint8), margin
    for part in pictures:
        ground[margin : margin + part.shape[0], left : left + part.shape[1]] = part
        left += part.shape[1] + MARGIN_PX
    return ground


def _column(pictures: Sequence[Picture]) -> Picture:
    """Pictures of one width, one above the other."""
    gap = np.full((MARGIN_PX, pictures[0].shape[1], 3), DARK[0], np.uint8)
    return np.concatenate([part for picture in pictures for part in (picture, gap)][:-1])
