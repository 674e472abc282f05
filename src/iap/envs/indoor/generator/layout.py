"""The plan of an apartment: rooms between walls, doors that connect all of them, windows, and gates within rooms."""

from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from iap.envs.indoor.generator.shapes import Part, Rect

WALL_M = 0.12
DOOR_HEIGHT_M = 2.05
CORNER_M = 0.2  # from an opening to the end of its wall
LEAST_SIDE_M = 2.4  # of a room
NARROWEST_M, WIDEST_GATE_M = 0.62, 0.75  # of a gate
LARGEST_ROOM_M2 = 17.0
GATE_ROOM_M = 3.7  # length of a room that may be divided by a gate
CORRIDOR = "corridor"
ROOM_KINDS = ("living room", "kitchen", "bedroom", "bathroom", "bedroom", "study", "dining room", "bedroom")


@dataclass(frozen=True)
class Opening:
    """A door or window in a wall.

    Attributes:
        rooms: the numbers of the rooms on both sides, one for a window.
        along_x: whether the wall runs along x.
        at: y of the wall's middle if it runs along x, else x.
        low, high: its ends along the wall.
        bottom, top: its ends in height.
    """

    rooms: tuple[int, ...]
    along_x: bool
    at: float
    low: float
    high: float
    bottom: float
    top: float

    @property
    def footprint(self) -> Rect:
        """The floor inside the wall."""
        near, far = self.at - WALL_M / 2, self.at + WALL_M / 2
        return Rect(self.low, near, self.high, far) if self.along_x else Rect(near, self.low, far, self.high)

    def zone(self, depth: float, beside: float = 0.1) -> Rect:
        """The floor in front of it on both sides."""
        low, high = self.low - beside, self.high + beside
        if self.along_x:
            return Rect(low, self.at - depth, high, self.at + depth)
        return Rect(self.at - depth, low, self.at + depth, high)


@dataclass(eq=False)
class Layout:
    """A plan.

    Attributes:
        size: extent along x and y; the centre is the origin.
        height: of the ceiling.
        rooms: their rectangles, between the middles of walls.
        kinds: what each room is for.
        doors, windows: in their walls.
        gates: walls within rooms that leave a gap, with the room's number.
    """

    size: tuple[float, float]
    height: float
    rooms: list[Rect]
    kinds: list[str]
    doors: list[Opening] = field(default_factory=list)
    windows: list[Opening] = field(default_factory=list)
    gates: list[tuple[int, Part]] = field(default_factory=list)

    def inside(self, room: int) -> Rect:
        """A room between the surfaces of its walls."""
        return self.rooms[room].grown(-WALL_M / 2)

    def openings(self, room: int) -> list[Opening]:
        """The doors and windows of a room."""
        return [opening for opening in (*self.doors, *self.windows) if room in opening.rooms]


def draw_layout(rng: np.random.Generator) -> Layout:
    """A random plan."""
    width, depth = rng.uniform(8.5, 12.5), rng.uniform(7.0, 10.0)
    whole = Rect(-width / 2, -depth / 2, width / 2, depth / 2)
    rooms, kinds = _with_corridor(rng, whole) if rng.random() < 0.6 else (_divide(rng, whole), [])  # noqa: PLR2004
    if rng.random() < 0.5:  # noqa: PLR2004
        rooms = [Rect(room.y0, room.x0, room.y1, room.x1) for room in rooms]
        width, depth = depth, width
    order = [int(i) for i in np.argsort([-room.area for room in rooms])]
    names = iter([*ROOM_KINDS[:1], *rng.permutation(ROOM_KINDS[1:]), *ROOM_KINDS])
    named = {i: kinds[i] if i < len(kinds) and kinds[i] else next(names) for i in order}
    layout = Layout((width, depth), rng.uniform(2.4, 2.75), rooms, [named[i] for i in range(len(rooms))])
    _add_doors(rng, layout)
    _add_windows(rng, layout)
    _add_gates(rng, layout)
    return layout


def _with_corridor(rng: np.random.Generator, whole: Rect) -> tuple[list[Rect], list[str]]:
    """A corridor along x with rooms on both sides."""
    width = rng.uniform(1.15, 1.7)
    low = whole.y0 + rng.uniform(0.38, 0.62) * (whole.depth - width)
    rooms, kinds = [Rect(whole.x0, low, whole.x1, low + width)], [CORRIDOR]
    for y0, y1 in ((whole.y0, low), (low + width, whole.y1)):
        count = int(rng.integers(2, min(4, int(whole.width / 2.6)) + 1))
        shares = rng.uniform(0.7, 1.3, count)
        edges = whole.x0 + np.concatenate([[0], np.cumsum(shares / shares.sum())]) * whole.width
        rooms += [Rect(float(a), y0, float(b), y1) for a, b in pairwise(edges)]
    return rooms, kinds + [""] * (len(rooms) - 1)


def _divide(rng: np.random.Generator, room: Rect) -> list[Rect]:
    """Recursive division into rooms."""
    is_wide = room.width > room.depth
    length = room.width if is_wide else room.depth
    small_enough = room.area < rng.uniform(0.6, 1.0) * LARGEST_ROOM_M2
    if length < 2 * LEAST_SIDE_M or small_enough:
        return [room]
    cut = (room.x0 if is_wide else room.y0) + rng.uniform(LEAST_SIDE_M, length - LEAST_SIDE_M)
    if is_wide:
        halves = room._replace(x1=cut), room._replace(x0=cut)
    else:
        halves = room._replace(y1=cut), room._replace(y0=cut)
    return [part for half in halves for part in _divide(rng, half)]


