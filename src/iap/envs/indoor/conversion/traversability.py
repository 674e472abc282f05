"""Where a floor is free, found from the triangles of a mesh: there is floor, and nothing in the way of a robot."""

import numpy as np
from jaxtyping import Float, Float32, UInt8

from iap._compile import compiled

STEP_M = 0.06  # what is nearer to the height of the floor than this is floor
ROBOT_M = 0.8  # obstacles begin below this height above the floor
UPWARD = 0.9  # least z of the normal of a face that can be floor
BIN_M = 0.05
LEAST_SHARE = 0.3  # of the largest area at one height, for a floor
CLOSE_PIXELS = 3  # holes of the floor up to this are filled


def floor_height_m(positions: Float32[np.ndarray, "faces 3 3"]) -> float:
    """The lowest height with a large horizontal area, as the mean over it."""
    one, other = positions[:, 1] - positions[:, 0], positions[:, 2] - positions[:, 0]
    normals = np.cross(one, other).astype(np.float64)
    areas = np.linalg.norm(normals, axis=1) / 2
    level = np.abs(normals[:, 2]) >= 2 * UPWARD * areas  # scans may have faces of either side
    heights, areas = positions[:, :, 2].mean(axis=1)[level & (areas > 0)], areas[level & (areas > 0)]
    if not len(heights):
        raise ValueError("the mesh has no horizontal face that could be a floor: it must be z up in .obj, y up in glTF")
    lowest = heights.min()
    sums = np.bincount(((heights - lowest) / BIN_M).astype(int), areas)
    at = lowest + BIN_M * (0.5 + int(np.argmax(sums >= LEAST_SHARE * sums.max())))
    near = np.abs(heights - at) <= BIN_M
    return float(np.average(heights[near], weights=areas[near]))


def traversability(
    positions: Float32[np.ndarray, "faces 3 3"], floor_m: float, pixel_m: float
) -> tuple[UInt8[np.ndarray, "S S"], UInt8[np.ndarray, "S S"]]:
    """Where the floor is free (255), and where there is floor at all, on a square around the origin; row 0 is low y."""
    half = float(np.abs(positions[:, :, :2]).max()) + 2 * pixel_m
    side = 2 * int(np.ceil(half / pixel_m))
    floor, obstacles = np.zeros((side, side), np.bool_), np.zeros((side, side), np.bool_)
    corners = positions.astype(np.float64)
    _mark(floor, corners, floor_m - STEP_M, floor_m + STEP_M, pixel_m)
    _mark(obstacles, corners, floor_m + STEP_M, floor_m + ROBOT_M, pixel_m)
    floor = _closed(floor)
    return (255 * (floor & ~obstacles)).astype(np.uint8), (255 * floor).astype(np.uint8)


def _closed(mask: np.ndarray) -> np.ndarray:
    """The mask with small holes filled: grown, then shrunk."""
    grown = _grown(mask, CLOSE_PIXELS)
    return ~_grown(~grown, CLOSE_PIXELS) | mask


def _grown(mask: np.ndarray, by: int) -> np.ndarray:
    for axis in (0, 1):
        padded = np.pad(mask, [(by, by) if axis == k else (0, 0) for k in range(2)])
        size = mask.shape[axis]
        mask = np.any([np.take(padded, range(s, s + size), axis) for s in range(2 * by + 1)], axis=0)
    return mask


@compiled
def _mark(image, positions: Float[np.ndarray, "faces 3 3"], low, high, pixel):
    """Set the pixels below those parts of the triangles that have a height in a range."""
    side = image.shape[0]
    for face in range(len(positions)):
        a, b, c = positions[face, 0], positions[face, 1], positions[face, 2]
        if min(a[2], b[2], c[2]) > high or max(a[2], b[2], c[2]) < low:
            continue
        longest = 0.0
        for one, other in ((a, b), (b, c), (c, a)):
            longest = max(longest, np.sqrt(np.sum((one - other) ** 2)))
        count = int(np.ceil(2 * longest / pixel)) + 1
        for i in range(count + 1):
            for j in range(count + 1 - i):
                s, t = i / count, j / count
                z = a[2] + s * (b[2] - a[2]) + t * (c[2] - a[2])
                if low <= z <= high:
                    row = int(np.floor((a[1] + s * (b[1] - a[1]) + t * (c[1] - a[1])) / pixel)) + side // 2
                    column = int(np.floor((a[0] + s * (b[0] - a[0]) + t * (c[0] - a[0])) / pixel)) + side // 2
                    if 0 <= row < side and 0 <= column < side:
                        image[row, column] = True
