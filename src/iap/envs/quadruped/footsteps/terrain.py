"""Uneven terrains: step-stones, a grid of small stones, and stairs.

All start with a platform below the robot, at height zero, and are above a floor at −0.5 m.
"""

import math
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from jaxtyping import Float

from iap.envs.quadruped.simulation.protocol import Box, Colour

Kind = Literal["step-stones", "stone-grid", "stairs"]
KINDS: tuple[Kind, ...] = ("step-stones", "stone-grid", "stairs")

FLOOR_M = -0.5
PLATFORM_BACK_M, PLATFORM_LENGTH_M, PLATFORM_WIDTH_M = -0.45, (0.75, 1.0), 1.0
LENGTH_M = 5.0  # smallest length of a terrain, longer than a robot walks in an episode

STONE_WIDTH_M, STONE_LENGTH_M, STONE_GAP_M = 0.5, (0.5, 0.8), (0.1, 0.2)
GRID_STONE_M, GRID_GAP_M, GRID_YAW_RAD, GRID_COLUMNS = 0.15, (0.13, 0.17), 0.1, 6
SLOPE_RANGE_M = 0.5  # ahead and behind, over which the slope of stairs is measured
STAIR_DEPTH_M, STAIR_HEIGHT_M, STAIR_WIDTH_M, STAIRS = (0.25, 0.33), (0.16, 0.19), 1.0, 16

STONE, OTHER_STONE, GROUND = (0.72, 0.68, 0.60), (0.64, 0.60, 0.53), (0.30, 0.33, 0.36)


@dataclass(frozen=True, eq=False)
class Terrain:
    """Boxes to walk on, the floor last.

    Attributes:
        kind: its name.
        boxes: the platform, the stones or stairs, and the floor.
    """

    kind: Kind
    boxes: tuple[Box, ...]

    def heights(self, points: Float[np.ndarray, "... 2"], margin_m: float = 0.0) -> Float[np.ndarray, "..."]:
        """The height of the ground at each point, with all boxes smaller by the margin on every side."""
        heights = np.full(points.shape[:-1], -np.inf)
        low, high = points.reshape(-1, 2).min(axis=0).tolist(), points.reshape(-1, 2).max(axis=0).tolist()
        for box in self.boxes:
            radius = math.hypot(*box.size_m[:2]) / 2
            if any(box.centre_m[i] + radius < low[i] or box.centre_m[i] - radius > high[i] for i in range(2)):
                continue
            sin, cos = np.sin(box.yaw_rad), np.cos(box.yaw_rad)
            offset = points - np.array(box.centre_m[:2])
            ahead = offset[..., 0] * cos + offset[..., 1] * sin
            left = offset[..., 1] * cos - offset[..., 0] * sin
            half_length, half_width = box.size_m[0] / 2 - margin_m, box.size_m[1] / 2 - margin_m
            inside = (np.abs(ahead) <= half_length) & (np.abs(left) <= half_width)
            top = box.centre_m[2] + box.size_m[2] / 2
            heights = np.where(inside, np.maximum(heights, top), heights)
        return heights

    def slope(self, position_m: Float[np.ndarray, " 3"]) -> float:
        """The slope of a line fitted to the ground below, ahead and behind; 0 except on stairs."""
        if self.kind != "stairs":
            return 0.0
        away = np.linspace(-SLOPE_RANGE_M, SLOPE_RANGE_M, 21)
        heights = self.heights(np.stack([position_m[0] + away, np.full(21, position_m[1])], axis=-1))
        return float(away @ np.maximum(heights, 0.0) / (away @ away))

    def mirrored(self) -> "Terrain":
        """The terrain with left and right exchanged."""
        boxes = [replace(box, centre_m=_mirrored_point(box.centre_m), yaw_rad=-box.yaw_rad) for box in self.boxes]
        return Terrain(self.kind, tuple(boxes))


