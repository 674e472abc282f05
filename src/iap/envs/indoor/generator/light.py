"""Light on the surfaces: lamps, windows as areas, sun, and ambient light that corners and furniture occlude.

Light is computed on a coarse grid of each rectangle, and interpolated. Shadows are cast by the boxes of a room. Light
does not pass through doors.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Float32, Int

from iap._compile import compiled
from iap.envs.indoor.generator.layout import Layout
from iap.envs.indoor.generator.shapes import Part, Patch
from iap.envs.indoor.generator.surfaces import lamps

POINT_M = 0.11  # between the points of the grid
AMBIENT_RAYS = 14
REACH_M = 0.9  # of the occlusion of ambient light
FARTHEST_PANE_M = 30.0
PARALLEL = 1e-9  # a direction with less along an axis is parallel to its planes
OFFSET_M = 0.004  # from a surface to the point whose light is computed


class Lights(NamedTuple):
    """Everything that lights rooms, as arrays with the rows of room i in [starts[i], starts[i + 1]).

    Attributes:
        rooms: low and high corner of each room.
        boxes, box_starts: what casts shadows.
        sources, source_starts: position, normal, and colour times strength of small areas.
        ambient: of each room.
        sun: direction to the sun, and its colour times strength; zero without sun.
        panes, pane_starts: low and high corners of the windows.
    """

    rooms: Float[np.ndarray, "rooms 6"]
    boxes: Float[np.ndarray, "b 6"]
    box_starts: Int[np.ndarray, " rooms+1"]
    sources: Float[np.ndarray, "s 9"]
    source_starts: Int[np.ndarray, " rooms+1"]
    ambient: Float[np.ndarray, "rooms 3"]
    sun: Float[np.ndarray, " 6"]
    panes: Float[np.ndarray, "p 6"]
    pane_starts: Int[np.ndarray, " rooms+1"]


def draw_lights(rng: np.random.Generator, layout: Layout, solid: list[tuple[int, Part]]) -> Lights:
    """Random lamps, daylight and sun."""
    count = len(layout.rooms)
    boxes: list[list] = [[] for _ in range(count)]
    for room, part in solid:
        boxes[room].append((*part.low, *part.high))
    daylight, sources, panes = rng.uniform(0.5, 1.3), [[] for _ in range(count)], [[] for _ in range(count)]
    ambient = np.zeros((count, 3))
    for room in range(count):
        warm = np.array([1.0, rng.uniform(0.82, 0.95), rng.uniform(0.6, 0.85)])
        power = rng.uniform(1.2, 2.6)
        sources[room] = _lamp_sources(layout, room, power * warm)
        windows = [window for window in layout.windows if room in window.rooms]
        for window in windows:
            pane, around = _window_sources(layout, room, window, daylight * np.array([0.9, 0.97, 1.1]))
            sources[room] += around
            panes[room].append(pane)
        base = 0.16 + 0.05 * power + 0.1 * daylight * min(len(windows), 3)
        ambient[room] = base * (0.5 * warm + 0.5)
    azimuth, height = rng.uniform(0, 2 * np.pi), rng.uniform(0.45, 0.9)
    direction = np.array([np.cos(azimuth), np.sin(azimuth), np.tan(height)])
    strength = 1.6 if rng.random() < 0.5 else 0.0  # noqa: PLR2004
    sun = np.concatenate([direction / np.linalg.norm(direction), strength * np.array([1.0, 0.93, 0.8])])
    rooms = np.array([(*_low(layout, i), *_high(layout, i)) for i in range(count)])
    return Lights(rooms, *_stacked(boxes, 6), *_stacked(sources, 9), ambient, sun, *_stacked(panes, 6))


def _low(layout: Layout, room: int) -> tuple[float, float, float]:
    return layout.inside(room).x0, layout.inside(room).y0, 0.0


def _high(layout: Layout, room: int) -> tuple[float, float, float]:
    return layout.inside(room).x1, layout.inside(room).y1, layout.height


def _stacked(rows: list[list], width: int) -> tuple[np.ndarray, np.ndarray]:
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    flat = [entry for row in rows for entry in row]
    return np.array(flat, np.float64).reshape(-1, width), starts


def _lamp_sources(layout: Layout, room: int, power: np.ndarray) -> list[tuple[float, ...]]:
    """Four points below the ceiling for each lamp."""
    places = lamps(layout, room)
    return [
        (x + dx, y + dy, layout.height - 0.12, 0.0, 0.0, -1.0, *(power / 4))
        for x, y in places
        for dx, dy in ((-0.15, -0.1), (0.15, -0.05), (-0.1, 0.15), (0.12, 0.13))
    ]


def _window_sources(layout: Layout, room: int, window, colour: np.ndarray) -> tuple[tuple, list[tuple[float, ...]]]:
    """The pane as a box, and points on it."""
    inside = layout.inside(room)
    if window.along_x:
        sign = 1.0 if abs(window.at - inside.y0) < abs(window.at - inside.y1) else -1.0
        at, normal = (inside.y0 if sign > 0 else inside.y1), (0.0, sign, 0.0)
    else:
        sign = 1.0 if abs(window.at - inside.x0) < abs(window.at - inside.x1) else -1.0
        at, normal = (inside.x0 if sign > 0 else inside.x1), (sign, 0.0, 0.0)
    area = (window.high - window.low) * (window.top - window.bottom)
    points = []
    for s in (1 / 6, 0.5, 5 / 6):
        for t in (0.25, 0.75):
            along = window.low + s * (window.high - window.low)
            z = window.bottom + t * (window.top - window.bottom)
            place = (along, at + 0.05 * sign) if window.along_x else (at + 0.05 * sign, along)
            points.append((*place, z, *normal, *(colour * area / 6)))
    low, high = (window.low, at - 0.05), (window.high, at + 0.05)
    if not window.along_x:
        low, high = low[::-1], high[::-1]
    return (*low, window.bottom, *high, window.top), points


class Grids(NamedTuple):
    """The light of all rectangles: that of rectangle i is values[starts[i]:][: rows[i] · columns[i]]."""

    starts: Int[np.ndarray, " n"]
    rows: Int[np.ndarray, " n"]
    columns: Int[np.ndarray, " n"]
    values: Float32[np.ndarray, "points 3"]


def light_patches(patches: list[Patch], lights: Lights) -> Grids:
    """The light on each rectangle."""
    origin, u, v = (np.array([getattr(patch, name) for patch in patches], float) for name in ("origin", "u", "v"))
    room = np.array([patch.room for patch in patches])
    glow = np.array([patch.glow for patch in patches], float)
    columns = np.clip(np.ceil(np.linalg.norm(u, axis=1) / POINT_M).astype(np.int64) + 1, 2, None)
    rows = np.clip(np.ceil(np.linalg.norm(v, axis=1) / POINT_M).astype(np.int64) + 1, 2, None)
    starts = np.concatenate([[0], np.cumsum(rows * columns)])
    values = np.zeros((int(starts[-1]), 3), np.float32)
    _light_all(origin, u, v, room, glow, rows, columns, starts, values, lights, _hemisphere(AMBIENT_RAYS))
    return Grids(starts[:-1], rows, columns, values)


def _hemisphere(count: int) -> Float[np.ndarray, "n 3"]:
    """Directions about z, in proportion to their cosine, on a spiral."""
    i = np.arange(count) + 0.5
    radius, angle = np.sqrt(i / count), i * np.pi * (3 - np.sqrt(5))
    return np.stack([radius * np.cos(angle), radius * np.sin(angle), np.sqrt(1 - radius**2)], axis=1)


@compiled
def _light_all(origin, u, v, room, glow, rows, columns, starts, values, lights, rays):
    for i in range(len(origin)):
        normal = np.cross(u[i], v[i])
        normal /= np.sqrt(np.sum(normal * normal))
        tangent = u[i] / np.sqrt(np.sum(u[i] * u[i]))
        side = np.cross(normal, tangent)
        first = starts[i]
        for row in range(rows[i]):
            t = min(max(row / (rows[i] - 1.0), 0.02), 0.98)
            for column in range(columns[i]):
                s = min(max(column / (columns[i] - 1.0), 0.02), 0.98)
                point = origin[i] + s * u[i] + t * v[i] + OFFSET_M * normal
                value = values[first + row * columns[i] + column]
                _light_point(point, normal, tangent, side, room[i], lights, rays, value)
                for k in range(3):
                    value[k] += glow[i]


@compiled(inner=True)
def _light_point(point, normal, tangent, side, room, lights, rays, value):
    """The light at a point, added to `value`."""
    start, end = lights.box_starts[room], lights.box_starts[room + 1]
    bounds = lights.rooms[room]
    target = np.empty(3)
    for s in range(lights.source_starts[room], lights.source_starts[room + 1]):
        source = lights.sources[s]
        square = cos = cos_source = 0.0
        for k in range(3):
            target[k] = source[k] - point[k]
            square += target[k] * target[k]
            cos += target[k] * normal[k]
            cos_source -= target[k] * source[3 + k]
        if cos <= 0 or cos_source <= 0:
            continue
        distance = np.sqrt(square)
        shape = cos * (0.35 + 0.65 * cos_source / distance) / distance / (square + 0.35)
        if not _is_blocked(point, target, 0.97, lights.boxes, start, end):
            for k in range(3):
                value[k] += shape * source[6 + k]
    openness, direction = 0.0, np.empty(3)
    for ray in range(len(rays)):
        for k in range(3):
            direction[k] = rays[ray, 0] * tangent[k] + rays[ray, 1] * side[k] + rays[ray, 2] * normal[k]
        reach = _reach_in_room(point, direction, bounds)
        reach = _first_hit(point, direction, reach, lights.boxes, start, end)
        openness += 0.25 + 0.75 * reach / REACH_M
    for k in range(3):
        value[k] += lights.ambient[room, k] * openness / len(rays)
    _add_sun(point, normal, room, lights, start, end, value)


@compiled(inner=True)
def _reach_in_room(point, direction, bounds):
    """The distance to the walls of the room, at most `REACH_M`."""
    reach = REACH_M
    for k in range(3):
        if direction[k] > PARALLEL:
            reach = min(reach, max((bounds[3 + k] - point[k]) / direction[k], 0.0))
        elif direction[k] < -PARALLEL:
            reach = min(reach, max((bounds[k] - point[k]) / direction[k], 0.0))
    return reach


@compiled(inner=True)
def _add_sun(point, normal, room, lights, start, end, value):
    """Sun light that comes through a window."""
    direction = lights.sun[:3]
    cos = np.sum(direction * normal)
    if cos <= 0 or lights.sun[3] == 0:
        return
    for pane in range(lights.pane_starts[room], lights.pane_starts[room + 1]):
        through = _first_hit(point, direction, FARTHEST_PANE_M, lights.panes, pane, pane + 1)
        if through < FARTHEST_PANE_M and not _is_blocked(point, direction, through, lights.boxes, start, end):
            for k in range(3):
                value[k] += cos * lights.sun[3 + k]


@compiled(inner=True)
def _is_blocked(point, direction, reach, boxes, start, end):
    return _first_hit(point, direction, reach, boxes, start, end) < reach


@compiled(inner=True)
def _first_hit(point, direction, reach, boxes, start, end):
    """The distance to the first box, in units of the direction; `reach` if that is nearer."""
    for b in range(start, end):
        near, far = 0.0, reach
        for k in range(3):
            low, high = boxes[b, k] - point[k], boxes[b, 3 + k] - point[k]
            if abs(direction[k]) < PARALLEL:
                if low > 0 or high < 0:
                    far = -1.0
                continue
            one, other = low / direction[k], high / direction[k]
            near, far = max(near, min(one, other)), min(far, max(one, other))
            if near >= far:
                break
        if near < far:
            reach = near
    return reach
