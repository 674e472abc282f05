"""Depth images of a terrain of boxes by ray casting: exact, faster than rendering, and without OpenGL.

A depth is the distance along the axis of the camera, as depth cameras measure it, and not along the ray.

Compiled functions take a camera as (eye, right, up, ahead) in world coordinates, and a scene as (boxes, farthest depth,
largest slope of a ray of the whole image, slopes of the columns, slopes of the rows).
"""

import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np
from jaxtyping import Float, Float32

from iap._compile import compiled
from iap.envs.quadruped.simulation.protocol import Box, View

NEAREST_M = 1e-6
LEAST_SLOPE = 1e-3  # of a ray that is intersected with a plane below


class DepthRays:
    """Depth images of a terrain, for views of one size and field of view. The robot itself is not in them."""

    def __init__(self, view: View, farthest_m: float) -> None:
        """Views like this one, with depths of at most `farthest_m`."""
        height, width = view.size
        half = math.tan(math.radians(view.fov_deg) / 2)
        columns = half * (2 * np.arange(width) + 1 - width) / height
        rows = -half * (2 * np.arange(height) + 1 - height) / height
        self._rays = farthest_m, math.sqrt(columns[-1] ** 2 + rows[0] ** 2), columns, rows
        self.set_terrain(())

    def set_terrain(self, terrain: Sequence[Box]) -> None:
        """Replace the terrain."""
        boxes = [
            (*box.centre_m, *(side / 2 for side in box.size_m), math.cos(box.yaw_rad), math.sin(box.yaw_rad))
            for box in terrain
        ]
        self.scene = np.array(boxes).reshape(-1, 8), *self._rays

    def depths(
        self, view: View, position_m: Float[np.ndarray, " 3"], rotation: Float[np.ndarray, "3 3"]
    ) -> Float32[np.ndarray, "H W"]:
        """The depth image of a view on a trunk with this position and rotation."""
        return _depths_from_trunk(mount_of(view), position_m, rotation, self.scene)

    def points(
        self, view: View, position_m: Float[np.ndarray, " 3"], rotation: Float[np.ndarray, "3 3"]
    ) -> Float[np.ndarray, "H W 3"]:
        """The world position of the surface at each pixel."""
        return _points_from_trunk(mount_of(view), position_m, rotation, self.scene)


@cache
def mount_of(view: View) -> tuple[Any, Any]:
    """The position of a view on the trunk, and its axes right, up and ahead, for compiled functions."""
    sin, cos = math.sin(view.pitch_rad), math.cos(view.pitch_rad)
    return np.array(view.position_m), np.array(((0.0, -1.0, 0.0), (sin, 0.0, cos), (cos, 0.0, -sin)))


@compiled
def _depths_from_trunk(mount, position, rotation, scene):
    return cast_rays(place_camera(mount, position, rotation), scene)


@compiled
def _points_from_trunk(mount, position, rotation, scene):
    return surface_points(place_camera(mount, position, rotation), scene)


@compiled
def place_camera(mount, position, rotation):
    """The camera of a mount on a trunk with this position and rotation."""
    axes = mount[1] @ rotation.T
    return position + rotation @ mount[0], axes[0], axes[1], axes[2]


@compiled
def nearest_pixel(camera, scene, point_m):
    """The row and column whose ray meets the horizontal plane through a point nearest to it."""
    eye, right, up, ahead = camera
    columns, rows = scene[3:]
    best, best_row, best_column = np.inf, 0, 0
    for row in range(len(rows)):
        for column in range(len(columns)):
            fall = ahead[2] + columns[column] * right[2] + rows[row] * up[2]
            scale = (eye[2] - point_m[2]) / max(-fall, LEAST_SLOPE)
            square = 0.0
            for axis in range(2):
                ray = ahead[axis] + columns[column] * right[axis] + rows[row] * up[axis]
                square += (eye[axis] + scale * ray - point_m[axis]) ** 2
            if square < best:
                best, best_row, best_column = square, row, column
    return best_row, best_column


@compiled
def surface_points(camera, scene):
    """The world position of the surface at each pixel."""
    eye, right, up, ahead = camera
    columns, rows = scene[3:]
    depths = cast_rays(camera, scene)
    points = np.empty((len(rows), len(columns), 3))
    for row in range(len(rows)):
        for column in range(len(columns)):
            for axis in range(3):
                ray = ahead[axis] + columns[column] * right[axis] + rows[row] * up[axis]
                points[row, column, axis] = eye[axis] + depths[row, column] * ray
    return points


@compiled
def cast_rays(camera, scene):
    """The depth of each pixel."""
    eye, right, up, ahead = camera
    boxes, farthest, widest, columns, rows = scene
    depths = np.full((len(rows), len(columns)), np.float32(farthest))
    for i in range(len(boxes)):
        if _is_outside_view(eye, ahead, boxes[i], farthest, widest):
            continue
        half, cos, sin = boxes[i, 3:6], boxes[i, 6], boxes[i, 7]
        origin = _rotated(eye - boxes[i, :3], cos, sin)
        x, y, z = _rotated(right, cos, sin), _rotated(up, cos, sin), _rotated(ahead, cos, sin)
        first_row, last_row, first_column, last_column = _pixel_range(origin, x, y, z, half, columns, rows)
        for row in range(first_row, last_row):
            for column in range(first_column, last_column):
                near, far = 0.0, np.float64(depths[row, column])
                for axis in range(3):
                    slope = z[axis] + columns[column] * x[axis] + rows[row] * y[axis]
                    inverse = 1 / slope if slope != 0 else 1e30
                    enters = (-half[axis] - origin[axis]) * inverse
                    leaves = (half[axis] - origin[axis]) * inverse
                    near = max(near, min(enters, leaves))
                    far = min(far, max(enters, leaves))
                if near < far:
                    depths[row, column] = near
    return depths


@compiled
def _rotated(vector, cos, sin):
    """A vector in the frame of a box with this yaw."""
    return np.array([cos * vector[0] + sin * vector[1], cos * vector[1] - sin * vector[0], vector[2]])


@compiled
def _is_outside_view(eye, ahead, box, farthest, slope):
    """Whether the bounding sphere of a box is outside the cone around the image."""
    depth, square, radius = 0.0, 0.0, 0.0
    for axis in range(3):
        offset = box[axis] - eye[axis]
        depth += offset * ahead[axis]
        square += offset * offset
        radius += box[3 + axis] ** 2
    radius = math.sqrt(radius)
    lateral = math.sqrt(max(square - depth * depth, 0.0))
    return depth - radius > farthest or lateral - depth * slope > radius * math.sqrt(1 + slope * slope)


@compiled
def _pixel_range(origin, x, y, z, half, columns, rows):
    """The rows and columns that may show a box: all of them if it extends behind the camera."""
    left, right, low, high = 1e9, -1e9, 1e9, -1e9
    for corner in range(8):
        offset = -origin
        for axis in range(3):
            offset[axis] += half[axis] if corner >> axis & 1 else -half[axis]
        depth = np.dot(offset, z)
        if depth < NEAREST_M:
            return 0, len(rows), 0, len(columns)
        across, upward = np.dot(offset, x) / depth, np.dot(offset, y) / depth
        left, right = min(left, across), max(right, across)
        low, high = min(low, upward), max(high, upward)
    first_column, last_column = np.searchsorted(columns, left), np.searchsorted(columns, right, "right")
    first_row, last_row = np.searchsorted(-rows, -high), np.searchsorted(-rows, -low, "right")
    return first_row, last_row, first_column, last_column
