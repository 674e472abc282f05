"""Which pieces of a scene a camera can see: from each place, found once by rendering, and in each direction.

A place is a cell of 0.5 m. The set of a place is the union of what is seen from points 0.25 m apart, in four directions
that overlap, and of whatever is near.
"""

import math
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Bool

from iap._compile import compiled
from iap.envs.indoor.scenes.floor_map import FloorMap
from iap.envs.indoor.scenes.model import PIECE, PROBE, SHOWN_GROUP, Pieces
from iap.envs.rendering.camera import Camera, load_mujoco

PLACE_M, POINT_M = 0.5, 0.25
NEAR_M = 1.0  # pieces nearer than this belong to every set
STANDING_ROOM_M = 0.1  # from obstacles to a point
PROBE_SIZE = (184, 128)  # the field of view across is then 90°
ALIKE_M = 0.25  # heights of a camera for which a set is the same


@dataclass(frozen=True, eq=False)
class Visibility:
    """The pieces that can be seen from each place.

    Attributes:
        sets: for each place, the pieces; all of them where there is no place to stand.
        origin_m: the lowest x and y of place (0, 0).
    """

    sets: Bool[np.ndarray, "rows columns pieces"]
    origin_m: tuple[float, float]

    def seen_from(self, x: float, y: float) -> Bool[np.ndarray, " pieces"] | None:
        """The pieces that may be seen from a position; None for all of them."""
        row, column = math.floor((y - self.origin_m[1]) / PLACE_M), math.floor((x - self.origin_m[0]) / PLACE_M)
        if 0 <= row < self.sets.shape[0] and 0 <= column < self.sets.shape[1]:
            return self.sets[row, column]
        return None


def find_visible(model: Any, data: Any, pieces: Pieces, floor: FloorMap, height_m: float) -> Visibility:
    """The sets of all places, for a camera at this height. It takes several milliseconds for each of its points.

    Args:
        model: with all pieces enabled.
        data: of it; the pose of the probe is changed.
        pieces: of the model.
        floor: where a camera can be.
        height_m: of the camera, in the world.
    """
    mujoco = load_mujoco()
    number = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_CAMERA, PROBE)
    first = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_GEOM, f"{PIECE}0")
    count = len(pieces.segments)
    width, depth = floor.size_m
    rows, columns = math.ceil(depth / PLACE_M) + 1, math.ceil(width / PLACE_M) + 1
    sets, has_points = np.zeros((rows, columns, count), bool), np.zeros((rows, columns), bool)
    with closing(Camera(model, PROBE_SIZE, number, groups=(SHOWN_GROUP,))) as camera:
        for i, j, x, y in _points(floor, rows, columns):
            seen = _seen_around(camera, data, number, (x, y, height_m), first, count)
            for row in {(i - 1) // 2, i // 2}:  # a point on an edge belongs to the places on both sides
                for column in {(j - 1) // 2, j // 2}:
                    if 0 <= row < rows and 0 <= column < columns:
                        sets[row, column] |= seen
                        has_points[row, column] = True
    sets[~has_points] = True
    origin = floor.origin_m
    for row in range(rows):
        for column in range(columns):
            middle = np.array([origin[0] + (column + 0.5) * PLACE_M, origin[1] + (row + 0.5) * PLACE_M])
            gaps = np.abs(pieces.centre_m[:, :2] - middle) - pieces.half_m[:, :2] - PLACE_M / 2
            sets[row, column] |= np.linalg.norm(np.maximum(gaps, 0), axis=1) < NEAR_M
    return Visibility(sets, origin)


def _points(floor: FloorMap, rows: int, columns: int) -> Iterator[tuple[int, int, float, float]]:
    """The points where a camera can be: their numbers along y and x, and positions."""
    per_place = round(PLACE_M / POINT_M)
    for i in range(per_place * rows + 1):
        for j in range(per_place * columns + 1):
            x, y = floor.origin_m[0] + j * POINT_M, floor.origin_m[1] + i * POINT_M
            if floor.contains(x, y) and floor.clearance[floor.cell(x, y)] >= STANDING_ROOM_M:
                yield i, j, x, y


def _seen_around(
    camera: Camera, data: Any, number: int, position: tuple[float, float, float], first: int, count: int
) -> Bool[np.ndarray, " pieces"]:
    """The pieces seen in four directions."""
    seen = np.zeros(count + 1, bool)
    for quarter in range(4):
        aim(data, number, position, quarter * math.pi / 2)
        geoms = camera.geoms(data) - first
        seen[np.where((geoms >= 0) & (geoms < count), geoms, count).ravel()] = True
    return seen[:count]


def aim(data: Any, number: int, position: tuple[float, float, float], yaw_rad: float, pitch_rad: float = 0.0) -> None:
    """Put a camera of the world at a position, with a horizontal direction and a rotation downwards."""
    cos, sin, level, down = math.cos(yaw_rad), math.sin(yaw_rad), math.cos(pitch_rad), math.sin(pitch_rad)
    right, ahead = (sin, -cos, 0.0), (cos * level, sin * level, -down)
    up = (cos * down, sin * down, level)
    data.cam_xpos[number] = position
    data.cam_xmat[number] = [part for axes in zip(right, up, (-x for x in ahead), strict=True) for part in axes]


@compiled
def in_frustum(centre, half, eye, axes, slope_x, slope_y, result):
    """Which boxes may be inside the pyramid of a camera with the axes (right, up, backward) as columns."""
    for i in range(len(centre)):
        inside = True
        depth = across = upward = reach_d = reach_x = reach_y = 0.0
        for k in range(3):
            offset = centre[i, k] - eye[k]
            across += offset * axes[k, 0]
            upward += offset * axes[k, 1]
            depth -= offset * axes[k, 2]
        for side in (-1.0, 1.0):
            reach_d = reach_x = reach_y = 0.0
            for k in range(3):
                reach_x += half[i, k] * abs(side * axes[k, 0] + slope_x * axes[k, 2])
                reach_y += half[i, k] * abs(side * axes[k, 1] + slope_y * axes[k, 2])
                reach_d += half[i, k] * abs(axes[k, 2])
            if side * across - slope_x * depth > reach_x or side * upward - slope_y * depth > reach_y:
                inside = False
        result[i] = inside and depth > -reach_d
