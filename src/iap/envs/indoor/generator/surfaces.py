"""All surfaces of an apartment as rectangles: floors, ceilings, walls with openings, frames, skirting and furniture."""

from dataclasses import dataclass

import numpy as np

from iap.envs.indoor.generator.furnishing import Furnishing
from iap.envs.indoor.generator.layout import CORRIDOR, WALL_M, Layout, Opening
from iap.envs.indoor.generator.shapes import Colour, Part, Patch, Rect, box_patches

TRIM: Colour = (0.83, 0.82, 0.79)
TRIM_M, TRIM_DEPTH_M = 0.07, 0.018
SKIRTING_M, SKIRTING_DEPTH_M = 0.08, 0.014
RUG_M = 0.012
BOTTOM_BELOW_M = 2.0  # of parts below this and above the floor, the bottom can be seen
FLOORS = ("planks", "herringbone", "planks", "carpet", "planks")
WET_FLOORS = ("tiles", "chequered", "small tiles")


@dataclass(frozen=True)
class Style:
    """The finish of a room."""

    floor: str
    floor_tint: Colour
    wall: str
    wall_tint: Colour


@dataclass(frozen=True)
class Side:
    """A wall as seen from inside a room: from `start` along `along`, facing the room."""

    start: tuple[float, float]
    along: tuple[float, float]
    length: float


def draw_styles(rng: np.random.Generator, layout: Layout) -> list[Style]:
    """Random finishes: wood or carpet in dry rooms, tiles in wet ones; the same floor in several rooms."""
    main = str(rng.choice(FLOORS))
    tone = rng.uniform(0.6, 1.3)
    wood = _scaled((0.52, 0.37, 0.24), tone)
    styles = []
    for kind in layout.kinds:
        is_wet = kind in ("kitchen", "bathroom")
        floor = str(rng.choice(WET_FLOORS)) if is_wet else main if rng.random() < 0.7 else str(rng.choice(FLOORS))  # noqa: PLR2004
        if floor in ("planks", "herringbone"):
            tint = wood
        elif floor == "carpet":
            tint = _pastel(rng, 0.35, 0.12)
        else:
            tint = _pastel(rng, 0.6, 0.06)
        wall = "small tiles" if kind == "bathroom" else "stripes" if rng.random() < 0.2 else "plaster"  # noqa: PLR2004
        wall_tint = _pastel(rng, 0.74, 0.06 if rng.random() < 0.6 else 0.22)  # noqa: PLR2004
        styles.append(Style(floor, tint, wall, wall_tint))
    return styles


def _scaled(colour: Colour, by: float) -> Colour:
    return (colour[0] * by, colour[1] * by, colour[2] * by)


def _pastel(rng: np.random.Generator, value: float, saturation: float) -> Colour:
    hue = rng.uniform(0, 2 * np.pi)
    shift = 1 + saturation * np.cos(hue + np.array([0, 2.1, 4.2]))
    red, green, blue = (float(x) for x in np.clip(value * shift, 0.05, 0.86))
    return (red, green, blue)


def build_surfaces(
    rng: np.random.Generator, layout: Layout, styles: list[Style], furnishing: Furnishing
) -> tuple[list[Patch], list[tuple[int, Part]]]:
    """All rectangles, and all boxes that cast shadows with their rooms."""
    patches: list[Patch] = []
    solid: list[tuple[int, Part]] = [*layout.gates, *furnishing.parts]
    for number, style in enumerate(styles):
        inside = layout.inside(number)
        size = (inside.width, 0.0, 0.0), (0.0, inside.depth, 0.0)
        patches.append(Patch((inside.x0, inside.y0, 0.0), *size, "floor", number, style.floor, style.floor_tint))
        below = (inside.x0, inside.y1, layout.height)
        patches.append(Patch(below, size[0], (0.0, -inside.depth, 0.0), "ceiling", number, "plain", (0.8, 0.8, 0.79)))
        for side in _sides(inside):
            openings = [o for o in layout.openings(number) if _is_in(o, side)]
            patches += _wall(side, openings, number, style, layout.height)
            solid += [(number, part) for part in _skirting(side, openings)]
            solid += [(number, part) for o in openings for part in _trim(o, inside)]
            patches += [_pane(o, side, number) for o in openings if o.bottom > 0]
            patches += _picture(rng, side, openings, layout, number)
    for door in layout.doors:
        patches += _reveal(door)
    for number, part in solid:
        seen_below = 0.05 < part.low[2] < BOTTOM_BELOW_M  # noqa: PLR2004
        patches += box_patches(part, number, has_bottom=seen_below)
    for number, rug in furnishing.rugs:
        part = Part((rug.x0, rug.y0, 0.0), (rug.x1, rug.y1, RUG_M), "rug", _pastel(rng, 0.5, 0.2), kind="floor")
        patches += box_patches(part, number, has_bottom=False)
    return patches, solid


