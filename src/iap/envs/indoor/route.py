"""The way to a goal: distances along the shortest path, and the direction that a robot should take."""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Bool, Float32

from iap._compile import compiled
from iap.envs.indoor.grids import geodesic_m
from iap.envs.indoor.scenes.floor_map import FloorMap

COMFORT_M, DISCOMFORT = 0.5, 2.0  # distance from obstacles that a guided robot keeps, and what a lack of it costs
NEAREST_CELLS = 12  # to a reachable cell, of a robot that was pushed out of those


@dataclass(frozen=True, eq=False)
class Route:
    """Shortest paths to a goal.

    Attributes:
        map: of the floor.
        walkable: where the middle of the robot can be.
        goal: x and y.
        distances: of each cell along the shortest path, in metres; inf where it cannot be.
        guide: the same with a cost of being near obstacles.
    """

    map: FloorMap
    walkable: Bool[np.ndarray, "H W"]
    goal: tuple[float, float]
    distances: Float32[np.ndarray, "H W"]
    guide: Float32[np.ndarray, "H W"]

    @classmethod
    def to(cls, floor: FloorMap, radius_m: float, goal: tuple[float, float]) -> "Route":
        """The shortest paths of a robot of this radius to a position; the nearest place that it can reach."""
        walkable = floor.walkable(radius_m)
        if not walkable.any():
            raise ValueError(f"the scene has no floor for a robot with a radius of {radius_m:g} m")
        row, column = _nearest(walkable, *floor.cell(*goal))
        plain = np.where(walkable, np.float32(1), np.float32(np.inf))
        lack = np.clip((COMFORT_M - floor.clearance) / (COMFORT_M - radius_m), 0, 1)
        careful = plain * (1 + DISCOMFORT * lack**2)
        found = (geodesic_m(costs, (row, column), floor.resolution_m) for costs in (plain, careful))
        return cls(floor, walkable, goal, *found)

    def distance(self, x: float, y: float) -> float:
        """The length of the shortest path from a position, in metres."""
        return float(_distance(self.distances, *self._at(x, y), self.map.resolution_m))

    def point_ahead(self, x: float, y: float, ahead_m: float) -> tuple[float, float]:
        """The point this far along the guided path; the goal if that is nearer."""
        row, column = self._at(x, y)
        row, column = _descend(self.guide, row, column, ahead_m / self.map.resolution_m)
        return self.map.position(row, column)

    def straight_point(self, x: float, y: float, most_m: float, least_m: float) -> tuple[float, float]:
        """The farthest point of the guided path, up to a length, that can be reached in a straight line."""
        ahead = most_m
        while ahead > least_m:
            point = self.point_ahead(x, y, ahead)
            if self._is_straight((x, y), point):
                return point
            ahead *= 0.75
        return self.point_ahead(x, y, least_m)

    def _is_straight(self, start: tuple[float, float], end: tuple[float, float]) -> bool:
        count = max(2, math.ceil(math.dist(start, end) / self.map.resolution_m))
        shares = np.linspace(0.2, 1, count)  # the first part may touch what the robot was pushed against
        rows = np.rint(
            [self._at(start[0] + s * (end[0] - start[0]), start[1] + s * (end[1] - start[1])) for s in shares]
        )
        return bool(self.walkable[tuple(rows.astype(int).T)].all())

    def _at(self, x: float, y: float) -> tuple[float, float]:
        """The fractional cell of a position, moved into the map."""
        rows, columns = self.walkable.shape
        row, column = self.map.fractional_cell(x, y)
        return min(max(row, 1.0), rows - 2.0), min(max(column, 1.0), columns - 2.0)


def _nearest(walkable: Bool[np.ndarray, "H W"], row: int, column: int) -> tuple[int, int]:
    """The walkable cell nearest to a cell."""
    rows, columns = np.nonzero(walkable)
    best = int(np.argmin((rows - row) ** 2 + (columns - column) ** 2))
    return int(rows[best]), int(columns[best])


@compiled
def _distance(distances, row, column, resolution):
    """The distance at a fractional cell: interpolated where all four neighbours have one, else by the nearest cell."""
    r, c = int(row), int(column)
    dr, dc = row - r, column - c
    low = (1 - dc) * distances[r, c] + dc * distances[r, c + 1]
    high = (1 - dc) * distances[r + 1, c] + dc * distances[r + 1, c + 1]
    value = (1 - dr) * low + dr * high
    if np.isfinite(value):
        return value
    best = np.inf
    for reach in range(1, NEAREST_CELLS + 1):
        for i in range(max(r - reach, 0), min(r + reach + 2, distances.shape[0])):
            for j in range(max(c - reach, 0), min(c + reach + 2, distances.shape[1])):
                if np.isfinite(distances[i, j]):
                    best = min(best, distances[i, j] + resolution * math.sqrt((i - row) ** 2 + (j - column) ** 2))
        if np.isfinite(best):
            return best
    return np.float64(np.nanmax(np.where(np.isfinite(distances), distances, 0.0)))


@compiled
def _descend(distances, row, column, cells):
    """The fractional cell after a path of so many cells, from neighbour to neighbour with the least distance."""
    rows, columns = distances.shape
    r, c = round(row), round(column)
    if not np.isfinite(distances[r, c]):  # start from the nearest cell that has a distance
        best = 1e18
        start_r, start_c = r, c
        for i in range(max(start_r - NEAREST_CELLS, 0), min(start_r + NEAREST_CELLS + 1, rows)):
            for j in range(max(start_c - NEAREST_CELLS, 0), min(start_c + NEAREST_CELLS + 1, columns)):
                square = (i - row) ** 2 + (j - column) ** 2
                if np.isfinite(distances[i, j]) and square < best:
                    best, r, c = square, i, j
    gone = 0.0
    while gone < cells and distances[r, c] > 0:
        best_slope, next_r, next_c = 0.0, r, c
        for i in range(max(r - 2, 0), min(r + 3, rows)):
            for j in range(max(c - 2, 0), min(c + 3, columns)):
                length = math.sqrt((i - r) ** 2 + (j - c) ** 2)
                if length > 0 and (distances[r, c] - distances[i, j]) / length > best_slope:
                    best_slope, next_r, next_c = (distances[r, c] - distances[i, j]) / length, i, j
        if next_r == r and next_c == c:
            break
        gone += math.sqrt((next_r - r) ** 2 + (next_c - c) ** 2)
        r, c = next_r, next_c
    return float(r), float(c)
