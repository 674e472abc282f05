"""Maps on a square grid, compiled: distance to obstacles, connected parts, and geodesic distances.

Cells are (row, column) = (y, x).
"""

import numpy as np
from jaxtyping import Bool, Float32, Float64, Int32

from iap._compile import compiled

FAR = 1e9
LEAST_CHANGE = 1e-9  # of a distance that is updated
UNREACHED = np.float32(np.inf)
TOUCHING_CELLS, MOST_ADVANCES = 0.5, 60  # of a ray


def clearance_m(free: Bool[np.ndarray, "H W"], resolution_m: float) -> Float32[np.ndarray, "H W"]:
    """The distance from the centre of each free cell to the nearest edge of an obstacle, about; 0 in obstacles.

    Outside the map is an obstacle.
    """
    padded = np.zeros((free.shape[0] + 2, free.shape[1] + 2), np.bool_)
    padded[1:-1, 1:-1] = free
    squares = _squared_distances(padded)[1:-1, 1:-1]
    return (np.maximum(np.sqrt(squares) - 0.5, 0) * resolution_m).astype(np.float32)


def largest_part(free: Bool[np.ndarray, "H W"]) -> Bool[np.ndarray, "H W"]:
    """The largest connected part of the free cells."""
    parts, sizes = connected_parts(free)
    if len(sizes) == 1:
        return np.zeros_like(free)
    return parts == 1 + int(np.argmax(sizes[1:]))


def connected_parts(free: Bool[np.ndarray, "H W"]) -> tuple[Int32[np.ndarray, "H W"], Int32[np.ndarray, " parts"]]:
    """The number of each cell's part, 0 for obstacles, and the cells of each part; cells that share a side connect."""
    parts, count = _label(free)
    return parts, np.bincount(parts.ravel(), minlength=count + 1).astype(np.int32)


def geodesic_m(
    slowness: Float32[np.ndarray, "H W"], goal: tuple[int, int], resolution_m: float
) -> Float32[np.ndarray, "H W"]:
    """The length of the shortest path from each cell to the goal, in metres times slowness; inf where there is none.

    It solves the eikonal equation |∇d| = slowness by fast sweeping, so that lengths do not depend on the direction.

    Args:
        slowness: 1 for plain lengths; inf is an obstacle.
        goal: the cell at distance 0.
        resolution_m: side of a cell.
    """
    distances = np.full(slowness.shape, np.inf)
    distances[goal] = 0
    _sweep_until_done(distances, slowness.astype(np.float64) * resolution_m)
    return distances.astype(np.float32)


@compiled
def _squared_distances(free):
    """The squared distance of each cell to the nearest that is not free, in cells (Felzenszwalb and Huttenlocher)."""
    rows, columns = free.shape
    squares = np.empty((rows, columns))
    for column in range(columns):
        line = np.empty(rows)
        for row in range(rows):
            line[row] = FAR if free[row, column] else 0.0
        squares[:, column] = _lower_envelope(line)
    for row in range(rows):
        squares[row] = _lower_envelope(squares[row].copy())
    return squares


@compiled
def _lower_envelope(heights):
    """min over j of (i − j)² + heights[j], for each i."""
    n = len(heights)
    tops, bounds, values = np.zeros(n, np.int64), np.empty(n + 1), np.empty(n)
    last = 0
    bounds[0], bounds[1] = -1e20, 1e20
    for i in range(1, n):
        while True:
            top = tops[last]
            meets = ((heights[i] + i * i) - (heights[top] + top * top)) / (2.0 * (i - top))
            if meets > bounds[last]:
                break
            last -= 1
        last += 1
        tops[last], bounds[last], bounds[last + 1] = i, meets, 1e20
    last = 0
    for i in range(n):
        while bounds[last + 1] < i:
            last += 1
        values[i] = (i - tops[last]) ** 2 + heights[tops[last]]
    return values


