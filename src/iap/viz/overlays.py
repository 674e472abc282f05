"""Where a policy looks: chosen patches in red, and scores as heat, over the image."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int, Num, UInt8
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from iap.attention.arrays import require_count, require_finite, require_floats
from iap.attention.patches import Grid, centres_of

RED = (255, 0, 0)
HEAT = "inferno"  # even steps to the eye, colour-blind or not
DPI = 100
TITLE_PX = 34
ZOOM = 4  # so that scaling to the page blurs no patch into its neighbours


@dataclass(frozen=True)
class Glance:
    """One look at an image: the scores of its patches and which were chosen."""

    title: str
    scores: Float[np.ndarray, " L"]
    chosen: Int[np.ndarray, " l"]
    grid: Grid
    patch: int
    stride: int


def overlay(
    image: Num[np.ndarray, "H W C"],
    chosen: Int[np.ndarray, " l"],
    grid: Grid,
    patch: int,
    stride: int,
    *,
    colour: tuple[int, int, int] = RED,
    opacity: float = 0.7,
    zoom: int = 1,
) -> UInt8[np.ndarray, "zH zW 3"]:
    """The image with the chosen patches tinted; `zoom` enlarges every pixel to a square, so that none gets lost."""
    chosen = np.asarray(chosen)
    if chosen.size and not (chosen.min() >= 0 and chosen.max() < grid.patches):
        raise ValueError(f"chosen must be between 0 and {grid.patches - 1}, but holds {chosen.min()} to {chosen.max()}")
    picture = as_picture(image)
    marks = np.zeros(grid.patches, np.float32)
    marks[chosen] = 1
    seen = spread(marks, grid, patch, stride, picture.shape[:2])[0] > 0
    return enlarge(_blend(picture, np.array(colour, np.float32), opacity * seen[..., None]), zoom)


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
    """The scores as colours over the image in grey, by rank: a few huge scores leave the others visible."""
    picture = as_picture(image)
    warmth, covers = spread(by_rank(scores), grid, patch, stride, picture.shape[:2])
    colours = colormaps[HEAT](warmth)[..., :3] * 255
    return enlarge(_blend(_grey(picture), colours, opacity * (covers > 0)[..., None]), zoom)


def by_rank(scores: Float[np.ndarray, " L"]) -> Float[np.ndarray, " L"]:
    """Scores as their ranks from 0 to 1; equal scores stay equal."""
    scores = np.asarray(scores)
    if np.isnan(scores).any():
        raise ValueError("scores must not hold NaN")
    levels, rank = np.unique(scores, return_inverse=True)
    return (rank / max(1, len(levels) - 1)).astype(np.float32)


def spread(
    values: Float[np.ndarray, " L"], grid: Grid, patch: int, stride: int, size: tuple[int, int]
) -> tuple[Float[np.ndarray, "H W"], Int[np.ndarray, "H W"]]:
    """For every pixel, the mean value of the patches that cover it, and how many do."""
    if values.shape != (grid.patches,):
        raise ValueError(f"there must be {grid.patches} values for the grid {tuple(grid)}, not shape {values.shape}")
    reach = tuple((cells - 1) * stride + patch for cells in grid)
    if reach[0] > size[0] or reach[1] > size[1]:
        raise ValueError(
            f"grid {tuple(grid)}, patch {patch}, stride {stride} need {reach} pixels; the image has {size}"
        )
    total, covers = np.zeros(size, np.float32), np.zeros(size, np.int32)
    for y in range(patch):
        for x in range(patch):
            pixels = np.s_[y : reach[0] - patch + y + 1 : stride, x : reach[1] - patch + x + 1 : stride]
            total[pixels] += values.reshape(grid)
            covers[pixels] += 1
    return total / np.maximum(covers, 1), covers


def as_picture(image: Num[np.ndarray, "H W C"]) -> UInt8[np.ndarray, "H W 3"]:
    """Any camera image as RGB: floats (depth) from their nearest to their farthest, one channel as grey."""
    image = np.asarray(image)
    if image.ndim != 3 or image.shape[-1] not in (1, 3):  # noqa: PLR2004
        raise ValueError(f"image must be (height, width, 1 or 3 channels), not of shape {image.shape}")
    if image.dtype != np.uint8:
        require_finite("image", require_floats("image", image))
        low, high = float(image.min()), float(image.max())
        image = np.rint((image - low) / (high - low or 1) * 255).astype(np.uint8)
    return np.broadcast_to(image, (*image.shape[:2], 3))


def enlarge(picture: UInt8[np.ndarray, "H W 3"], zoom: int) -> UInt8[np.ndarray, "zH zW 3"]:
    """Every pixel as a square of `zoom`×`zoom`."""
    require_count("zoom", zoom)
    return picture.repeat(zoom, axis=0).repeat(zoom, axis=1)


def attention_figure(image: Num[np.ndarray, "H W C"], glances: Sequence[Glance], *, width_px: int = 1200) -> Figure:
    """A row a glance: the frame, the heat map of the scores, the chosen patches ringed."""
    if not glances:
        raise ValueError("glances must not be empty")
    height, width = image.shape[:2]
    row_px = width_px / 3 * height / width + TITLE_PX
    tight = ConstrainedLayoutEngine(w_pad=0.03, h_pad=0.03, wspace=0.01, hspace=0.01)
    figure = Figure(figsize=(width_px / DPI, len(glances) * row_px / DPI), dpi=DPI, layout=tight)
    for row, glance in zip(figure.subplots(len(glances), 3, squeeze=False), glances, strict=True):
        _show(row, image, glance)
    return figure


def _show(row: Sequence[Axes], image: np.ndarray, glance: Glance) -> None:
    where = (glance.grid, glance.patch, glance.stride)
    heat = heat_map(image, glance.scores, *where, zoom=ZOOM)
    chosen = overlay(_grey(as_picture(image)), glance.selected, *where, opacity=1, zoom=ZOOM)
    titled = {
        glance.title: enlarge(as_picture(image), ZOOM),
        "scores: dark low, bright high": heat,
        f"attended: {len(glance.selected)} of {glance.grid.patches:,} patches": chosen,
    }
    for axes, (title, picture) in zip(row, titled.items(), strict=True):
        axes.imshow(picture)
        axes.set_title(title, fontsize=13, pad=5)
        axes.set_axis_off()
    _ring(row[2], glance, image.shape[:2])


def _ring(axes: Axes, glance: Glance, size: tuple[int, int]) -> None:
    """A line around each group of chosen patches, so that the eye finds even a single pixel."""
    nearest = np.full(size, np.inf, np.float32)
    rows, columns = np.indices(size, dtype=np.float32)
    for y, x in centres_of(glance.grid, glance.patch, glance.stride)[glance.selected]:
        np.minimum(nearest, np.hypot(rows - y, columns - x), out=nearest)
    radius = 0.7 * glance.patch + size[1] / 50
    if nearest.min() < radius < nearest.max():
        y, x = ((np.arange(side) + 0.5) * ZOOM - 0.5 for side in size)
        axes.contour(x, y, nearest, levels=[radius], colors="red", linewidths=1.3)


def _grey(picture: UInt8[np.ndarray, "H W 3"]) -> UInt8[np.ndarray, "H W 3"]:
    return np.repeat(picture.mean(axis=-1, keepdims=True).astype(np.uint8), 3, axis=-1)


def _blend(picture: np.ndarray, colours: np.ndarray, opacity: np.ndarray) -> np.ndarray:
    return np.rint(picture * (1 - opacity) + colours * opacity).astype(np.uint8)
