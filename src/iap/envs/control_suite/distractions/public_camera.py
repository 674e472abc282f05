"""The camera's poses as the public code of the Distracting Control Suite distributes them, for studies that compare.

It differs from `camera_pose` in these ways:

- After each step the azimuth is computed by `atan2` and clipped, so a camera that crosses the pole jumps to the edge of
  the range. Reacher's camera, above the pole, never gets to x < 0, and half of its episodes start at the edge.
- The point that a fixed camera looks at is as far away as the robot is at the reset, so it depends on the robot's pose.
- The first frame comes after one step of the random walk.
- The initial speed is uniform up to the limit of a camera 4 m away, then cut to the limit of this camera.
- The range of the elevation ends at the horizon, also if the original camera is below it.
"""

import math
from typing import Any

import numpy as np

from iap.envs.control_suite.distractions.camera_pose import (
    NOMINAL_RADIUS_M,
    ROLL_SPEED_PER_SCALE,
    ROLL_STEP_PER_SCALE,
    SPEED_PER_SCALE,
    STEP_PER_SCALE,
    CameraDistraction,
    Motion,
    Place,
    draw_place,
    is_above,
    place_of,
    place_ranges,
    position,
)

HORIZON = math.pi / 2


def public_ranges(own: Place, scale: float) -> tuple[Place, Place]:
    """The ranges around the camera's original place; the horizon is a limit in any case."""
    low, high = place_ranges(own, scale)
    if is_above(own):
        return low, high
    return (
        low._replace(azimuth=max(low.azimuth, -math.pi)),
        high._replace(azimuth=min(high.azimuth, 0.0), polar=min(high.polar, HORIZON)),
    )


def public_walk(
    place: Place, motion: Motion, low: Place, high: Place, own: Place, scale: float, rng: np.random.Generator
) -> tuple[Place, Motion]:
    """One step of the random walk; a scale of 0 is one of a camera that stands still."""
    unit_m = scale * own.radius_m / NOMINAL_RADIUS_M
    velocity_m = motion.velocity_m + rng.normal(size=3) * STEP_PER_SCALE * unit_m
    velocity_m *= min(1.0, SPEED_PER_SCALE * unit_m / max(float(np.linalg.norm(velocity_m)), 1e-12))
    limit = ROLL_SPEED_PER_SCALE * scale
    roll = float(np.clip(motion.roll + rng.normal() * ROLL_STEP_PER_SCALE * scale, -limit, limit))
    before_m = position(place)
    wanted = place_of(before_m + velocity_m)._replace(roll=place.roll + roll)
    arrived = Place(*np.clip(wanted, low, high).tolist())
    return arrived, Motion(position(arrived) - before_m, arrived.roll - place.roll)


class PublicCameraDistraction(CameraDistraction):
    """The pose of one of a model's cameras, distributed as in the public code."""

    def __init__(self, model: Any, number: int, scale: float, dynamic: bool) -> None:
        super().__init__(model, number, scale, dynamic)
        self._low, self._high = public_ranges(self._own, scale)
        self._moving_scale = scale if dynamic else 0.0
        own_m = position(self._own)
        self._own_m, towards = own_m, self._target_m - own_m
        self._towards = towards / np.linalg.norm(towards)

    def reset(self, rng: np.random.Generator) -> None:
        """Draw the place and the initial motion of an episode, and advance by one step."""
        self._rng, scale = rng, self._moving_scale
        self._place = draw_place(self._low, self._high, rng)
        direction = rng.normal(size=3)
        velocity_m = rng.uniform(0, SPEED_PER_SCALE * scale) * direction / np.linalg.norm(direction)
        self._motion = Motion(velocity_m, rng.uniform(-1, 1) * ROLL_SPEED_PER_SCALE * scale)
        self._is_at_reset = True
        self._walk()

    def advance(self) -> None:
        """Advance by one step of the task."""
        if self._dynamic:
            self._walk()

    def apply(self, data: Any) -> None:
        """Write the pose into the simulator's state; the first time, measure how far the robot is away."""
        if self._is_at_reset and self._follows is None:
            far_m = np.linalg.norm(self._own_m - data.subtree_com[1])
            self._target_m = self._own_m + far_m * self._towards
        self._is_at_reset = False
        super().apply(data)

    def _walk(self) -> None:
        self._place, self._motion = public_walk(
            self._place, self._motion, self._low, self._high, self._own, self._moving_scale, self._rng
        )
        self._pose = None