@compiled
def _label(free):
    rows, columns = free.shape
    parts = np.zeros((rows, columns), np.int32)
    stack = np.empty((rows * columns, 2), np.int64)
    count = 0
    for first_row in range(rows):
        for first_column in range(columns):
            if not free[first_row, first_column] or parts[first_row, first_column]:
                continue
            count += 1
            parts[first_row, first_column] = count
            stack[0, 0], stack[0, 1] = first_row, first_column
            height = 1
            while height:
                height -= 1
                row, column = stack[height]
                for down, right in ((1, 0), (-1, 0), (0, 1), (0, -1)):
                    r, c = row + down, column + right
                    if 0 <= r < rows and 0 <= c < columns and free[r, c] and not parts[r, c]:
                        parts[r, c] = count
                        stack[height, 0], stack[height, 1] = r, c
                        height += 1
    return parts, count


@compiled
def _sweep_until_done(distances, costs):
    """Update all cells in the four diagonal orders until nothing changes."""
    rows, columns = distances.shape
    changed = True
    while changed:
        changed = False
        for down, right in ((True, True), (True, False), (False, True), (False, False)):
            for i in range(rows):
                row = i if down else rows - 1 - i
                for j in range(columns):
                    column = j if right else columns - 1 - j
                    if np.isfinite(costs[row, column]):
                        new = _through_neighbours(distances, row, column, costs[row, column])
                        if new < distances[row, column] - LEAST_CHANGE:
                            distances[row, column] = new
                            changed = True


@compiled(inner=True)
def _through_neighbours(distances, row, column, cost):
    """The distance of a cell that follows from those of its neighbours."""
    rows, columns = distances.shape
    a = distances[row - 1, column] if row > 0 else np.inf
    if row + 1 < rows:
        a = min(a, distances[row + 1, column])
    b = distances[row, column - 1] if column > 0 else np.inf
    if column + 1 < columns:
        b = min(b, distances[row, column + 1])
    low, high = min(a, b), max(a, b)
    if not np.isfinite(low) or high - low >= cost:
        return low + cost
    return 0.5 * (low + high + np.sqrt(2 * cost * cost - (high - low) ** 2))


def ranges_m(
    clearance: Float64[np.ndarray, "H W"], cell: tuple[float, float], angles_rad: Float64[np.ndarray, " n"], most: float
) -> Float64[np.ndarray, " n"]:
    """The distances from a fractional cell to the nearest obstacle in some directions, in cells, at most `most`.

    Args:
        clearance: the distance of each cell to the nearest obstacle, in cells.
        cell: row and column.
        angles_rad: of the directions, from that of growing columns to that of growing rows.
        most: the longest distance that is measured.
    """
    return _cast(clearance, cell[0], cell[1], angles_rad, most)


@compiled
def _cast(clearance, row, column, angles, most):
    """Each ray advances by the clearance at its end, as in sphere tracing."""
    found = np.empty(len(angles))
    for i in range(len(angles)):
        length = 0.0
        for _ in range(MOST_ADVANCES):
            at_row, at_column = row + length * np.sin(angles[i]), column + length * np.cos(angles[i])
            free = interpolate(clearance, at_row, at_column, 0.0)
            if free < TOUCHING_CELLS or length >= most:
                break
            length += free
        found[i] = min(length, most)
    return found


@compiled
def interpolate(values, row, column, outside):
    """The bilinear interpolation at a fractional cell; `outside` beyond the map."""
    rows, columns = values.shape
    if not (0 <= row <= rows - 1 and 0 <= column <= columns - 1):
        return outside
    r, c = min(int(row), rows - 2), min(int(column), columns - 2)
    dr, dc = row - r, column - c
    top = (1 - dc) * values[r, c] + dc * values[r, c + 1]
    low = (1 - dc) * values[r + 1, c] + dc * values[r + 1, c + 1]
    return (1 - dr) * top + dr * low
