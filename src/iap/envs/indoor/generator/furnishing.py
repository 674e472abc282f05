"""Where furniture stands: along walls or free, clear of doors, and such that a robot still reaches every place."""

from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Bool

from iap.envs.indoor.generator import fixtures
from iap.envs.indoor.generator import furniture as make
from iap.envs.indoor.generator.furniture import Maker, Palette
from iap.envs.indoor.generator.layout import CORRIDOR, WALL_M, Layout, Opening
from iap.envs.indoor.generator.shapes import Part, Rect
from iap.envs.indoor.grids import clearance_m, connected_parts

TRIES = 8
DOOR_ZONE_M = 0.75
LOW_M = 0.8  # parts that begin above this do not block a robot
PASSAGE_M = 0.28  # from obstacles to the middle of a robot, on a grid of 5 cm
GRID_M = 0.05
MOST_LOST = 0.02  # share of the free floor that a piece may cut off
LEAF_M = 0.04
KEEP = 0.85  # probability of each piece

Wanted = tuple[Maker, bool]  # and whether it stands at a wall

SETS: dict[str, tuple[Wanted, ...]] = {
    "living room": (
        (make.sofa, True), (make.television, True), (make.coffee_table, False), (make.bookcase, True),
        (make.armchair, True), (make.plant, True), (make.floor_lamp, True), (make.chest, True), (make.armchair, True),
    ),
    "kitchen": (
        (fixtures.kitchen_counter, True), (fixtures.fridge, True), (make.dining_table, False),
        (fixtures.kitchen_counter, True), (make.chest, True), (make.plant, True),
    ),
    "bedroom": (
        (make.bed, True), (make.nightstand, True), (make.wardrobe, True), (make.chest, True), (make.desk, True),
        (make.plant, True), (make.armchair, True),
    ),
    "bathroom": ((fixtures.bathtub, True), (fixtures.toilet, True), (fixtures.washbasin, True), (make.shoe_rack, True)),
    "study": (
        (make.desk, True), (make.bookcase, True), (make.bookcase, True), (make.armchair, True), (make.plant, True),
        (make.floor_lamp, True),
    ),
    "dining room": (
        (make.dining_table, False), (make.chest, True), (make.bookcase, True), (make.plant, True),
        (make.floor_lamp, True),
    ),
    CORRIDOR: ((make.shoe_rack, True), (make.plant, True), (make.shoe_rack, True)),
}  # fmt: skip


@dataclass(eq=False)
class Furnishing:
    """What stands in the rooms.

    Attributes:
        parts: with the number of their room.
        rugs: on the floor, with room and pattern tint.
    """

    parts: list[tuple[int, Part]] = field(default_factory=list)
    rugs: list[tuple[int, Rect]] = field(default_factory=list)


class FreeFloor:
    """The free floor of an apartment on a grid, to which obstacles are added."""

    def __init__(self, layout: Layout) -> None:
        self._low = -layout.size[0] / 2 - 0.5, -layout.size[1] / 2 - 0.5
        shape = (round((layout.size[1] + 1) / GRID_M), round((layout.size[0] + 1) / GRID_M))
        self.free = np.zeros(shape, bool)
        for number in range(len(layout.rooms)):
            self.free[self._cells(layout.inside(number))] = True
        for door in layout.doors:
            self.free[self._cells(door.footprint.grown(GRID_M / 2))] = True
        for _, gate in layout.gates:
            self.free[self._cells(gate.footprint)] = False
        self._cut_off = self._unreachable(self.free)

    def place(self, footprints: list[Rect]) -> bool:
        """Add obstacles, unless they would cut off a part of the floor."""
        free = self.free.copy()
        for footprint in footprints:
            free[self._cells(footprint.grown(GRID_M / 4))] = False
        cut_off = self._unreachable(free)
        if cut_off > self._cut_off + MOST_LOST * free.sum() / 10:
            return False
        self.free, self._cut_off = free, cut_off
        return True

    def _cells(self, rect: Rect) -> tuple[slice, slice]:
        rows = (round((y - self._low[1]) / GRID_M) for y in (rect.y0, rect.y1))
        columns = (round((x - self._low[0]) / GRID_M) for x in (rect.x0, rect.x1))
        return slice(*rows), slice(*columns)

    def _unreachable(self, free: Bool[np.ndarray, "H W"]) -> int:
        """The cells that a robot fits in but does not reach from most of the floor."""
        _, sizes = connected_parts(clearance_m(free, GRID_M) >= PASSAGE_M - GRID_M)
        return int(sizes[1:].sum() - sizes[1:].max(initial=0))


