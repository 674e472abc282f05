"""A round base on wheels, without physics: it stops at obstacles or slides along them."""

import math
from typing import Any

import numpy as np
from jaxtyping import Float, Float32, Int, UInt8

from iap._compile import compiled
from iap.envs.indoor.grids import interpolate
from iap.envs.indoor.robots.protocol import Mirror, Pose
from iap.envs.indoor.scenes.compiled import CompiledScene
from iap.envs.indoor.scenes.view import SceneView
from iap.envs.indoor.scenes.visibility import aim
from iap.envs.rendering.camera import Camera, load_mujoco

RADIUS_M, EYE_M, EYE_PITCH_RAD = 0.18, 0.42, 0.12
STEP_S, SPEED_M_S, TURN_RAD_S = 0.1, 1.0, 1.6
BACKWARDS = 0.3  # of the speed forwards
SUBSTEPS = 4  # of the motion of a step, each checked for obstacles
SENSORS = 3
PICTURE_SIZE, PICTURE_BACK_M, PICTURE_UP_M, PICTURE_FOV_DEG = (480, 640), 1.9, 2.3, 60
TURN_GAIN, ALIGNED_RAD, SLOW_M = 2.2, 0.9, 0.35  # of the expert

XML = f"""
<mujoco model="rolling base">
  <compiler angle="radian"/>
  <visual>
    <headlight ambient=".55 .55 .55" diffuse=".4 .4 .4" specular="0 0 0"/>
    <map znear="0.01" zfar="60"/>
    <quality numquads="1" shadowsize="0"/>
  </visual>
  <statistic extent="1" center="0 0 0"/>
  <asset><texture type="skybox" builtin="flat" rgb1=".03 .03 .04" rgb2=".03 .03 .04" width="8" height="48"/></asset>
  <worldbody>
    <camera name="eye" fovy="{{fov}}"/>
    <camera name="picture" fovy="{PICTURE_FOV_DEG}"/>
    <geom name="base" type="cylinder" size="{RADIUS_M} 0.07" rgba=".16 .17 .2 1" contype="0" conaffinity="0" group="1"/>
    <geom name="mast" type="cylinder" size="0.03 0.15" rgba=".82 .83 .86 1" contype="0" conaffinity="0" group="1"/>
    <geom name="head" type="box" size="0.05 0.08 0.03" rgba=".95 .45 .1 1" contype="0" conaffinity="0" group="1"/>
  </worldbody>
</mujoco>
"""
PARTS_M = {"base": (0.0, 0.09), "mast": (0.0, 0.28), "head": (0.03, 0.44)}  # distance ahead, and height


