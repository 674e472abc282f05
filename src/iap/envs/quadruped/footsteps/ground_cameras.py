"""Two depth cameras that look down: whole images, or a window around the landing of a foot."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Float32, Int

from iap._compile import compiled
from iap.envs.quadruped.footsteps.single_foot import NextFoot
from iap.envs.quadruped.footsteps.terrain import FLOOR_M, Terrain
from iap.envs.quadruped.simulation.protocol import Box, View
from iap.envs.rendering.depth_rays import DepthRays, mount_of, nearest_pixel, place_camera, surface_points
from iap.locomotion.walker import Motion

DEPTH_SIZE = (24, 32)
FRONT_M, BELLY_M = (0.197, 0.0, -0.115), (-0.092, 0.0, -0.105)
VIEWS = tuple(View(place, DEPTH_SIZE, fov_deg=75.0, pitch_rad=math.pi / 2) for place in (FRONT_M, BELLY_M))
FARTHEST_M = 2.0  # larger depths are clipped

FOOTING = ("gap", "edge", "safe")
EDGE_M = 0.035  # distance from an edge at which a foot does not slip off
SAME_HEIGHT_M = 0.01

WINDOW = (16, 16)
MAX_DROP_M, MAX_DISTANCE_M = 0.25, 0.3  # ranges of the two channels of a window
MISS_PIXELS = 2  # about four centimetres on the ground
FLAT_M = 0.04  # largest height difference within those


class GroundCameras:
    """A camera at the front and one at the belly, both looking down."""

    def __init__(self, toe_radius_m: float) -> None:
        """Cameras of a robot with these toes."""
        self._toe_radius_m = toe_radius_m
        self._rays = DepthRays(VIEWS[0], FARTHEST_M)

    def set_terrain(self, boxes: Sequence[Box]) -> None:
        """Replace the terrain."""
        self._rays.set_terrain(boxes)

    @property
    def boxes(self) -> Float[np.ndarray, "n 8"]:
        """The terrain for compiled functions: centre, half sizes, and cosine and sine of the yaw of each box."""
        return self._rays.scene[0]

    def depths(self, motion: Motion) -> Float32[np.ndarray, "48 32 1"]:
        """Depths in metres: the image of the front camera above that of the belly camera, forward up."""
        images = [self._rays.depths(view, motion.position_m, motion.rotation) for view in VIEWS]
        return np.concatenate(images)[..., None]

    def window(self, foot: NextFoot, motion: Motion) -> Float32[np.ndarray, "16 16 2"]:
        """The ground around the landing of a foot, see `footing`."""
        return _window(*self._camera_over(foot, motion))

    def labels(self, terrain: Terrain, motion: Motion) -> Int[np.ndarray, "48 32"]:
        """The footing at each pixel of `depths`, as an index of `FOOTING`."""
        return np.concatenate(self._labels(terrain, motion))

    def window_labels(self, foot: NextFoot, terrain: Terrain, motion: Motion) -> Int[np.ndarray, "16 16"]:
        """The footing at each pixel of `window`."""
        rows, columns = window_pixels(*self._camera_over(foot, motion))
        return self._labels(terrain, motion)[foot.camera][rows[:, None], columns]

    def _labels(self, terrain: Terrain, motion: Motion) -> Int[np.ndarray, "2 24 32"]:
        points = np.stack([self._rays.points(view, motion.position_m, motion.rotation) for view in VIEWS])
        is_safe = np.abs(terrain.heights(points[..., :2], EDGE_M) - points[..., 2]) < SAME_HEIGHT_M
        is_gap = points[..., 2] < FLOOR_M + SAME_HEIGHT_M
        return np.where(is_gap, FOOTING.index("gap"), np.where(is_safe, FOOTING.index("safe"), FOOTING.index("edge")))

    def _camera_over(self, foot: NextFoot, motion: Motion) -> tuple[Any, ...]:
        """A landing and the camera over it, for compiled functions."""
        landing = (foot.landing_m, foot.side, self._toe_radius_m)
        return *landing, mount_of(VIEWS[foot.camera]), motion.position_m, motion.rotation, self._rays.scene


@compiled
def _window(landing, side, toe_radius, mount, position, rotation, scene):
    """The footing in the window around a landing."""
    boxes, farthest, widest, columns, rows = scene
    camera = place_camera(mount, position, rotation)
    window_rows, window_columns = _window_around(camera, scene, landing, side, toe_radius)
    # Only the window and the pixels within MISS_PIXELS of it are computed.
    top, bottom = max(window_rows[0] - MISS_PIXELS, 0), window_rows[-1] + MISS_PIXELS + 1
    left = max(min(window_columns[0], window_columns[-1]) - MISS_PIXELS, 0)
    right = max(window_columns[0], window_columns[-1]) + MISS_PIXELS + 1
    part = (boxes, farthest, widest, columns[left:right], rows[top:bottom])
    ground = footing(surface_points(camera, part), landing, toe_radius)
    window = np.empty((*WINDOW, 2), np.float32)
    for i in range(WINDOW[0]):
        for j in range(WINDOW[1]):
            window[i, j] = ground[window_rows[i] - top, window_columns[j] - left]
    return window


@compiled
def window_pixels(landing, side, toe_radius, mount, position, rotation, scene):
    """The rows and columns of the window in the image of the camera."""
    return _window_around(place_camera(mount, position, rotation), scene, landing, side, toe_radius)


@compiled
def _window_around(camera, scene, landing, side, toe_radius):
    """Rows and columns around the pixel of the landing on level ground; the image's edges are repeated."""
    ground = np.array([landing[0], landing[1], landing[2] - toe_radius])
    row, column = nearest_pixel(camera, scene, ground)
    rows, columns = np.empty(WINDOW[0], np.int64), np.empty(WINDOW[1], np.int64)
    for i in range(WINDOW[0]):
        rows[i] = min(max(row + i - WINDOW[0] // 2, 0), len(scene[4]) - 1)
    for j in range(WINDOW[1]):
        columns[j] = min(max(column + side * (j - WINDOW[1] // 2), 0), len(scene[3]) - 1)
    return rows, columns


@compiled
def footing(points_m, landing, toe_radius):
    """Two channels: height of the ground above `MAX_DROP_M` below the landing, and `MAX_DISTANCE_M` − distance to it.

    Both are 0 where a foot that misses the pixel by `MISS_PIXELS` may end up at another height, that is, at edges.
    """
    height, width = points_m.shape[:2]
    ups = points_m[..., 2] + toe_radius - landing[2]
    channels = np.zeros((height, width, 2), np.float32)
    for row in range(height):
        for column in range(width):
            up = ups[row, column]
            if up > -MAX_DROP_M and _is_flat(ups, row, column):
                ahead, left = points_m[row, column, 0] - landing[0], points_m[row, column, 1] - landing[1]
                channels[row, column, 0] = up + MAX_DROP_M
                channels[row, column, 1] = max(MAX_DISTANCE_M - math.sqrt(ahead * ahead + left * left), 0.0)
    return channels


@compiled
def _is_flat(ups, row, column):
    """Whether all pixels within `MISS_PIXELS` have about the same height."""
    lowest = highest = ups[row, column]
    for i in range(max(row - MISS_PIXELS, 0), min(row + MISS_PIXELS + 1, ups.shape[0])):
        for j in range(max(column - MISS_PIXELS, 0), min(column + MISS_PIXELS + 1, ups.shape[1])):
            lowest, highest = min(lowest, ups[i, j]), max(highest, ups[i, j])
    return highest - lowest < FLAT_M
