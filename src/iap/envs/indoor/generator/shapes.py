"""Axis-aligned boxes and rectangles: what an apartment consists of."""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

Colour = tuple[float, float, float]  # reflectances
Vector = tuple[float, float, float]

SQUARE = ((0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0))


class Rect(NamedTuple):
    """A rectangle on the floor."""

    x0: float
    y0: float
    x1: float
    y1: float

    @property
    def width(self) -> float:
        """Extent along x."""
        return self.x1 - self.x0

    @property
    def depth(self) -> float:
        """Extent along y."""
        return self.y1 - self.y0

    @property
    def area(self) -> float:
        """In m²."""
        return self.width * self.depth

    def grown(self, by: float) -> "Rect":
        """The rectangle with all sides moved outwards."""
        return Rect(self.x0 - by, self.y0 - by, self.x1 + by, self.y1 + by)

    def meets(self, other: "Rect") -> bool:
        """Whether the interiors intersect."""
        return self.x0 < other.x1 and other.x0 < self.x1 and self.y0 < other.y1 and other.y0 < self.y1

    def holds(self, other: "Rect") -> bool:
        """Whether another one is inside."""
        return self.x0 <= other.x0 and self.y0 <= other.y0 and other.x1 <= self.x1 and other.y1 <= self.y1


@dataclass(frozen=True)
class Part:
    """A box, or a prism of eight sides in a box.

    Attributes:
        low, high: its corners.
        pattern: the name of its pattern, see `materials`.
        tint: multiplied with the pattern.
        kind: the class of what it belongs to: "furniture", "door", "wall".
        is_round: whether it is a prism.
        glow: light that it emits.
    """

    low: Vector
    high: Vector
    pattern: str = "plain"
    tint: Colour = (0.7, 0.7, 0.7)
    kind: str = "furniture"
    is_round: bool = False
    glow: float = 0.0

    @property
    def footprint(self) -> Rect:
        """Its outline on the floor."""
        return Rect(self.low[0], self.low[1], self.high[0], self.high[1])

    def placed(self, x: float, y: float, quarter_turns: int) -> "Part":
        """Rotated about the z axis, then moved."""
        low, high = np.array(self.low), np.array(self.high)
        for _ in range(quarter_turns % 4):
            low, high = np.array((-high[1], low[0], low[2])), np.array((-low[1], high[0], high[2]))
        move = np.array((x, y, 0.0))
        lower, upper = ((corner + move).tolist() for corner in (low, high))
        return replace(self, low=tuple(lower), high=tuple(upper))


@dataclass(frozen=True)
class Patch:
    """A rectangle in space with one texture: points are origin + s·u + t·v, and it faces along u × v.

    Attributes:
        origin, u, v: as above, in metres.
        kind: the class of what it belongs to.
        room: the number of the room whose light it gets.
        pattern, tint: its material.
        outline: the polygon of the part that exists, as (s, t) in counter-clockwise order.
        glow: light that it emits.
    """

    origin: Vector
    u: Vector
    v: Vector
    kind: str
    room: int
    pattern: str
    tint: Colour
    outline: tuple[tuple[float, float], ...] = SQUARE
    glow: float = 0.0


def box_patches(part: Part, room: int, *, has_bottom: bool) -> list[Patch]:
    """The outside of a box or prism; the bottom only if it can be seen."""
    (x0, y0, z0), (x1, y1, z1) = part.low, part.high
    w, d, h = x1 - x0, y1 - y0, z1 - z0
    look = {"kind": part.kind, "room": room, "pattern": part.pattern, "tint": part.tint, "glow": part.glow}
    ring = _octagon() if part.is_round else SQUARE
    faces = [Patch((x0, y0, z1), (w, 0, 0), (0, d, 0), outline=ring, **look)]
    if has_bottom:
        flipped = tuple((s, 1 - t) for s, t in reversed(ring))
        faces.append(Patch((x0, y1, z0), (w, 0, 0), (0, -d, 0), outline=flipped, **look))
    if part.is_round:
        points = [(x0 + s * w, y0 + t * d) for s, t in ring]
        for (ax, ay), (bx, by) in zip(points, points[1:] + points[:1], strict=True):
            faces.append(Patch((ax, ay, z0), (bx - ax, by - ay, 0), (0, 0, h), **look))
        return faces
    return [
        *faces,
        Patch((x0, y0, z0), (w, 0, 0), (0, 0, h), **look),
        Patch((x1, y0, z0), (0, d, 0), (0, 0, h), **look),
        Patch((x1, y1, z0), (-w, 0, 0), (0, 0, h), **look),
        Patch((x0, y1, z0), (0, -d, 0), (0, 0, h), **look),
    ]


def _octagon() -> tuple[tuple[float, float], ...]:
    angles = (np.arange(8) + 0.5) * np.pi / 4
    return tuple((float(0.5 + 0.5 * np.cos(a)), float(0.5 + 0.5 * np.sin(a))) for a in angles)