def _add_doors(rng: np.random.Generator, layout: Layout) -> None:
    """Doors along a random spanning tree, and a few more."""
    walls = _shared_walls(layout.rooms)
    corridors = {i for i, kind in enumerate(layout.kinds) if kind == CORRIDOR}
    order = sorted(range(len(walls)), key=lambda i: (not corridors & set(walls[i][0]), rng.random()))
    group = list(range(len(layout.rooms)))
    for i in order:
        (a, b), along_x, at, low, high = walls[i]
        is_new = group[a] != group[b]
        if not is_new and rng.random() > 0.3:  # noqa: PLR2004
            continue
        group = [group[a] if g == group[b] else g for g in group]
        layout.doors.append(_door(rng, (a, b), along_x, at, low, high))


def _door(
    rng: np.random.Generator, rooms: tuple[int, int], along_x: bool, at: float, low: float, high: float
) -> Opening:
    """A door, a narrow gate or a wide passage in a wall."""
    longest = high - low - 2 * CORNER_M
    kind = rng.random()
    top = DOOR_HEIGHT_M
    if kind < 0.3:  # noqa: PLR2004
        width = rng.uniform(NARROWEST_M, WIDEST_GATE_M)
    elif kind < 0.8 or longest < 1.3:  # noqa: PLR2004
        width = rng.uniform(0.8, 0.95)
    else:
        width, top = rng.uniform(1.2, min(1.9, longest)), 2.25
    start = rng.uniform(low + CORNER_M, high - CORNER_M - width)
    return Opening(rooms, along_x, at, start, start + width, 0.0, top)


def _shared_walls(rooms: list[Rect]) -> list[tuple[tuple[int, int], bool, float, float, float]]:
    """Pairs of rooms with a wall between them that is long enough for a door: rooms, direction, place, ends."""
    walls = []
    for a, one in enumerate(rooms):
        for b, other in enumerate(rooms):
            for along_x, at, facing, low, high in (
                (True, one.y1, other.y0, max(one.x0, other.x0), min(one.x1, other.x1)),
                (False, one.x1, other.x0, max(one.y0, other.y0), min(one.y1, other.y1)),
            ):
                if abs(at - facing) < 1e-9 and high - low > 0.95 + 2 * CORNER_M:  # noqa: PLR2004
                    walls.append(((a, b), along_x, at, low, high))
    return walls


def _add_windows(rng: np.random.Generator, layout: Layout) -> None:
    """Windows in outer walls."""
    half_x, half_y = layout.size[0] / 2, layout.size[1] / 2
    for number, room in enumerate(layout.rooms):
        for along_x, at, outer, low, high in (
            (True, room.y0, -half_y, room.x0, room.x1),
            (True, room.y1, half_y, room.x0, room.x1),
            (False, room.x0, -half_x, room.y0, room.y1),
            (False, room.x1, half_x, room.y0, room.y1),
        ):
            longest = high - low - 0.8
            if abs(at - outer) > 1e-9 or longest < 0.7 or rng.random() > 0.75:  # noqa: PLR2004
                continue
            width = rng.uniform(0.7, min(2.0, longest))
            start = rng.uniform(low + 0.4, high - 0.4 - width)
            bottom = 0.9 if layout.kinds[number] in ("kitchen", "bathroom") else rng.uniform(0.4, 0.9)
            layout.windows.append(Opening((number,), along_x, at, start, start + width, bottom, 2.1))


def _add_gates(rng: np.random.Generator, layout: Layout) -> None:
    """Walls across long rooms with a narrow gap, where they are clear of doors."""
    for number, kind in enumerate(layout.kinds):
        inside = layout.inside(number)
        along_x = inside.width < inside.depth  # the wall crosses the longer side
        length = max(inside.width, inside.depth)
        if kind in (CORRIDOR, "bathroom") or length < GATE_ROOM_M or rng.random() > 0.45:  # noqa: PLR2004
            continue
        start = (inside.y0 if along_x else inside.x0) + rng.uniform(0.4, 0.6) * length
        low, high = (inside.x0, inside.x1) if along_x else (inside.y0, inside.y1)
        gap = rng.uniform(NARROWEST_M, WIDEST_GATE_M)
        gap_low = rng.choice([low + 0.35, rng.uniform(low + 0.35, high - 0.35 - gap), high - 0.35 - gap])
        top = layout.height if rng.random() < 0.5 else rng.uniform(0.8, 1.3)  # noqa: PLR2004
        pieces = []
        for a, b in ((low, gap_low), (gap_low + gap, high)):
            lower = (a, start, 0.0) if along_x else (start, a, 0.0)
            upper = (b, start + 0.1, top) if along_x else (start + 0.1, b, top)
            pieces.append(Part(lower, upper, "plaster", (0.8, 0.78, 0.74), kind="wall"))
        crossing = (
            Rect(inside.x0, start, inside.x1, start + 0.1)
            if along_x
            else Rect(start, inside.y0, start + 0.1, inside.y1)
        )
        if not any(opening.zone(0.7, 0.3).meets(crossing) for opening in layout.openings(number)):
            layout.gates += [(number, piece) for piece in pieces]
