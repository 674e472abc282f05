"""Depth images of a terrain of boxes, by rays: exact, faster than drawing, and without OpenGL.

A depth is the distance along the axis of the camera, as depth cameras measure it, and not along the ray.
"""

import math
from collections.abc import Sequence

import numpy as np
from jaxtyping import Float, Float32
from numba import njit

from iap.envs.quadruped.simulator import Box, View

NEAREST_M = 1e-6
LEVEL = 1e-3  # how steep a ray is at least that is taken to meet a plane below


class DepthRays:
    """The depth images that views of one size and angle have of a terrain.

    The robot itself is not in them.
    """

    def __init__(self, view: View, farthest_m: float) -> None:
        """Views like this one, in which nothing is farther away than `farthest_m`."""
        height, width = view.size
        half = math.tan(math.radians(view.fov_deg) / 2)
        self._columns = half * (2 * np.arange(width) + 1 - width) / height
        self._rows = -half * (2 * np.arange(height) + 1 - height) / height
        self._farthest_m = farthest_m
        self._boxes = np.empty((0, 8))

    def place(self, terrain: Sequence[Box]) -> None:
        """Look at this terrain from now on."""
        self._boxes = np.array(
            [
                (*box.centre_m, *(side / 2 for side in box.size_m), math.cos(box.yaw_rad), math.sin(box.yaw_rad))
                for box in terrain
            ]
        )

    def look(
        self, view: View, position_m: Float[np.ndarray, " 3"], rotation: Float[np.ndarray, "3 3"]
    ) -> Float32[np.ndarray, "H W"]:
        """What a view sees from a trunk at this place, turned like this."""
        eye, (right, up, ahead) = _place(view, position_m, rotation)
        return _cast(eye, right, up, ahead, self._columns, self._rows, self._boxes, self._farthest_m)

    def surface(
        self, view: View, position_m: Float[np.ndarray, " 3"], rotation: Float[np.ndarray, "3 3"]
    ) -> Float[np.ndarray, "H W 3"]:
        """Where the point that each pixel shows is, in the world."""
        eye, (right, up, ahead) = _place(view, position_m, rotation)
        rays = ahead + self._columns[:, None] * right + self._rows[:, None, None] * up
        return eye + self.look(view, position_m, rotation)[..., None] * rays

    def on_plane(
        self, view: View, position_m: Float[np.ndarray, " 3"], rotation: Float[np.ndarray, "3 3"], height_m: float
    ) -> Float[np.ndarray, "H W 2"]:
        """Where the rays of a view that looks down would meet a level plane at this height, forward and to the left."""
        eye, (right, up, ahead) = _place(view, position_m, rotation)
        rays = ahead + self._columns[:, None] * right + self._rows[:, None, None] * up
        return eye[:2] + (eye[2] - height_m) / np.maximum(-rays[..., 2:], LEVEL) * rays[..., :2]


def _place(
    view: View, position_m: Float[np.ndarray, " 3"], rotation: Float[np.ndarray, "3 3"]
) -> tuple[Float[np.ndarray, " 3"], Float[np.ndarray, "3 3"]]:
    """Where the camera is, and what is right, up and ahead for it."""
    sin, cos = math.sin(view.pitch_rad), math.cos(view.pitch_rad)
    axes = np.array(((0, -1, 0), (sin, 0, cos), (cos, 0, -sin))) @ rotation.T
    return position_m + rotation @ np.array(view.position_m), axes


@njit(cache=True)
def _cast(eye, right, up, ahead, columns, rows, boxes, farthest):
    depths = np.full((len(rows), len(columns)), np.float32(farthest))
    for i in range(len(boxes)):
        if _is_out_of_sight(eye, ahead, boxes[i], columns[-1], rows[0], farthest):
            continue
        half, cos, sin = boxes[i, 3:6], boxes[i, 6], boxes[i, 7]
        origin = _turned(eye - boxes[i, :3], cos, sin)
        x, y, z = _turned(right, cos, sin), _turned(up, cos, sin), _turned(ahead, cos, sin)
        first_row, last_row, first_column, last_column = _frame(origin, x, y, z, half, columns, rows)
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


@njit(cache=True)
def _turned(vector, cos, sin):
    """In the frame of a box that is turned to the left."""
    return np.array([cos * vector[0] + sin * vector[1], cos * vector[1] - sin * vector[0], vector[2]])


@njit(cache=True)
def _is_out_of_sight(eye, ahead, box, across, upward, farthest):
    """Whether the ball around a box is outside the cone around the image."""
    depth, square, radius = 0.0, 0.0, 0.0
    for axis in range(3):
        away = box[axis] - eye[axis]
        depth += away * ahead[axis]
        square += away * away
        radius += box[3 + axis] ** 2
    radius = math.sqrt(radius)
    slope = math.sqrt(across**2 + upward**2)
    aside = math.sqrt(max(square - depth * depth, 0.0))
    return depth - radius > farthest or aside - depth * slope > radius * math.sqrt(1 + slope * slope)


@njit(cache=True)
def _frame(origin, x, y, z, half, columns, rows):
    """The rows and columns between which a box is seen: all of them if it reaches behind the camera."""
    left, right, low, high = 1e9, -1e9, 1e9, -1e9
    for corner in range(8):
        away = -origin
        for axis in range(3):
            away[axis] += half[axis] if corner >> axis & 1 else -half[axis]
        depth = np.dot(away, z)
        if depth < NEAREST_M:
            return 0, len(rows), 0, len(columns)
        across, upward = np.dot(away, x) / depth, np.dot(away, y) / depth
        left, right = min(left, across), max(right, across)
        low, high = min(low, upward), max(high, upward)
    first_column, last_column = np.searchsorted(columns, left), np.searchsorted(columns, right, "right")
    first_row, last_row = np.searchsorted(-rows, -high), np.searchsorted(-rows, -low, "right")
    return first_row, last_row, first_column, last_column