class RollingBase:
    """A differential drive with a camera.

    | action | meaning |
    |---|---|
    | 0 | speed: 1 m/s forwards at 1, 0.3 m/s backwards at −1 |
    | 1 | turning, 1.6 rad/s to the left at 1 |
    """

    actions = 2
    sensors = SENSORS
    radius_m = RADIUS_M
    eye_m = EYE_M
    control_step_s = STEP_S
    mirror = Mirror((1, -2, 3), (1, -2), (0.0,) * SENSORS)

    def __init__(self, size: tuple[int, int], fov_deg: float) -> None:
        """With a camera of this image size and vertical field of view."""
        self._size = size
        self.xml = XML.format(fov=fov_deg)
        self._view: SceneView | None = None
        self._picture: Camera | None = None
        self._pose = np.zeros(3)
        self._motion = np.zeros(SENSORS, np.float32)

    def enter(self, scene: CompiledScene) -> None:
        """Move into a scene."""
        self.close()
        mujoco = load_mujoco()
        self._scene, self._data = scene, mujoco.MjData(scene.model)
        mujoco.mj_forward(scene.model, self._data)
        self._view = SceneView(scene.model, scene.pieces, scene.visibility, self._size, self._camera("eye"))
        floor = scene.map
        self._map = floor.clearance.astype(np.float64), floor.origin_m[0], floor.origin_m[1], floor.resolution_m

    def reset(self, pose: Pose, rng: np.random.Generator) -> None:
        """Start at a pose, at rest."""
        self._pose[:] = pose
        self._motion[:] = 0

    def step(self, action: Float[np.ndarray, " 2"]) -> bool:
        """Move for 0.1 s; whether an obstacle was in the way."""
        before = self._pose.copy()
        touched = _move(self._pose, float(action[0]), float(action[1]), *self._map)
        forwards = (self._pose[0] - before[0]) * math.cos(before[2]) + (self._pose[1] - before[1]) * math.sin(before[2])
        self._motion[:] = forwards / (STEP_S * SPEED_M_S), action[1], touched
        return touched

    def pose(self) -> Pose:
        """Where it is."""
        return Pose(*self._pose.tolist())

    def sense(self) -> Float32[np.ndarray, " 3"]:
        """Distance forwards and turn of the last step, from −1 to 1, and whether it touched an obstacle."""
        return self._motion.copy()

    def fallen(self) -> bool:
        """Never."""
        return False

    def drive(self, heading_error_rad: float, distance_m: float) -> Float32[np.ndarray, " 2"]:
        """Turn towards a point, and go there as far as it is ahead."""
        turn = np.clip(TURN_GAIN * heading_error_rad / (TURN_RAD_S * 10 * STEP_S), -1, 1)
        speed = max(0.0, 1 - abs(heading_error_rad) / ALIGNED_RAD) * min(1.0, distance_m / SLOW_M)
        return np.array([speed, turn], np.float32)

    def image(self) -> UInt8[np.ndarray, "H W 3"]:
        """The colours of the camera."""
        return self._aimed().image(self._data)

    def depth(self) -> Float32[np.ndarray, "H W"]:
        """The distances of the camera, in metres."""
        return self._aimed().depth(self._data)

    def segments(self) -> Int[np.ndarray, "H W"]:
        """The class of each pixel of the camera."""
        return self._aimed().segments(self._data)

    def picture(self) -> UInt8[np.ndarray, "H W 3"]:
        """The base from behind and above, without ceilings."""
        view, data = self._aimed(), self._data
        x, y, yaw = self._pose
        floor = self._scene.floor_z_m
        for name, (ahead, height) in PARTS_M.items():
            geom = self._scene.model.geom(name).id
            data.geom_xpos[geom] = x + ahead * math.cos(yaw), y + ahead * math.sin(yaw), floor + height
            cos, sin = math.cos(yaw), math.sin(yaw)
            data.geom_xmat[geom] = cos, -sin, 0, sin, cos, 0, 0, 0, 1
        number = self._camera("picture")
        back = x - PICTURE_BACK_M * math.cos(yaw), y - PICTURE_BACK_M * math.sin(yaw), floor + PICTURE_UP_M
        aim(data, number, back, yaw, 0.75)
        if self._picture is None:
            self._picture = Camera(self._scene.model, PICTURE_SIZE, number, fast=False)
        view.show_from_above()
        return self._picture.render(data)

    def close(self) -> None:
        """Free the cameras."""
        for camera in (self._view, self._picture):
            if camera is not None:
                camera.close()
        self._view = self._picture = None

    def _aimed(self) -> SceneView:
        """The view, with its camera at the pose of the base."""
        assert self._view is not None
        x, y, yaw = self._pose
        aim(self._data, self._camera("eye"), (x, y, self._scene.floor_z_m + EYE_M), yaw, EYE_PITCH_RAD)
        return self._view

    def _camera(self, name: str) -> int:
        mujoco: Any = load_mujoco()
        return mujoco.mj_name2id(self._scene.model, mujoco.mjtObj.mjOBJ_CAMERA, name)


@compiled
def _move(pose, speed, turn, clearance, x0, y0, resolution):
    """Move for one step in place; whether an obstacle was in the way."""
    speed, turn = min(max(speed, -1.0), 1.0), min(max(turn, -1.0), 1.0)
    length = (speed if speed > 0 else BACKWARDS * speed) * SPEED_M_S * STEP_S / SUBSTEPS
    touched = False
    for _ in range(SUBSTEPS):
        pose[2] += turn * TURN_RAD_S * STEP_S / SUBSTEPS
        dx, dy = length * math.cos(pose[2]), length * math.sin(pose[2])
        if _is_free(pose[0] + dx, pose[1] + dy, clearance, x0, y0, resolution):
            pose[0] += dx
            pose[1] += dy
            continue
        touched = True
        if _is_free(pose[0] + dx, pose[1], clearance, x0, y0, resolution):
            pose[0] += dx
        elif _is_free(pose[0], pose[1] + dy, clearance, x0, y0, resolution):
            pose[1] += dy
    pose[2] = (pose[2] + math.pi) % (2 * math.pi) - math.pi
    return touched


@compiled
def _is_free(x, y, clearance, x0, y0, resolution):
    return interpolate(clearance, (y - y0) / resolution, (x - x0) / resolution, 0.0) >= RADIUS_M - 0.5 * resolution
