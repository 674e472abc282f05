"""The privileged teacher of the obstacle course: it knows the walls and steers towards the next gap.

It heads for the nearest point of the gap that leaves room for the trunk, at full stride.
"""

import math
from typing import TYPE_CHECKING

import numpy as np

from iap.envs.protocols import Label
from iap.envs.quadruped.obstacle_course.course import WALL_THICKNESS_M, Course

if TYPE_CHECKING:
    from iap.envs.quadruped.obstacle_course.env import ObstacleCourse

STRIDE = (0.9, 0.5, -0.2, -0.5)  # frequency, amplitude, lift, height, as actions
CLEARANCE_M = 0.25  # of the trunk's centre to the end of a wall
EDGE_M = 0.35  # and to the edge of the platform
BEHIND_M = 0.12  # the gap matters until the trunk has passed the wall by this
NEAREST_M = 0.5  # to a point that it heads for
LARGEST_HEADING_RAD = 0.9
HEADING_GAIN, RATE_GAIN = 2.7, 0.14  # steering for each rad of error, and for each rad/s


def label_stride(env: "ObstacleCourse") -> Label:
    """The stride parameters of the teacher; residuals of single motors are zero."""
    state = env.motion
    x, y, _ = state.position_m
    error = wanted_heading(env.course, x, y) - heading(state.quaternion)
    steering = HEADING_GAIN * error - RATE_GAIN * state.rates_rad_s[2]
    action = np.zeros(env.action_space.shape or (), np.float32)
    action[: len(STRIDE) + 1] = (*STRIDE, steering)
    return Label(np.clip(action, -1, 1))


def wanted_heading(course: Course, x: float, y: float) -> float:
    """The direction to the nearest point of the next gap, from a position on the course."""
    ahead = [wall for wall in course.walls if wall.x_m > x - BEHIND_M]
    widest = course.width_m / 2 - EDGE_M
    if not ahead:
        return math.atan2(min(max(y, -widest), widest) - y, NEAREST_M)
    wall = ahead[0]
    side = 1 if wall.gap_at_left else -1
    narrowest = min(course.width_m / 2 - wall.gap_m + CLEARANCE_M, widest)
    target = side * min(max(side * y, narrowest), widest)
    angle = math.atan2(target - y, max(wall.x_m - WALL_THICKNESS_M / 2 - x, NEAREST_M))
    return min(max(angle, -LARGEST_HEADING_RAD), LARGEST_HEADING_RAD)


def heading(quaternion: np.ndarray) -> float:
    """The angle about the vertical axis, of a unit quaternion (w, x, y, z)."""
    w, x, y, z = quaternion
    return math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