def furnish(rng: np.random.Generator, layout: Layout, palette: Palette) -> Furnishing:
    """Random furniture for every room."""
    done, floor = Furnishing(), FreeFloor(layout)
    for door in layout.doors:
        _add_leaf(rng, layout, door, done, floor)
    for number, kind in enumerate(layout.kinds):
        taken = [part.footprint for room, part in (*layout.gates, *done.parts) if room == number]
        for maker, is_at_wall in SETS[kind]:
            if rng.random() < KEEP:
                _try_to_place(rng, layout, number, maker(rng, palette), is_at_wall, taken, done, floor)
        inside = layout.inside(number)
        if kind in ("living room", "bedroom", "study", "dining room") and rng.random() < 0.7:  # noqa: PLR2004
            done.rugs.append((number, _middle_part(rng, inside)))
    return done


def _middle_part(rng: np.random.Generator, room: Rect) -> Rect:
    width, depth = rng.uniform(0.4, 0.6) * room.width, rng.uniform(0.4, 0.6) * room.depth
    x, y = (room.x0 + room.x1) / 2, (room.y0 + room.y1) / 2
    return Rect(x - width / 2, y - depth / 2, x + width / 2, y + depth / 2)


def _add_leaf(rng: np.random.Generator, layout: Layout, door: Opening, done: Furnishing, floor: FreeFloor) -> None:
    """An open door, at a right angle to its wall."""
    width = door.high - door.low
    if width > 1.0 or rng.random() < 0.4:  # noqa: PLR2004
        return
    side, hinge = rng.choice([-1, 1]), door.low - LEAF_M if rng.random() < 0.5 else door.high  # noqa: PLR2004
    near, far = door.at + side * WALL_M / 2, door.at + side * (WALL_M / 2 + width - 0.03)
    near, far = min(near, far), max(near, far)
    rect = Rect(hinge, near, hinge + LEAF_M, far) if door.along_x else Rect(near, hinge, far, hinge + LEAF_M)
    part = Part((rect.x0, rect.y0, 0.01), (rect.x1, rect.y1, door.top - 0.03), "grain", (0.75, 0.73, 0.68), kind="door")
    room = next((i for i in door.rooms if layout.rooms[i].holds(rect)), None)
    blocked = any(other is not door and other.zone(0.6, 0.05).meets(rect) for other in layout.doors)
    if room is None or blocked or any(rect.meets(gate.footprint) for _, gate in layout.gates):
        return
    if floor.place([rect]):
        done.parts.append((room, part))


def _try_to_place(
    rng: np.random.Generator,
    layout: Layout,
    number: int,
    piece: list[Part],
    is_at_wall: bool,
    taken: list[Rect],
    done: Furnishing,
    floor: FreeFloor,
) -> None:
    """Place a piece at the first of a few random places where it fits."""
    inside = layout.inside(number)
    low, high = (np.array([getattr(part, name) for part in piece]) for name in ("low", "high"))
    half, depth, height = float(high[:, 0].max()), float(high[:, 1].max()), float(high[:, 2].max())
    half = max(half, -float(low[:, 0].min()))
    for _ in range(TRIES):
        turns = int(rng.integers(4))
        across, along = (inside.width, inside.depth) if turns % 2 == 0 else (inside.depth, inside.width)
        if 2 * half > across or depth > along:
            continue
        slide = rng.uniform(half, across - half) if across > 2 * half else half
        if is_at_wall and rng.random() < 0.4:  # noqa: PLR2004
            slide = float(rng.choice([half + 0.01, across - half - 0.01]))  # in a corner
        away = 0.005 if is_at_wall else rng.uniform(0, along - depth)
        x, y = _anchor(inside, turns, slide, away)
        placed = [part.placed(x, y, turns) for part in piece]
        rect = _outline(placed)
        if not inside.holds(rect) or any(rect.grown(0.01).meets(other) for other in taken):
            continue
        if not _is_clear(layout, number, rect, height, needs_wall=is_at_wall):
            continue
        if floor.place([part.footprint for part in placed if part.low[2] < LOW_M]):
            done.parts += [(number, part) for part in placed]
            taken.append(rect)
            return


def _anchor(inside: Rect, turns: int, slide: float, away: float) -> tuple[float, float]:
    """The position of a piece's origin, `slide` along the wall that its back faces and `away` from it."""
    return (
        (inside.x0 + slide, inside.y0 + away),
        (inside.x1 - away, inside.y0 + slide),
        (inside.x1 - slide, inside.y1 - away),
        (inside.x0 + away, inside.y1 - slide),
    )[turns]


def _outline(parts: list[Part]) -> Rect:
    rects = np.array([part.footprint for part in parts])
    return Rect(*(float(a) for a in (*rects[:, :2].min(axis=0), *rects[:, 2:].max(axis=0))))


def _is_clear(layout: Layout, number: int, rect: Rect, height: float, *, needs_wall: bool) -> bool:
    """Whether a piece is out of the way of doors, and not in front of a window if it is tall."""
    for opening in layout.openings(number):
        if opening.bottom == 0:
            if opening.zone(DOOR_ZONE_M).meets(rect):
                return False
        elif needs_wall and height > opening.bottom and opening.zone(0.3, 0).meets(rect):
            return False
    return True
