"""The loops behind `one_foot` and the windows of `ground_cameras`, compiled."""

import math

import numpy as np
from numba import njit

from iap.envs.quadruped.depth_loops import nearest_pixel, place, points

WINDOW = (16, 16)
DROP_M, NEAR_LANDING_M = 0.25, 0.3  # what a window tells apart
MISS_PIXELS = 2  # about four centimetres on the ground
EVEN_M = 0.04  # by which heights differ at most within those


@njit(cache=True)
def see_around(landing, side, toe_radius, mount, position, rotation, scene):
    """The footing in the window around the place where a foot would land."""
    boxes, farthest, widest, columns, rows = scene
    camera = place(mount, position, rotation)
    window_rows, window_columns = find_window(camera, scene, landing, side, toe_radius)
    # No more of the image is needed than the window, and what a foot that misses a place in it may meet.
    top, bottom = max(window_rows[0] - MISS_PIXELS, 0), window_rows[-1] + MISS_PIXELS + 1
    left = max(min(window_columns[0], window_columns[-1]) - MISS_PIXELS, 0)
    right = max(window_columns[0], window_columns[-1]) + MISS_PIXELS + 1
    part = (boxes, farthest, widest, columns[left:right], rows[top:bottom])
    seen = footing(points(camera, part), landing, toe_radius)
    window = np.empty((*WINDOW, 2), np.float32)
    for i in range(WINDOW[0]):
        for j in range(WINDOW[1]):
            window[i, j] = seen[window_rows[i] - top, window_columns[j] - left]
    return window


@njit(cache=True)
def window_around(landing, side, toe_radius, mount, position, rotation, scene):
    """The rows and columns of that window in the image of the camera that is mounted like this."""
    return find_window(place(mount, position, rotation), scene, landing, side, toe_radius)


@njit(cache=True)
def find_window(camera, scene, landing, side, toe_radius):
    """Rows and columns around the pixel that would show the landing if the ground were there; edges are repeated."""
    ground = np.array([landing[0], landing[1], landing[2] - toe_radius])
    row, column = nearest_pixel(camera, scene, ground)
    rows, columns = np.empty(WINDOW[0], np.int64), np.empty(WINDOW[1], np.int64)
    for i in range(WINDOW[0]):
        rows[i] = min(max(row + i - WINDOW[0] // 2, 0), len(scene[4]) - 1)
    for j in range(WINDOW[1]):
        columns[j] = min(max(column + side * (j - WINDOW[1] // 2), 0), len(scene[3]) - 1)
    return rows, columns


@njit(cache=True)
def footing(points_m, landing, toe_radius):
    """How much higher than `DROP_M` below a landing the ground is, and how much nearer than `NEAR_LANDING_M` to it.

    Both are 0 where a foot that misses its place by `MISS_PIXELS` may come to rest at another height: at edges.
    """
    height, width = points_m.shape[:2]
    ups = points_m[..., 2] + toe_radius - landing[2]
    seen = np.zeros((height, width, 2), np.float32)
    for row in range(height):
        for column in range(width):
            up = ups[row, column]
            if up > -DROP_M and _is_even(ups, row, column):
                ahead, aside = points_m[row, column, 0] - landing[0], points_m[row, column, 1] - landing[1]
                seen[row, column, 0] = up + DROP_M
                seen[row, column, 1] = max(NEAR_LANDING_M - math.sqrt(ahead * ahead + aside * aside), 0.0)
    return seen


@njit(cache=True)
def _is_even(ups, row, column):
    """Whether a foot that misses this pixel comes to rest at its height."""
    lowest = highest = ups[row, column]
    for i in range(max(row - MISS_PIXELS, 0), min(row + MISS_PIXELS + 1, ups.shape[0])):
        for j in range(max(column - MISS_PIXELS, 0), min(column + MISS_PIXELS + 1, ups.shape[1])):
            lowest, highest = min(lowest, ups[i, j]), max(highest, ups[i, j])
    return highest - lowest < EVEN_M
