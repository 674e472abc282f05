"""The boxes that a robot may touch from where it is: the search for contacts leaves out the others.

Nothing else depends on which those are, since a contact is the same whatever else was looked at.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

MOVED_M = 0.1  # forward or sideways, after which boxes are chosen anew
MARGIN_M = 0.3  # by which chosen boxes may be out of reach: that way, and the way of a control step at any speed


class NearBoxes:
    """Switches the boxes of a MuJoCo model on and off."""

    def __init__(self, model: Any, geoms: Sequence[int]) -> None:
        """Boxes with these numbers, and a robot that is all the rest."""
        self._model = model
        self._geoms = np.array(geoms, int)
        self._bodies = model.geom_bodyid[self._geoms]
        self._reach_m = max(_reach_m(model, geom) for geom in range(model.ngeom) if geom not in set(geoms))
        self._centres_m = np.zeros((len(geoms), 2))
        self._radii_m = np.zeros(len(geoms))
        self._bits = np.zeros(len(geoms), np.int32)
        self._x_m = self._y_m = math.inf

    def place(self, i: int, centre_m: Sequence[float], half_m: Float[np.ndarray, " 3"], bits: int) -> None:
        """Take note of the i-th box, and of what may touch it."""
        self._centres_m[i] = centre_m[:2]
        self._radii_m[i] = math.hypot(half_m[0], half_m[1])
        self._bits[i] = bits
        self._x_m = math.inf

    def follow(self, trunk_m: Float[np.ndarray, " 3"]) -> None:
        """Choose anew if the trunk has moved away from where it was."""
        x_m, y_m = trunk_m[0], trunk_m[1]
        if abs(x_m - self._x_m) <= MOVED_M and abs(y_m - self._y_m) <= MOVED_M:
            return
        self._x_m, self._y_m = float(x_m), float(y_m)
        away_m = np.hypot(self._centres_m[:, 0] - x_m, self._centres_m[:, 1] - y_m) - self._radii_m
        bits = np.where(away_m > self._reach_m + MARGIN_M, 0, self._bits)  # a place that is not a number is near all
        self._model.geom_contype[self._geoms] = self._model.body_contype[self._bodies] = bits


def _reach_m(model: Any, geom: int) -> float:
    """How far from the trunk's middle a part of the robot may be, however its joints turn."""
    reach_m, body = np.linalg.norm(model.geom_pos[geom]) + model.geom_rbound[geom], model.geom_bodyid[geom]
    while model.body_parentid[body] != 0:
        reach_m += np.linalg.norm(model.body_pos[body])
        body = model.body_parentid[body]
    return float(reach_m)
