"""A Unitree A1 that trots; its trajectory generator is steered, and its trunk slides along walls and furniture."""

import math
from typing import Any

import numpy as np
from jaxtyping import Float, Float32, Int, UInt8

from iap.envs.indoor.robots.protocol import Mirror, Pose
from iap.envs.indoor.scenes.compiled import CompiledScene
from iap.envs.indoor.scenes.view import SceneView
from iap.envs.quadruped.simulation.mjcf import build_model_xml
from iap.envs.quadruped.simulation.mujoco import MujocoSimulator
from iap.envs.quadruped.simulation.protocol import View
from iap.locomotion.robots import load_robot
from iap.locomotion.trajectory_generator import TROT, TrajectoryGenerator

STEP_S, PHYSICS_STEPS = 0.02, 3
EYE_AHEAD_M, EYE_UP_M, STANDING_M = 0.28, 0.04, 0.27
RADIUS_M = 0.2
# Frequency, amplitude, lift, height, steering at an action of 0, and their change at an action of 1.
STRIDE_MIDDLE = (3.4, 0.2, 0.4, -0.05, 0.0)
STRIDE_RANGE = (0.6, 0.2, 0.2, 0.2, 1.6)
SMOOTHING = 0.3  # weight of a new action in the exponential moving average that is applied
LOWEST_M, LARGEST_TILT_RAD = 0.14, 0.7  # beyond these the robot has fallen
SENSORS = 8
PHASE_OFFSETS = (1.0, 1.0)  # of the mirror image's phase, which is half a cycle later
TURN_GAIN, RATE_GAIN, ALIGNED_RAD, SLOW_M = 1.6, 0.12, 1.1, 0.4  # of the expert


class Walker:
    """An A1 on its trajectory generator.

    | action | meaning |
    |---|---|
    | 0 | stride frequency |
    | 1 | stride length: about 1 m/s forwards at 1, on the spot at −1 |
    | 2 | lift of the feet |
    | 3 | height of the trunk |
    | 4 | steering, positive to the left |
    """

    actions = len(STRIDE_MIDDLE)
    sensors = SENSORS
    radius_m = RADIUS_M
    eye_m = STANDING_M + EYE_UP_M
    control_step_s = STEP_S
    mirror = Mirror((-1, 2, -3, 4, -5, -6, -7, 8), (1, 2, 3, 4, -5), (0.0,) * 5 + PHASE_OFFSETS + (0.0,))

    def __init__(self, size: tuple[int, int], fov_deg: float) -> None:
        """With a camera of this image size and vertical field of view."""
        self._robot = load_robot("a1")
        self._views = [View((EYE_AHEAD_M, 0.0, EYE_UP_M), size, fov_deg)]
        self.xml = build_model_xml(self._robot, self._views, 0, STEP_S / PHYSICS_STEPS)
        self._size = size
        self._generator = TrajectoryGenerator(TROT, self._robot.pose_rad, STEP_S)
        self._simulator: MujocoSimulator | None = None
        self._view: SceneView | None = None
        self._action = np.zeros(self.actions)
        self._touched = False

    def enter(self, scene: CompiledScene) -> None:
        """Move into a scene."""
        self.close()
        self._scene = scene
        self._simulator = MujocoSimulator(self._robot, self._views, 0, STEP_S, PHYSICS_STEPS, scene.model)
        self._view = SceneView(scene.model, scene.pieces, scene.visibility, self._size, _trunk_camera(scene.model))
        self._obstacles = scene.model.geom("obstacles").id

    def reset(self, pose: Pose, rng: np.random.Generator) -> None:
        """Start at a pose, at rest; either front foot swings first."""
        self._active.reset((), (pose.x, pose.y, self._scene.floor_z_m + STANDING_M), pose.yaw_rad)
        self._generator.reset(0.75 if rng.integers(2) else 0.25)
        self._action[:] = 0
        self._touched = False

    def step(self, action: Float[np.ndarray, " 5"]) -> bool:
        """Move the legs for 0.02 s; whether the trunk touched an obstacle."""
        self._action += SMOOTHING * (action - self._action)
        frequency, amplitude, lift, height, steering = STRIDE_MIDDLE + np.multiply(STRIDE_RANGE, self._action)
        self._active.step(self._generator.advance(frequency, amplitude, lift, height, steering))
        contacts = self._active.data.contact.geom
        self._touched = bool((contacts == self._obstacles).any())
        return self._touched

    def pose(self) -> Pose:
        """Where the trunk is."""
        state = self._active.state()
        w, x, y, z = state.quaternion.tolist()
        yaw = math.atan2(2 * (w * z + x * y), 1 - 2 * (y * y + z * z))
        return Pose(float(state.position_m[0]), float(state.position_m[1]), yaw)

    def sense(self) -> Float32[np.ndarray, " 8"]:
        """Roll, pitch; rates about x, y, z; phase of the gait (2); whether the trunk touched an obstacle."""
        state = self._active.state()
        return np.array([*self._tilt(), *state.rates_rad_s, *self._generator.observe(), self._touched], np.float32)

    def fallen(self) -> bool:
        """Whether the trunk is low or tilted."""
        height = float(self._active.state().position_m[2]) - self._scene.floor_z_m
        return not (height > LOWEST_M and max(map(abs, self._tilt())) < LARGEST_TILT_RAD)

    def drive(self, heading_error_rad: float, distance_m: float) -> Float32[np.ndarray, " 5"]:
        """Full stride ahead; shorter strides in a turn."""
        rate = float(self._active.state().rates_rad_s[2])
        steering = np.clip(TURN_GAIN * heading_error_rad - RATE_GAIN * rate, -1, 1)
        ahead = max(0.0, 1 - abs(heading_error_rad) / ALIGNED_RAD) * min(1.0, distance_m / SLOW_M)
        return np.array([0.5, 2 * ahead - 1, 0.0, 0.0, steering], np.float32)

    def image(self) -> UInt8[np.ndarray, "H W 3"]:
        """The colours of the camera."""
        return self._aimed().image(self._active.data)

    def depth(self) -> Float32[np.ndarray, "H W"]:
        """The distances of the camera, in metres."""
        return self._aimed().depth(self._active.data)

    def segments(self) -> Int[np.ndarray, "H W"]:
        """The class of each pixel of the camera."""
        return self._aimed().segments(self._active.data)

    def picture(self) -> UInt8[np.ndarray, "H W 3"]:
        """The robot from behind and above, without ceilings."""
        self._aimed().show_from_above()
        return self._active.scene()

    def close(self) -> None:
        """Free the cameras."""
        for part in (self._view, self._simulator):
            if part is not None:
                part.close()
        self._view = self._simulator = None

    @property
    def _active(self) -> MujocoSimulator:
        if self._simulator is None:
            raise RuntimeError("the robot is in no scene: reset the environment first")
        return self._simulator

    def _aimed(self) -> SceneView:
        """The view, with the positions after the last step."""
        assert self._view is not None
        self._active.update_cameras()
        return self._view

    def _tilt(self) -> tuple[float, float]:
        w, x, y, z = self._active.state().quaternion.tolist()
        roll = math.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
        return roll, math.asin(min(max(2 * (w * y - z * x), -1.0), 1.0))


def _trunk_camera(model: Any) -> int:
    """The number of the first camera on the robot: those of the world come first."""
    return int(np.flatnonzero(model.cam_bodyid != 0)[0])
