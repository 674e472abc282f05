"""The loops behind `depth_rays`, compiled: where a camera is, and how far its rays go.

A camera is (eye, right, up, ahead) in the world. A scene is what there is to see and by which rays: boxes, the farthest
depth, how far the rays of a whole image slope aside, and the slopes of the columns and rows that are wanted of it.
"""

import math

import numpy as np

from iap._compile import compiled

NEAREST_M = 1e-6
LEVEL = 1e-3  # how steep a ray is at least that is taken to meet a plane below


@compiled
def look(mount, position, rotation, scene):
    """The depths that a camera on a trunk at this place sees."""
    return cast(place(mount, position, rotation), scene)


@compiled
def surface(mount, position, rotation, scene):
    """The points that it sees, in the world."""
    return points(place(mount, position, rotation), scene)


@compiled
def place(mount, position, rotation):
    """The camera that is mounted like this on a trunk."""
    axes = mount[1] @ rotation.T
    return position + rotation @ mount[0], axes[0], axes[1], axes[2]


@compiled
def nearest_pixel(camera, scene, place_m):
    """The row and column whose ray would meet the level plane through a place nearest to it, looking down."""
    eye, right, up, ahead = camera
    columns, rows = scene[3:]
    best, best_row, best_column = np.inf, 0, 0
    for row in range(len(rows)):
        for column in range(len(columns)):
            fall = ahead[2] + columns[column] * right[2] + rows[row] * up[2]
            scale = (eye[2] - place_m[2]) / max(-fall, LEVEL)
            square = 0.0
            for axis in range(2):
                ray = ahead[axis] + columns[column] * right[axis] + rows[row] * up[axis]
                square += (eye[axis] + scale * ray - place_m[axis]) ** 2
            if square < best:
                best, best_row, best_column = square, row, column
    return best_row, best_column


@compiled
def points(camera, scene):
    """Where the point that each pixel shows is, in the world."""
    eye, right, up, ahead = camera
    columns, rows = scene[3:]
    depths = cast(camera, scene)
    seen = np.empty((len(rows), len(columns), 3))
    for row in range(len(rows)):
        for column in range(len(columns)):
            for axis in range(3):
                ray = ahead[axis] + columns[column] * right[axis] + rows[row] * up[axis]
                seen[row, column, axis] = eye[axis] + depths[row, column] * ray
    return seen


@compiled
def cast(camera, scene):
    """The depth of each pixel."""
    eye, right, up, ahead = camera
    boxes, farthest, widest, columns, rows = scene
    depths = np.full((len(rows), len(columns)), np.float32(farthest))
    for i in range(len(boxes)):
        if _is_out_of_sight(eye, ahead, boxes[i], farthest, widest):
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


@compiled
def _turned(vector, cos, sin):
    """In the frame of a box that is turned to the left."""
    return np.array([cos * vector[0] + sin * vector[1], cos * vector[1] - sin * vector[0], vector[2]])


@compiled
def _is_out_of_sight(eye, ahead, box, farthest, slope):
    """Whether the ball around a box is outside the cone around the image."""
    depth, square, radius = 0.0, 0.0, 0.0
    for axis in range(3):
        away = box[axis] - eye[axis]
        depth += away * ahead[axis]
        square += away * away
        radius += box[3 + axis] ** 2
    radius = math.sqrt(radius)
    aside = math.sqrt(max(square - depth * depth, 0.0))
    return depth - radius > farthest or aside - depth * slope > radius * math.sqrt(1 + slope * slope)


@compiled
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
