"""The privileged teacher of the task with all feet: it knows the terrain.

Each foot goes to the safe place nearest to its default landing, with a margin to edges, so that small errors of a
student do not end beside it. All places that are as safe are in the label too: the nearest one jumps from stone to
stone between two steps, and a regression to it would end in the gap.
"""

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from iap._compile import compiled
from iap.envs.protocols import Label
from iap.envs.quadruped.footsteps.ground_cameras import EDGE_M
from iap.locomotion.walker_kernels import heading_of

if TYPE_CHECKING:
    from iap.envs.quadruped.footsteps.env import Footsteps

GRID_M = 0.01  # spacing of the candidate footholds
LENGTHENING_COST = 2.0  # relative to shortening a step
SIDEWAYS_COST = 2.0  # relative to forward
CELLS = (14, 8)  # of a cost map, forward and left: about 2 cm each
TOLERANCE_M = 0.05  # the distance from a safe place that costs 1
MARGIN_M, MARGIN_COST = 0.07, 20.0  # of a foothold to the nearest edge
IDLE_WEIGHT = 0.3  # of feet that need no target now
DECISION_IMPORTANCE = 4.0  # of states in which a foot needs a target
FOOT_AXES = tuple((3 * leg, 3 * leg + 1, 3 * leg + 2) for leg in range(4))


def label_footholds(env: "Footsteps") -> Label:
    """The action of the teacher; cost maps if an action chooses all three axes of the footholds."""
    default, ranges, needed = env.default_command(), env.ranges, env.needs_target()
    landings = env.walker.next_landings(env.motion, default.velocity_m_s, default.height_m)
    offsets, costs, ups, found = _choose_footholds(
        landings,
        heading_of(env.motion.rotation)[:2, :2].copy(),
        env.terrain_boxes,
        np.array((ranges.forward_m, ranges.left_m, ranges.up_m)),
        env.walker.robot.toe_radius_m,
        CELLS,
    )
    pitch = -math.atan(env.terrain.slope(env.motion.position_m))
    action = env.to_action(replace(default, offsets_m=offsets, pitch_rad=pitch))
    importance = DECISION_IMPORTANCE if needed.any() else 1.0
    if env.chooses_part_of_the_action:
        return Label(action, importance=importance)
    weights = np.ones(len(action), np.float32)
    weights[:12] = np.repeat(np.where(needed > 0, 1.0, IDLE_WEIGHT) * found, 3)
    low, high = ranges.up_m
    dependent = np.clip((2 * ups - high - low) / (high - low), -1, 1)
    return Label(action, weights, importance, FOOT_AXES, costs.astype(np.float32), dependent.astype(np.float32))


@compiled
def _choose_footholds(landings, heading, boxes, ranges, toe_radius, cells):
    """For each foot the best offset, its cost map, the height at the safe place nearest to each cell, and 1 or 0.

    The last is 1 if there is a safe place at all.
    """
    rows = int((ranges[0, 1] - ranges[0, 0]) / GRID_M)
    columns = int((ranges[1, 1] - ranges[1, 0]) / GRID_M)
    offsets, found = np.zeros((4, 3)), np.zeros(4)
    costs, ups = np.zeros((4, cells[0], cells[1])), np.zeros((4, cells[0], cells[1]))
    safe = np.empty((rows * columns, 3))
    for foot in range(4):
        count, best = 0, np.inf
        for row in range(rows):
            for column in range(columns):
                ahead, left = ranges[0, 0] + (row + 0.5) * GRID_M, ranges[1, 0] + (column + 0.5) * GRID_M
                x = landings[foot, 0] + heading[0, 0] * ahead + heading[0, 1] * left
                y = landings[foot, 1] + heading[1, 0] * ahead + heading[1, 1] * left
                top, edge = _ground_at(x, y, boxes)
                up = top + toe_radius - landings[foot, 2]
                if edge < EDGE_M or up < ranges[2, 0] - EDGE_M or up > ranges[2, 1] + EDGE_M:
                    continue
                safe[count] = ahead, left, up
                count += 1
                cost = ahead**2 * (LENGTHENING_COST if ahead > 0 else 1.0) + SIDEWAYS_COST * left**2
                cost += MARGIN_COST * max(0.0, MARGIN_M - edge) ** 2
                if cost < best:
                    best = cost
                    offsets[foot, 0], offsets[foot, 1], offsets[foot, 2] = ahead, left, up
        if count > 0:
            found[foot] = 1.0
            _put_maps(safe[:count], ranges, costs[foot], ups[foot])
    return offsets, costs, ups, found


@compiled
def _put_maps(safe, ranges, costs, ups):
    """The distance of each cell to the nearest safe place, and the height there."""
    rows, columns = costs.shape
    height, width = (ranges[0, 1] - ranges[0, 0]) / rows, (ranges[1, 1] - ranges[1, 0]) / columns
    for row in range(rows):
        for column in range(columns):
            ahead, left = ranges[0, 0] + (row + 0.5) * height, ranges[1, 0] + (column + 0.5) * width
            nearest = np.inf
            for i in range(len(safe)):
                square = (safe[i, 0] - ahead) ** 2 + (safe[i, 1] - left) ** 2
                if square < nearest:
                    nearest = square
                    ups[row, column] = safe[i, 2]
            costs[row, column] = math.sqrt(nearest) / TOLERANCE_M


@compiled
def _ground_at(x, y, boxes):
    """The height of the ground at a point, and the distance to the nearest edge of the box below it."""
    top, edge = -np.inf, 0.0
    for i in range(len(boxes)):
        dx, dy = x - boxes[i, 0], y - boxes[i, 1]
        cos, sin = boxes[i, 6], boxes[i, 7]
        inside = min(boxes[i, 3] - abs(dx * cos + dy * sin), boxes[i, 4] - abs(dy * cos - dx * sin))
        height = boxes[i, 2] + boxes[i, 5]
        if inside >= 0 and height > top:
            top, edge = height, inside
    return top, edge
