"""Pieces of furniture as parts. The wall is at y = 0, the piece extends to positive y, and x = 0 is its middle."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from iap.envs.indoor.generator.shapes import Colour, Part

WHITE: Colour = (0.82, 0.82, 0.8)
METAL: Colour = (0.5, 0.51, 0.53)
DARK: Colour = (0.06, 0.06, 0.07)
PILLOW: Colour = (0.85, 0.84, 0.8)


@dataclass(frozen=True)
class Palette:
    """The colours of an apartment."""

    wood: Colour
    dark_wood: Colour
    fabric: Colour
    accent: Colour


def draw_palette(rng: np.random.Generator) -> Palette:
    """Random colours that go together."""
    tone = rng.uniform(0.75, 1.25)
    wood = tuple(float(tone * a) for a in (0.52, 0.36, 0.22))
    dark = tuple(float(0.5 * tone * a) for a in (0.42, 0.26, 0.16))
    return Palette(_colour(wood), _colour(dark), _random_colour(rng, 0.45), _random_colour(rng, 0.8))


def _colour(values: tuple[float, ...]) -> Colour:
    return (values[0], values[1], values[2])


def _random_colour(rng: np.random.Generator, saturation: float) -> Colour:
    hue = rng.uniform(0, 2 * np.pi)
    value = rng.uniform(0.25, 0.6)
    shift = np.cos(hue + np.array([0, 2.1, 4.2]))
    return _colour(tuple(float(x) for x in np.clip(value * (1 + saturation * shift), 0.04, 0.85)))


Maker = Callable[[np.random.Generator, Palette], list[Part]]


def box(
    x0: float,
    x1: float,
    y0: float,
    y1: float,
    z0: float,
    z1: float,
    pattern: str,
    tint: Colour,
    *,
    is_round: bool = False,
    glow: float = 0.0,
) -> Part:
    """A part by its extents."""
    return Part((x0, y0, z0), (x1, y1, z1), pattern, tint, is_round=is_round, glow=glow)


def _legs(half: float, depth: float, height: float, thickness: float, tint: Colour, y: float = 0.0) -> list[Part]:
    return [
        box(x - thickness / 2, x + thickness / 2, y + a, y + a + thickness, 0, height, "grain", tint)
        for x in (-half + thickness, half - thickness)
        for a in (0.02, depth - thickness - 0.02)
    ]


def bed(rng: np.random.Generator, palette: Palette) -> list[Part]:
    """With a headboard, pillows and a blanket."""
    half, length = rng.choice([0.5, 0.7, 0.85]), 2.0
    parts = [
        box(-half, half, 0.02, 0.08, 0, rng.uniform(0.8, 1.1), "grain", palette.wood),
        *_legs(half, length - 0.1, 0.1, 0.07, palette.dark_wood, 0.08),
        box(-half, half, 0.08, length, 0.1, 0.3, "grain", palette.wood),
        box(-half + 0.02, half - 0.02, 0.1, length - 0.02, 0.3, 0.5, "fabric", WHITE),
        box(-half + 0.01, half - 0.01, 0.75, length - 0.01, 0.42, 0.55, "fabric", palette.accent),
    ]
    pillows = [(-half + 0.1, half - 0.1)] if half < 0.6 else [(-half + 0.08, -0.04), (0.04, half - 0.08)]  # noqa: PLR2004
    return [*parts, *(box(a, b, 0.12, 0.5, 0.5, 0.6, "fabric", PILLOW) for a, b in pillows)]


def nightstand(rng: np.random.Generator, palette: Palette) -> list[Part]:
    """With a lamp."""
    return [
        box(-0.22, 0.22, 0, 0.38, 0.08, 0.5, "grain", palette.wood),
        box(-0.19, 0.19, 0.38, 0.39, 0.3, 0.46, "grain", palette.dark_wood),
        box(-0.19, 0.19, 0.38, 0.39, 0.11, 0.27, "grain", palette.dark_wood),
        box(-0.03, 0.03, 0.16, 0.22, 0.5, 0.7, "plain", METAL, is_round=True),
        box(-0.13, 0.13, 0.06, 0.32, 0.7, 0.9, "fabric", (0.9, 0.82, 0.65), is_round=True, glow=0.5),
    ]


def wardrobe(rng: np.random.Generator, palette: Palette) -> list[Part]:
    """With doors and handles."""
    half, height = rng.uniform(0.5, 0.95), rng.uniform(1.8, 2.15)
    tint = WHITE if rng.random() < 0.5 else palette.wood  # noqa: PLR2004
    parts = [box(-half, half, 0, 0.56, 0, height, "grain", palette.dark_wood)]
    doors = max(2, round(2 * half / 0.5))
    for edge in np.linspace(-half, half, doors + 1)[:-1]:
        right = edge + 2 * half / doors
        parts.append(box(edge + 0.01, right - 0.01, 0.56, 0.58, 0.07, height - 0.03, "grain", tint))
        parts.append(box(right - 0.06, right - 0.04, 0.58, 0.6, 0.9, 1.1, "plain", METAL))
    return parts


def bookcase(rng: np.random.Generator, palette: Palette) -> list[Part]:
    """Shelves, mostly full of books."""
    half, height, shelves = rng.uniform(0.35, 0.8), rng.uniform(1.2, 2.1), 5
    parts = [
        box(-half, half, 0, 0.02, 0, height, "grain", palette.dark_wood),
        box(-half, -half + 0.03, 0, 0.3, 0, height, "grain", palette.wood),
        box(half - 0.03, half, 0, 0.3, 0, height, "grain", palette.wood),
    ]
    step = (height - 0.08) / shelves
    for i in range(shelves + 1):
        z = 0.04 + i * step
        parts.append(box(-half + 0.03, half - 0.03, 0.02, 0.3, z, z + 0.03, "grain", palette.wood))
        if i < shelves and rng.random() < 0.85:  # noqa: PLR2004
            end = rng.uniform(0.0, half - 0.05)
            top = z + 0.03 + rng.uniform(0.65, 0.85) * (step - 0.03)
            parts.append(box(-half + 0.04, end, 0.05, 0.24, z + 0.03, top, "books", (0.6, 0.6, 0.6)))
    return parts


def sofa(rng: np.random.Generator, palette: Palette) -> list[Part]:
    """With cushions."""
    half, tint = rng.uniform(0.75, 1.1), palette.fabric
    parts = [
        *_legs(half, 0.85, 0.12, 0.05, palette.dark_wood, 0.02),
        box(-half, half, 0.02, 0.88, 0.12, 0.32, "fabric", tint),
        box(-half, half, 0.02, 0.25, 0.32, 0.82, "fabric", tint),
        box(-half, -half + 0.18, 0.25, 0.88, 0.32, 0.6, "fabric", tint),
        box(half - 0.18, half, 0.25, 0.88, 0.32, 0.6, "fabric", tint),
    ]
    edges = np.linspace(-half + 0.18, half - 0.18, 3 if half < 0.95 else 4)  # noqa: PLR2004
    for a, b in pairwise(edges):
        parts.append(box(a + 0.01, b - 0.01, 0.25, 0.86, 0.32, 0.44, "fabric", tint))
        if rng.random() < 0.6:  # noqa: PLR2004
            parts.append(box(a + 0.08, a + 0.46, 0.26, 0.36, 0.44, 0.78, "fabric", palette.accent))
    return parts


def armchair(rng: np.random.Generator, palette: Palette) -> list[Part]:
    """A narrow sofa."""
    tint = palette.accent if rng.random() < 0.5 else palette.fabric  # noqa: PLR2004
    return [
        *_legs(0.4, 0.75, 0.15, 0.05, palette.dark_wood, 0.05),
        box(-0.4, 0.4, 0.05, 0.8, 0.15, 0.42, "fabric", tint),
        box(-0.4, 0.4, 0.05, 0.22, 0.42, 0.88, "fabric", tint),
        box(-0.4, -0.27, 0.22, 0.78, 0.42, 0.62, "fabric", tint),
        box(0.27, 0.4, 0.22, 0.78, 0.42, 0.62, "fabric", tint),
    ]


def coffee_table(rng: np.random.Generator, palette: Palette) -> list[Part]:
    """Low, with a bowl."""
    half, depth = rng.uniform(0.35, 0.55), rng.uniform(0.5, 0.65)
    return [
        *_legs(half, depth, 0.36, 0.05, palette.dark_wood),
        box(-half, half, 0, depth, 0.36, 0.41, "grain", palette.wood),
        box(-half + 0.05, half - 0.05, 0.05, depth - 0.05, 0.14, 0.17, "grain", palette.wood),
        box(-0.12, 0.12, 0.15, 0.39, 0.41, 0.48, "plain", palette.accent, is_round=True),
    ]


def chair(rng: np.random.Generator, palette: Palette) -> list[Part]:
    """With an open back."""
    seat = "fabric" if rng.random() < 0.5 else "grain"  # noqa: PLR2004
    tint = palette.accent if seat == "fabric" else palette.wood
    return [
        *_legs(0.21, 0.42, 0.43, 0.04, palette.dark_wood, 0.02),
        box(-0.21, 0.21, 0.02, 0.44, 0.43, 0.47, seat, tint),
        box(-0.2, -0.16, 0.02, 0.06, 0.47, 0.9, "grain", palette.dark_wood),
        box(0.16, 0.2, 0.02, 0.06, 0.47, 0.9, "grain", palette.dark_wood),
        box(-0.16, 0.16, 0.03, 0.05, 0.62, 0.9, seat, tint),
    ]


def dining_table(rng: np.random.Generator, palette: Palette) -> list[Part]:
    """With chairs on two sides."""
    half, depth = rng.uniform(0.5, 0.9), rng.uniform(0.75, 0.9)
    y = 0.42
    parts = [
        *_legs(half, depth, 0.7, 0.06, palette.wood, y),
        box(-half, half, y, y + depth, 0.7, 0.74, "grain", palette.wood),
        box(-half + 0.06, half - 0.06, y + 0.06, y + depth - 0.06, 0.62, 0.7, "grain", palette.wood),
        box(-0.1, 0.1, y + 0.3, y + 0.5, 0.74, 0.95, "plain", palette.accent, is_round=True),
    ]
    one = chair(rng, palette)
    for x in (-half / 2, half / 2):
        parts += [part.placed(x, 0.02, 0) for part in one]
        parts += [part.placed(x, 2 * y + depth - 0.02, 2) for part in one]
    return parts


def desk(rng: np.random.Generator, palette: Palette) -> list[Part]:
    """With drawers, a screen and a chair."""
    half = rng.uniform(0.55, 0.8)
    parts = [
        *_legs(half, 0.65, 0.7, 0.05, palette.dark_wood),
        box(-half, half, 0, 0.65, 0.7, 0.735, "grain", palette.wood),
        box(half - 0.45, half - 0.04, 0.03, 0.6, 0.1, 0.7, "grain", WHITE),
        box(-0.12, 0.12, 0.14, 0.34, 0.735, 0.75, "plain", DARK),
        box(-0.03, 0.03, 0.2, 0.24, 0.75, 0.9, "plain", DARK),
        box(-0.3, 0.3, 0.18, 0.22, 0.85, 1.2, "plain", DARK),
        box(-0.28, 0.28, 0.22, 0.225, 0.87, 1.18, "screen", (0.05, 0.07, 0.12), glow=0.3),
        box(-0.22, 0.22, 0.4, 0.54, 0.735, 0.75, "plain", METAL),
    ]
    return [*parts, *(part.placed(-0.15, 1.0, 2) for part in chair(rng, palette))]


def television(rng: np.random.Generator, palette: Palette) -> list[Part]:
    """On a low cabinet."""
    half = rng.uniform(0.6, 0.9)
    return [
        box(-half, half, 0, 0.4, 0.06, 0.48, "grain", palette.wood),
        *(
            box(x + 0.02, x + 2 * half / 3 - 0.02, 0.4, 0.41, 0.09, 0.45, "grain", palette.dark_wood)
            for x in np.linspace(-half, half, 4)[:-1]
        ),
        box(-0.15, 0.15, 0.12, 0.28, 0.48, 0.5, "plain", DARK),
        box(-0.55, 0.55, 0.17, 0.22, 0.53, 1.16, "plain", DARK),
        box(-0.53, 0.53, 0.22, 0.225, 0.55, 1.14, "screen", (0.03, 0.04, 0.05)),
    ]


def plant(rng: np.random.Generator, palette: Palette) -> list[Part]:
    """In a pot."""
    height = rng.uniform(0.7, 1.4)
    parts = [
        box(-0.16, 0.16, 0.06, 0.38, 0, 0.32, "plain", palette.accent, is_round=True),
        box(-0.02, 0.02, 0.2, 0.24, 0.32, height, "grain", palette.dark_wood),
    ]
    for _ in range(6):
        x, y, z = rng.uniform(-0.16, 0.16), 0.22 + rng.uniform(-0.14, 0.14), rng.uniform(0.45, height)
        r = rng.uniform(0.08, 0.17)
        parts.append(
            box(x - r, x + r, y - r, y + r, z - 0.6 * r, z + 0.8 * r, "leaves", (0.5, 0.5, 0.5), is_round=True)
        )
    return parts


def chest(rng: np.random.Generator, palette: Palette) -> list[Part]:
    """Drawers, with something on top."""
    half = rng.uniform(0.4, 0.7)
    tint = WHITE if rng.random() < 0.4 else palette.wood  # noqa: PLR2004
    parts = [box(-half, half, 0, 0.42, 0.06, 0.86, "grain", tint)]
    for z in (0.1, 0.36, 0.61):
        parts.append(box(-half + 0.02, half - 0.02, 0.42, 0.435, z, z + 0.22, "grain", tint))
        parts.append(box(-0.08, 0.08, 0.435, 0.455, z + 0.1, z + 0.12, "plain", METAL))
    return [*parts, box(-0.1, 0.12, 0.1, 0.32, 0.86, 1.1, "plain", palette.accent, is_round=True)]


def floor_lamp(rng: np.random.Generator, palette: Palette) -> list[Part]:
    """A shade on a pole."""
    return [
        box(-0.14, 0.14, 0.06, 0.34, 0, 0.03, "plain", DARK, is_round=True),
        box(-0.015, 0.015, 0.185, 0.215, 0.03, 1.4, "plain", DARK),
        box(-0.19, 0.19, 0.01, 0.39, 1.35, 1.65, "fabric", (0.9, 0.83, 0.68), is_round=True, glow=0.5),
    ]


def shoe_rack(rng: np.random.Generator, palette: Palette) -> list[Part]:
    """Shallow, for corridors."""
    half = rng.uniform(0.3, 0.5)
    return [
        box(-half, half, 0, 0.22, 0.03, 0.8, "grain", WHITE),
        box(-half + 0.02, half - 0.02, 0.22, 0.23, 0.08, 0.4, "grain", palette.wood),
        box(-half + 0.02, half - 0.02, 0.22, 0.23, 0.43, 0.76, "grain", palette.wood),
    ]
