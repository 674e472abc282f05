"""Disables collisions with boxes that are out of the robot's reach, which makes contact detection faster.

The simulated motion does not change, since contacts do not depend on boxes that are not touched.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

MOVED_M = 0.1  # distance along x or y after which the boxes are selected again
MARGIN_M = 0.3  # added to the reach: covers that distance, and the motion within a control step


class NearBoxes:
    """Enables and disables the boxes of a MuJoCo model."""

    def __init__(self, model: Any, geoms: Sequence[int]) -> None:
        """Boxes with these geom numbers; all other geoms belong to the robot."""
        self._model = model
        self._geoms = np.array(geoms, int)
        self._bodies = model.geom_bodyid[self._geoms]
        robot = [geom for geom in range(model.ngeom) if model.geom_bodyid[geom] != 0 and geom not in set(geoms)]
        self._reach_m = max(_reach_m(model, geom) for geom in robot)
        self._centres_m = np.zeros((len(geoms), 2))
        self._radii_m = np.zeros(len(geoms))
        self._bits = np.zeros(len(geoms), np.int32)
        self._x_m = self._y_m = math.inf

    def set_box(self, i: int, centre_m: Sequence[float], half_m: Float[np.ndarray, " 3"], bits: int) -> None:
        """Store the i-th box and its collision bits."""
        self._centres_m[i] = centre_m[:2]
        self._radii_m[i] = math.hypot(half_m[0], half_m[1])
        self._bits[i] = bits
        self._x_m = math.inf

    def update(self, trunk_m: Float[np.ndarray, " 3"]) -> None:
        """Select the boxes again if the trunk has moved."""
        x_m, y_m = trunk_m[0], trunk_m[1]
        if abs(x_m - self._x_m) <= MOVED_M and abs(y_m - self._y_m) <= MOVED_M:
            return
        self._x_m, self._y_m = float(x_m), float(y_m)
        distance_m = np.hypot(self._centres_m[:, 0] - x_m, self._centres_m[:, 1] - y_m) - self._radii_m
        bits = np.where(distance_m > self._reach_m + MARGIN_M, 0, self._bits)  # NaN positions enable all boxes
        self._model.geom_contype[self._geoms] = self._model.body_contype[self._bodies] = bits


def _reach_m(model: Any, geom: int) -> float:
    """The largest distance of a part of the robot from the trunk's centre, for any joint angles."""
    reach_m, body = np.linalg.norm(model.geom_pos[geom]) + model.geom_rbound[geom], model.geom_bodyid[geom]
    while model.body_parentid[body] != 0:
        reach_m += np.linalg.norm(model.body_pos[body])
        body = model.body_parentid[body]
    return float(reach_m)
