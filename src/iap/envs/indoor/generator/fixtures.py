"""Kitchen and bathroom pieces as parts, see `furniture`."""

import numpy as np

from iap.envs.indoor.generator.furniture import DARK, METAL, WHITE, Palette, box
from iap.envs.indoor.generator.shapes import Part


def kitchen_counter(rng: np.random.Generator, palette: Palette) -> list[Part]:
    """Cabinets below a worktop and above it, with a stove."""
    half = rng.uniform(0.9, 1.5)
    front = palette.accent if rng.random() < 0.4 else WHITE  # noqa: PLR2004
    parts = [
        box(-half, half, 0, 0.54, 0, 0.1, "plain", DARK),
        box(-half, half, 0, 0.58, 0.1, 0.86, "plain", front),
        box(-half, half, 0, 0.62, 0.86, 0.9, "grain", palette.wood),
        box(-half + 0.1, -half + 0.65, 0.05, 0.57, 0.9, 0.91, "plain", DARK),
        box(-half + 0.1, -half + 0.65, 0.58, 0.59, 0.2, 0.75, "screen", (0.05, 0.05, 0.06)),
        box(half - 0.75, half - 0.3, 0.12, 0.5, 0.9, 0.905, "plain", METAL),
        box(half - 0.54, half - 0.5, 0.06, 0.1, 0.9, 1.15, "plain", METAL),
        box(-half, half, 0, 0.01, 0.9, 1.45, "small tiles", (0.75, 0.76, 0.74)),
        box(-half, half, 0.01, 0.34, 1.45, 2.05, "plain", front),
    ]
    for x in np.arange(-half + 0.7, half - 0.05, 0.45):
        end = min(x + 0.45, half) - 0.01
        parts.append(box(x, end, 0.58, 0.595, 0.14, 0.84, "plain", front))
        parts.append(box(end - 0.06, end - 0.04, 0.595, 0.615, 0.6, 0.78, "plain", METAL))
    return parts


def fridge(rng: np.random.Generator, palette: Palette) -> list[Part]:
    """With a freezer compartment."""
    tint = METAL if rng.random() < 0.5 else WHITE  # noqa: PLR2004
    return [
        box(-0.3, 0.3, 0.02, 0.6, 0.04, 1.75, "plain", tint),
        box(-0.295, 0.295, 0.6, 0.64, 0.06, 0.6, "plain", tint),
        box(-0.295, 0.295, 0.6, 0.64, 0.62, 1.74, "plain", tint),
        box(-0.26, -0.24, 0.64, 0.67, 0.7, 1.2, "plain", DARK),
    ]


def bathtub(rng: np.random.Generator, palette: Palette) -> list[Part]:
    """With a rim."""
    half = rng.uniform(0.75, 0.85)
    return [
        box(-half, half, 0, 0.75, 0, 0.5, "plain", WHITE),
        box(-half, half, 0, 0.08, 0.5, 0.57, "plain", WHITE),
        box(-half, half, 0.67, 0.75, 0.5, 0.57, "plain", WHITE),
        box(-half, -half + 0.08, 0.08, 0.67, 0.5, 0.57, "plain", WHITE),
        box(half - 0.08, half, 0.08, 0.67, 0.5, 0.57, "plain", WHITE),
    ]


def toilet(rng: np.random.Generator, palette: Palette) -> list[Part]:
    """With a cistern."""
    return [
        box(-0.2, 0.2, 0, 0.2, 0.4, 0.8, "plain", WHITE),
        box(-0.13, 0.13, 0.1, 0.5, 0, 0.36, "plain", WHITE, is_round=True),
        box(-0.19, 0.19, 0.18, 0.62, 0.36, 0.43, "plain", WHITE, is_round=True),
    ]


def washbasin(rng: np.random.Generator, palette: Palette) -> list[Part]:
    """On a cabinet, below a mirror."""
    return [
        box(-0.3, 0.3, 0, 0.4, 0.15, 0.75, "grain", palette.wood),
        box(-0.34, 0.34, 0, 0.46, 0.75, 0.87, "plain", WHITE),
        box(-0.02, 0.02, 0.05, 0.16, 0.87, 1.02, "plain", METAL),
        box(-0.3, 0.3, 0, 0.02, 1.1, 1.75, "screen", (0.42, 0.47, 0.5)),
    ]