def draw_terrain(kind: Kind, rng: np.random.Generator) -> Terrain:
    """A random terrain of this kind, with the ranges of the paper."""
    front_m = PLATFORM_BACK_M + rng.uniform(*PLATFORM_LENGTH_M)
    platform = _pillar((PLATFORM_BACK_M, front_m), (-PLATFORM_WIDTH_M / 2, PLATFORM_WIDTH_M / 2), 0.0, STONE)
    draw = {"step-stones": _step_stones, "stone-grid": _stone_grid, "stairs": _stairs}[kind]
    floor = Box("floor", (LENGTH_M / 2, 0.0, FLOOR_M - 0.5), (LENGTH_M + 8.0, 10.0, 1.0), colour=GROUND)
    return Terrain(kind, (platform, *draw(front_m, rng), floor))


def flat_terrain() -> Terrain:
    """One large plate."""
    return Terrain("step-stones", (_pillar((-5.0, 20.0), (-5.0, 5.0), 0.0, STONE),))


def max_boxes(kind: Kind) -> int:
    """The largest number of boxes of a terrain of this kind."""
    rows = {
        "step-stones": LENGTH_M / (STONE_LENGTH_M[0] + STONE_GAP_M[0]),
        "stone-grid": GRID_COLUMNS * (LENGTH_M / (GRID_STONE_M + GRID_GAP_M[0]) + 1),
        "stairs": STAIRS + 1,
    }
    return int(rows[kind]) + 3


def _step_stones(front_m: float, rng: np.random.Generator) -> list[Box]:
    stones: list[Box] = []
    while front_m < LENGTH_M:
        back_m = front_m + rng.uniform(*STONE_GAP_M)
        front_m = back_m + rng.uniform(*STONE_LENGTH_M)
        colour = STONE if len(stones) % 2 else OTHER_STONE
        stones.append(_pillar((back_m, front_m), (-STONE_WIDTH_M / 2, STONE_WIDTH_M / 2), 0.0, colour))
    return stones


def _stone_grid(front_m: float, rng: np.random.Generator) -> list[Box]:
    """Rows and columns at random distances, rotated as a whole about the middle of the platform's front."""
    yaw = rng.uniform(-GRID_YAW_RAD, GRID_YAW_RAD)
    rotation = np.array([[np.cos(yaw), -np.sin(yaw)], [np.sin(yaw), np.cos(yaw)]])
    rows = int(LENGTH_M / (GRID_STONE_M + GRID_GAP_M[0]))
    xs = np.cumsum(GRID_STONE_M + rng.uniform(*GRID_GAP_M, rows)) - GRID_STONE_M / 2
    ys = np.cumsum(GRID_STONE_M + rng.uniform(*GRID_GAP_M, GRID_COLUMNS))
    ys -= (ys[GRID_COLUMNS // 2 - 1] + ys[GRID_COLUMNS // 2]) / 2  # the robot starts between two columns
    stones: list[Box] = []
    for i, x in enumerate(xs):
        for j, y in enumerate(ys):
            centre = rotation @ (x, y) + (front_m, 0.0)
            size = (GRID_STONE_M, GRID_STONE_M, -FLOOR_M)
            colour = STONE if (i + j) % 2 else OTHER_STONE
            stones.append(Box("floor", (centre[0], centre[1], FLOOR_M / 2), size, yaw, colour))
    return stones


def _stairs(front_m: float, rng: np.random.Generator) -> list[Box]:
    stairs: list[Box] = []
    top_m = 0.0
    sides = (-STAIR_WIDTH_M / 2, STAIR_WIDTH_M / 2)
    for i in range(STAIRS):
        top_m += rng.uniform(*STAIR_HEIGHT_M)
        back_m, front_m = front_m, front_m + rng.uniform(*STAIR_DEPTH_M)
        stairs.append(_pillar((back_m, front_m), sides, top_m, STONE if i % 2 else OTHER_STONE))
    return [*stairs, _pillar((front_m, front_m + 2.0), sides, top_m, STONE)]


def _pillar(x_m: tuple[float, float], y_m: tuple[float, float], top_m: float, colour: Colour) -> Box:
    """A box from the floor up to `top_m`."""
    centre = ((x_m[0] + x_m[1]) / 2, (y_m[0] + y_m[1]) / 2, (top_m + FLOOR_M) / 2)
    return Box("floor", centre, (x_m[1] - x_m[0], y_m[1] - y_m[0], top_m - FLOOR_M), colour=colour)


def _mirrored_point(place_m: tuple[float, float, float]) -> tuple[float, float, float]:
    x, y, z = place_m
    return x, -y, z
