"""Attention over an image: outlines of the selected patches, and scores as a heat map."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int, Num, UInt8

from iap._validation import require_count
from iap.attention.arrays import require_finite, require_floats
from iap.attention.patches import Grid
from iap.viz.lettering import OUTLINE, Colour
from iap.viz.outlines import outline

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

HEAT = "inferno"  # perceptually uniform, also for colour-blind readers
DPI = 100
TITLE_PX = 34
ZOOM = 4  # enlarged before matplotlib resamples, so that patches do not blur into their neighbours


@dataclass(frozen=True)
class AttentionPanel:
    """One row of `attention_figure`: the scores of the patches, and the selected ones."""

    title: str
    scores: Float[np.ndarray, " L"]
    selected: Int[np.ndarray, " l"]
    grid: Grid
    patch: int
    stride: int


def overlay(
    image: Num[np.ndarray, "H W C"],
    selected: Int[np.ndarray, " l"],
    grid: Grid,
    patch: int,
    stride: int,
    *,
    colour: Colour = OUTLINE,
    zoom: int = 1,
) -> UInt8[np.ndarray, "zH zW 3"]:
    """Return the image with lines around the selected patches; `zoom` enlarges every pixel to a square."""
    selected = np.asarray(selected)
    if selected.size and not (selected.min() >= 0 and selected.max() < grid.patches):
        raise ValueError(
            f"selected must be between 0 and {grid.patches - 1}, but holds {selected.min()} to {selected.max()}"
        )
    picture = enlarge(as_picture(image), zoom)
    _extent(grid, patch, stride, image.shape[:2])
    if selected.size:
        outline(picture, selected, grid, patch, stride, zoom, colour)
    return picture


def heat_map(
    image: Num[np.ndarray, "H W C"],
    scores: Float[np.ndarray, " L"],
    grid: Grid,
    patch: int,
    stride: int,
    *,
    opacity: float = 0.75,
    zoom: int = 1,
) -> UInt8[np.ndarray, "zH zW 3"]:
    """Return the ranks of the scores as colours over the grey image; ranks, so that outliers do not hide the others."""
    from matplotlib import colormaps

    picture = as_picture(image)
    values, covers = spread(by_rank(scores), grid, patch, stride, picture.shape[:2])
    colours = colormaps[HEAT](values)[..., :3] * 255
    return enlarge(_blend(_grey(picture), colours, opacity * (covers > 0)[..., None]), zoom)


def by_rank(scores: Float[np.ndarray, " L"]) -> Float[np.ndarray, " L"]:
    """Return the ranks of the scores, from 0 to 1; equal scores have equal ranks."""
    scores = np.asarray(scores)
    if np.isnan(scores).any():
        raise ValueError("scores must not hold NaN")
    distinct, rank = np.unique(scores, return_inverse=True)
    return (rank / max(1, len(distinct) - 1)).astype(np.float32)


def spread(
    values: Float[np.ndarray, " L"], grid: Grid, patch: int, stride: int, size: tuple[int, int]
) -> tuple[Float[np.ndarray, "H W"], Int[np.ndarray, "H W"]]:
    """Return for every pixel the mean value of the patches that cover it, and their number."""
    if values.shape != (grid.patches,):
        raise ValueError(f"values must be {grid.patches} for the grid {tuple(grid)}, not of shape {values.shape}")
    extent = _extent(grid, patch, stride, size)
    total, covers = np.zeros(size, np.float32), np.zeros(size, np.int32)
    for y in range(patch):
        for x in range(patch):
            pixels = np.s_[y : extent[0] - patch + y + 1 : stride, x : extent[1] - patch + x + 1 : stride]
            total[pixels] += values.reshape(grid)
            covers[pixels] += 1
    return total / np.maximum(covers, 1), covers


def _extent(grid: Grid, patch: int, stride: int, size: tuple[int, int]) -> tuple[int, int]:
    """Height and width of all patches together, which must fit into the image."""
    height, width = ((cells - 1) * stride + patch for cells in grid)
    if height > size[0] or width > size[1]:
        needed = f"grid {tuple(grid)}, patch {patch}, stride {stride} need {(height, width)} pixels"
        raise ValueError(f"{needed}, but the image has {size}")
    return height, width


def as_picture(image: Num[np.ndarray, "H W C"]) -> UInt8[np.ndarray, "H W 3"]:
    """Return any camera image as RGB: floats (depth) scaled from minimum to maximum, one channel as grey."""
    image = np.asarray(image)
    if image.ndim != 3 or image.shape[-1] not in (1, 3):  # noqa: PLR2004
        raise ValueError(f"image must be (height, width, 1 or 3 channels), not of shape {image.shape}")
    if image.dtype != np.uint8:
        if image.dtype != np.uint16:
            require_finite("image", require_floats("image", image))
        low, high = float(image.min()), float(image.max())
        image = np.rint((image - low) / (high - low or 1) * 255).astype(np.uint8)
    return np.broadcast_to(image, (*image.shape[:2], 3))


def enlarge(picture: UInt8[np.ndarray, "H W 3"], zoom: int) -> UInt8[np.ndarray, "zH zW 3"]:
    """Return the picture with every pixel as a square of `zoom`×`zoom`."""
    require_count("zoom", zoom)
    return picture.repeat(zoom, axis=0).repeat(zoom, axis=1)


def attention_figure(
    image: Num[np.ndarray, "H W C"], panels: Sequence[AttentionPanel], *, width_px: int = 1200
) -> Figure:
    """Draw one row per panel: the image, the heat map of the scores, and the selected patches, outlined."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    if not panels:
        raise ValueError("panels must not be empty")
    height, width = image.shape[:2]
    row_px = width_px / 3 * height / width + TITLE_PX
    layout = ConstrainedLayoutEngine(w_pad=0.03, h_pad=0.03, wspace=0.01, hspace=0.01)
    figure = Figure(figsize=(width_px / DPI, len(panels) * row_px / DPI), dpi=DPI, layout=layout)
    for row, panel in zip(figure.subplots(len(panels), 3, squeeze=False), panels, strict=True):
        _draw_panel(row, image, panel)
    return figure


def _draw_panel(row: Sequence[Axes], image: np.ndarray, panel: AttentionPanel) -> None:
    layout = (panel.grid, panel.patch, panel.stride)
    heat = heat_map(image, panel.scores, *layout, zoom=ZOOM)
    selected = overlay(image, panel.selected, *layout, zoom=ZOOM)
    titled = {
        panel.title: enlarge(as_picture(image), ZOOM),
        "scores: dark low, bright high": heat,
        f"attended: {len(panel.selected)} of {panel.grid.patches:,} patches": selected,
    }
    for axes, (title, picture) in zip(row, titled.items(), strict=True):
        axes.imshow(picture)
        axes.set_title(title, fontsize=13, pad=5)
        axes.set_axis_off()


def _grey(picture: UInt8[np.ndarray, "H W 3"]) -> UInt8[np.ndarray, "H W 3"]:
    return np.repeat(picture.mean(axis=-1, keepdims=True).astype(np.uint8), 3, axis=-1)


def _blend(picture: np.ndarray, colours: np.ndarray, opacity: np.ndarray) -> np.ndarray:
    return np.rint(picture * (1 - opacity) + colours * opacity).astype(np.uint8)
