"""Lines around the selected patches: what is inside keeps its colours."""

import numpy as np
from jaxtyping import Bool, Int, UInt8

from iap.attention.patches import Grid, centres_of
from iap.viz.lettering import OUTLINE, Colour

MAX_OVERLAP = 3  # of patches longer than this many strides, only one stride around the centre is outlined
MIN_OUTLINE_PX = 13  # minimum side of an outline, so that a single pixel is visible
LINE_PX, EDGE_PX = 2, 1  # of the line, and of the dark lines along it, which set it off from any ground
EDGE: Colour = (0, 0, 0)


def outline(
    picture: UInt8[np.ndarray, "H W 3"],
    selected: Int[np.ndarray, " l"],
    grid: Grid,
    patch: int,
    stride: int,
    zoom: float,
    colour: Colour = OUTLINE,
) -> None:
    """Draw lines around the groups of selected patches into a picture that shows each pixel `zoom` times as large."""
    side = patch if patch <= MAX_OVERLAP * stride else stride
    inside = np.zeros(picture.shape[:2], bool)
    half = max(side * zoom, MIN_OUTLINE_PX) / 2
    centres = (centres_of(grid, patch, stride)[selected] + 0.5) * zoom
    for (top, left), (bottom, right) in zip(np.rint(centres - half), np.rint(centres + half), strict=True):
        inside[max(0, int(top)) : int(bottom), max(0, int(left)) : int(right)] = True
    border = inside & ~shrunk(inside, LINE_PX)
    dark = (grown(inside, EDGE_PX) & ~inside) | (shrunk(inside, LINE_PX) & ~shrunk(inside, LINE_PX + EDGE_PX))
    picture[dark], picture[border] = EDGE, colour


def shrunk(mask: Bool[np.ndarray, "H W"], by: int) -> Bool[np.ndarray, "H W"]:
    """The mask without the pixels within `by` pixels of its border, or of the picture's."""
    return ~grown(~np.pad(mask, by), by)[by:-by, by:-by]


def grown(mask: Bool[np.ndarray, "H W"], by: int) -> Bool[np.ndarray, "H W"]:
    """The mask with all pixels within `by` rows and columns of it."""
    padded = np.pad(mask, by)
    height, width = mask.shape
    rows = np.logical_or.reduce([padded[i : i + height] for i in range(2 * by + 1)])
    return np.logical_or.reduce([rows[:, i : i + width] for i in range(2 * by + 1)])
