"""The body of a walking robot, compiled: its measurement, its heading and tilt, and the ground below it."""

import math

import numpy as np

from iap._compile import compiled

SHORTEST_STANCE_M = 0.1  # from rear feet to front feet, of which a slope can be told


@compiled
def measure(motion, position, quaternion, velocity, rates, angles, pressures, least_pressure):
    """Fill the arrays of a `walker.Motion` with what was measured."""
    motion[0][:] = position
    motion[1][:] = rotation_of(quaternion)
    motion[2][:] = velocity
    motion[3][:] = motion[1] @ rates
    for leg in range(4):
        for joint in range(3):
            motion[4][leg, joint] = angles[3 * leg + joint]
        motion[5][leg] = pressures[leg] > least_pressure


@compiled
def rotation_of(quaternion):
    """The matrix of a unit quaternion (w, x, y, z)."""
    w, x, y, z = quaternion
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


@compiled
def roll_pitch_of(rotation):
    """The angles of the body against the level, with pitch positive nose down."""
    return math.atan2(rotation[2, 1], rotation[2, 2]), -math.asin(min(max(rotation[2, 0], -1.0), 1.0))


@compiled
def heading_of(rotation):
    """From the frame that has turned with the body, but lies level, to the world."""
    yaw = math.atan2(rotation[1, 0], rotation[0, 0])
    c, s = math.cos(yaw), math.sin(yaw)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


@compiled
def ground_below(footholds, position, heading):
    """The slope from the rear feet to the front feet, and how high their plane is below the body."""
    feet = (footholds - position) @ heading
    front, rear = (feet[0] + feet[1]) / 2, (feet[2] + feet[3]) / 2
    slope = (front[2] - rear[2]) / max(front[0] - rear[0], SHORTEST_STANCE_M)
    middle = (front + rear) / 2
    return slope, position[2] + middle[2] - slope * middle[0]
