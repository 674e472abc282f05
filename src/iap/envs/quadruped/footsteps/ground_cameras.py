"""What two depth cameras see of the ground: whole images, or a window around the place where a foot would land."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float32, Int

from iap.envs.quadruped.footsteps import single_foot_kernels
from iap.envs.quadruped.footsteps.single_foot import Turn
from iap.envs.quadruped.footsteps.terrain import FLOOR_M, Terrain
from iap.envs.quadruped.simulation.protocol import Box, View
from iap.envs.rendering.depth_rays import DepthRays, mount_of
from iap.locomotion.walker import Motion

DEPTH_SIZE = (24, 32)
FRONT_M, BELLY_M = (0.197, 0.0, -0.115), (-0.092, 0.0, -0.105)
VIEWS = tuple(View(place, DEPTH_SIZE, fov_deg=75.0, pitch_rad=math.pi / 2) for place in (FRONT_M, BELLY_M))
FARTHEST_M = 2.0  # that is told apart

FOOTING = ("gap", "edge", "safe")
EDGE_M = 0.035  # from which on a foot does not slip off
SAME_HEIGHT_M = 0.01


class GroundCameras:
    """A camera at the front and one at the belly, both looking down."""

    def __init__(self, toe_radius_m: float) -> None:
        """Cameras of a robot with these toes."""
        self._toe_radius_m = toe_radius_m
        self._rays = DepthRays(VIEWS[0], FARTHEST_M)

    def place(self, boxes: Sequence[Box]) -> None:
        """Look at this terrain from now on."""
        self._rays.place(boxes)

    def depths(self, motion: Motion) -> Float32[np.ndarray, "48 32 1"]:
        """In metres, those of the front camera above those of the belly camera, forward up."""
        return np.concatenate([self._rays.look(view, motion.position_m, motion.rotation) for view in VIEWS])[..., None]

    def around(self, turn: Turn, motion: Motion) -> Float32[np.ndarray, "16 16 2"]:
        """What a foot sees around the place where it would land: see `single_foot_kernels.footing`."""
        return single_foot_kernels.see_around(*self._place_of(turn, motion))

    def labels(self, terrain: Terrain, motion: Motion) -> Int[np.ndarray, "48 32"]:
        """What a foot would find at the place that each pixel shows, as an index of `FOOTING`."""
        return np.concatenate(self._labels(terrain, motion))

    def labels_around(self, turn: Turn, terrain: Terrain, motion: Motion) -> Int[np.ndarray, "16 16"]:
        """The same of the window around the place where a foot would land."""
        rows, columns = single_foot_kernels.window_around(*self._place_of(turn, motion))
        return self._labels(terrain, motion)[turn.camera][rows[:, None], columns]

    def _labels(self, terrain: Terrain, motion: Motion) -> Int[np.ndarray, "2 24 32"]:
        points = np.stack([self._rays.surface(view, motion.position_m, motion.rotation) for view in VIEWS])
        is_safe = np.abs(terrain.heights(points[..., :2], EDGE_M) - points[..., 2]) < SAME_HEIGHT_M
        is_gap = points[..., 2] < FLOOR_M + SAME_HEIGHT_M
        return np.where(is_gap, FOOTING.index("gap"), np.where(is_safe, FOOTING.index("safe"), FOOTING.index("edge")))

    def _place_of(self, turn: Turn, motion: Motion) -> tuple[Any, ...]:
        """Of a landing, and of the camera that is over it: what compiled loops take."""
        landing = (turn.landing_m, turn.side, self._toe_radius_m)
        return *landing, mount_of(VIEWS[turn.camera]), motion.position_m, motion.rotation, self._rays.scene