def _sides(inside: Rect) -> list[Side]:
    """The walls of a room, counter-clockwise, so that their surfaces face inwards when seen from the room."""
    x0, y0, x1, y1 = inside
    return [
        Side((x1, y0), (-1.0, 0.0), inside.width),
        Side((x1, y1), (0.0, -1.0), inside.depth),
        Side((x0, y1), (1.0, 0.0), inside.width),
        Side((x0, y0), (0.0, 1.0), inside.depth),
    ]


def _is_in(opening: Opening, side: Side) -> bool:
    along_x = side.along[0] != 0
    place = side.start[1] if along_x else side.start[0]
    return opening.along_x == along_x and abs(opening.at - place) < WALL_M


def _span(opening: Opening, side: Side) -> tuple[float, float]:
    """The ends of an opening along a side."""
    start = side.start[0] if side.along[0] else side.start[1]
    sign = side.along[0] + side.along[1]
    ends = sorted((sign * (opening.low - start), sign * (opening.high - start)))
    return ends[0], ends[1]


def _on(side: Side, a: float, b: float, z0: float, z1: float) -> tuple[tuple, tuple, tuple]:
    """Origin, u and v of a part of a side."""
    x, y = side.start[0] + a * side.along[0], side.start[1] + a * side.along[1]
    return (x, y, z0), ((b - a) * side.along[0], (b - a) * side.along[1], 0.0), (0.0, 0.0, z1 - z0)


def _wall(side: Side, openings: list[Opening], room: int, style: Style, height: float) -> list[Patch]:
    """The wall without its openings."""
    look = ("wall", room, style.wall, style.wall_tint)
    patches, done = [], 0.0
    for opening in sorted(openings, key=lambda o: _span(o, side)):
        a, b = _span(opening, side)
        patches.append(Patch(*_on(side, done, a, 0.0, height), *look))
        patches.append(Patch(*_on(side, a, b, opening.top, height), *look))
        if opening.bottom > 0:
            patches.append(Patch(*_on(side, a, b, 0.0, opening.bottom), *look))
        done = b
    return [*patches, Patch(*_on(side, done, side.length, 0.0, height), *look)]


def _pane(window: Opening, side: Side, room: int) -> Patch:
    """What a window shows."""
    place = _on(side, *_span(window, side), window.bottom, window.top)
    return Patch(*place, "wall", room, "view", (0.75, 0.75, 0.75), glow=1.6)


def _picture(rng: np.random.Generator, side: Side, openings: list[Opening], layout: Layout, room: int) -> list[Patch]:
    """A picture in a free part of a wall, perhaps."""
    width, height = rng.uniform(0.35, 0.9), rng.uniform(0.35, 0.7)
    at, z = rng.uniform(0.2, max(0.3, side.length - width - 0.2)), rng.uniform(1.15, 1.45)
    is_free = all(not (a - 0.15 < at + width and at < b + 0.15) for a, b in (_span(o, side) for o in openings))
    wanted = rng.random() < (0.4 if layout.kinds[room] != "bathroom" else 0.0)
    if not (is_free and wanted and at + width < side.length):
        return []
    inwards = (-side.along[1], side.along[0])
    moved = Side((side.start[0] - 0.02 * inwards[0], side.start[1] - 0.02 * inwards[1]), side.along, side.length)
    frame = Patch(
        *_on(moved, at - 0.03, at + width + 0.03, z - 0.03, z + height + 0.03), "wall", room, "grain", (0.1, 0.08, 0.06)
    )
    nearer = Side((side.start[0] - 0.024 * inwards[0], side.start[1] - 0.024 * inwards[1]), side.along, side.length)
    canvas = Patch(*_on(nearer, at, at + width, z, z + height), "wall", room, "art", (0.6, 0.6, 0.6))
    return [frame, canvas]


def _skirting(side: Side, openings: list[Opening]) -> list[Part]:
    """Boards along the bottom of a wall, between doors."""
    gaps = sorted(_span(o, side) for o in openings if o.bottom == 0)
    ends = [0.0, *(x for a, b in gaps for x in (a - TRIM_M, b + TRIM_M)), side.length]
    parts = []
    for a, b in zip(ends[::2], ends[1::2], strict=True):
        if b - a > 0.05:  # noqa: PLR2004
            parts.append(_board(side, a, b, 0.0, SKIRTING_M, SKIRTING_DEPTH_M, "wall"))
    return parts


def _board(side: Side, a: float, b: float, z0: float, z1: float, depth: float, kind: str) -> Part:
    """A thin box on a wall."""
    (x, y, _), (ux, uy, _), _ = _on(side, a, b, z0, z1)
    inwards = (side.along[1] * depth, -side.along[0] * depth)
    xs, ys = sorted((x, x + ux)), sorted((y, y + uy))
    low = (xs[0] + min(inwards[0], 0), ys[0] + min(inwards[1], 0), z0)
    high = (xs[1] + max(inwards[0], 0), ys[1] + max(inwards[1], 0), z1)
    return Part(low, high, "plain", TRIM, kind=kind)


def _trim(opening: Opening, inside: Rect) -> list[Part]:
    """The frame around an opening, on the side of one room."""
    side = next(s for s in _sides(inside) if _is_in(opening, s))
    a, b = _span(opening, side)
    kind = "door" if opening.bottom == 0 else "wall"
    bars = [(a - TRIM_M, a, opening.bottom, opening.top), (b, b + TRIM_M, opening.bottom, opening.top)]
    bars.append((a - TRIM_M, b + TRIM_M, opening.top, opening.top + TRIM_M))
    if opening.bottom > 0:
        middle = (a + b) / 2
        bars.append((middle - 0.025, middle + 0.025, opening.bottom, opening.top))
        sill = _board(side, a - 0.1, b + 0.1, opening.bottom - 0.05, opening.bottom, 0.08, kind)
        return [*(_board(side, *bar, TRIM_DEPTH_M, kind) for bar in bars), sill]
    return [_board(side, *bar, TRIM_DEPTH_M, kind) for bar in bars]


def _reveal(door: Opening) -> list[Patch]:
    """The inside of a doorway: jambs, lintel and threshold."""
    foot, top, room = door.footprint, door.top, door.rooms[0]
    trim = ("door", room, "plain", TRIM)
    w, d = foot.width, foot.depth
    patches = [
        Patch((foot.x0, foot.y0, 0.0), (w, 0.0, 0.0), (0.0, d, 0.0), "floor", room, "grain", (0.4, 0.3, 0.2)),
        Patch((foot.x0, foot.y1, top), (w, 0.0, 0.0), (0.0, -d, 0.0), *trim),
    ]
    if door.along_x:
        return [
            *patches,
            Patch((foot.x0, foot.y0, 0.0), (0.0, d, 0.0), (0.0, 0.0, top), *trim),
            Patch((foot.x1, foot.y1, 0.0), (0.0, -d, 0.0), (0.0, 0.0, top), *trim),
        ]
    return [
        *patches,
        Patch((foot.x1, foot.y0, 0.0), (-w, 0.0, 0.0), (0.0, 0.0, top), *trim),
        Patch((foot.x0, foot.y1, 0.0), (w, 0.0, 0.0), (0.0, 0.0, top), *trim),
    ]


def lamps(layout: Layout, room: int) -> list[tuple[float, float]]:
    """The positions of a room's ceiling lamps."""
    inside = layout.inside(room)
    count = max(1, round(max(inside.width, inside.depth) / (3.0 if layout.kinds[room] == CORRIDOR else 4.0)))
    along_x = inside.width > inside.depth
    shares = (np.arange(count) + 0.5) / count
    middle = (inside.x0 + inside.x1) / 2, (inside.y0 + inside.y1) / 2
    if along_x:
        return [(float(inside.x0 + s * inside.width), middle[1]) for s in shares]
    return [(middle[0], float(inside.y0 + s * inside.depth)) for s in shares]
