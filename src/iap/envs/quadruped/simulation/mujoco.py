"""The seam, implemented by MuJoCo."""

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from iap.envs.quadruped.robots import Robot
from iap.envs.quadruped.simulation import mujoco_kernels
from iap.envs.quadruped.simulation.mjcf import (
    CHASE_CAMERA,
    FLOOR_BIT,
    PICTURE_SIZE,
    ROBOT_GROUP,
    TERRAIN_GROUP,
    WALL_BIT,
    build_model_xml,
)
from iap.envs.quadruped.simulation.near_boxes import NearBoxes
from iap.envs.quadruped.simulation.protocol import SEGMENTS, Box, State, View
from iap.envs.rendering.camera import Camera, load_mujoco
from iap.locomotion.trajectory_generator import LEGS

BITS = {"floor": FLOOR_BIT, "wall": WALL_BIT}
ASIDE_M = (0.0, 0.0, -100.0)  # where boxes are that the terrain does not need
TRUNK_POSITIONS, TRUNK_VELOCITIES = 7, 6


class MujocoSimulator:
    """A robot on boxes that are moved at each reset: nothing is compiled or loaded again."""

    def __init__(
        self,
        robot: Robot,
        views: Sequence[View] = (),
        most_boxes: int = 8,
        control_step_s: float = 0.02,
        physics_steps: int = 3,
    ) -> None:
        """The robot with its views, on at most so many boxes, simulated in `physics_steps` a control step."""
        self._mujoco = mujoco = load_mujoco()
        xml = build_model_xml(robot, views, most_boxes, control_step_s / physics_steps)
        self._model: Any = mujoco.MjModel.from_xml_string(xml)
        self._data: Any = mujoco.MjData(self._model)
        self._physics_steps = physics_steps
        self._robot, self._views, self._most_boxes = robot, tuple(views), most_boxes
        self._box_geoms = [self._number("GEOM", f"box{i}") for i in range(most_boxes)]
        self._near = NearBoxes(self._model, self._box_geoms)
        self._foot_of = {self._number("GEOM", leg): i for i, leg in enumerate(LEGS)}
        self._is_part = np.ones(self._model.ngeom, bool)
        self._is_part[[*self._box_geoms, *self._foot_of]] = False
        self._segment_of = np.full(self._model.ngeom + 1, SEGMENTS.index("robot"))
        self._segment_of[-1] = SEGMENTS.index("sky")
        self._gains = self._model.actuator_gainprm, self._model.actuator_biasprm
        self._position_gains = self._model.actuator_gainprm.copy(), self._model.actuator_biasprm.copy()
        self._gives_torque = b""
        self._resources = contextlib.ExitStack()
        self._cameras: dict[int, Camera] = {}
        data = self._data
        self._state = State(
            data.qpos[:3],
            data.qpos[3:TRUNK_POSITIONS],
            data.qvel[:3],
            data.qvel[3:TRUNK_VELOCITIES],
            data.qpos[TRUNK_POSITIONS:],
            data.qvel[TRUNK_VELOCITIES:],
        )
        self._commands = data.ctrl

    @property
    def model(self) -> Any:
        """The compiled `mujoco.MjModel`."""
        return self._model

    def reset(self, terrain: Sequence[Box], position_m: Sequence[float], yaw_rad: float) -> None:
        """Put the robot at rest in its standing pose, with the trunk at a place on a new terrain."""
        if len(terrain) > self._most_boxes:
            raise ValueError(f"terrain must be of at most {self._most_boxes} boxes, not {len(terrain)}")
        self._mujoco.mj_resetData(self._model, self._data)
        for i in range(self._most_boxes):
            self._place(i, terrain[i] if i < len(terrain) else None)
        state = self._state
        state.position_m[:] = position_m
        state.quaternion[:] = _about_z(yaw_rad)
        state.angles_rad[:] = self._robot.pose_rad
        self._commands[:] = self._robot.pose_rad
        self._near.follow(state.position_m)
        self._set_torque_motors(np.zeros(self._model.nu, bool))
        self._mujoco.mj_forward(self._model, self._data)

    def step(self, commands: Float[np.ndarray, " 12"], gives_torque: Bool[np.ndarray, " 12"] | None = None) -> None:
        """Simulate one control step, in which motors hold angles, or give torques where so marked."""
        self._near.follow(self._state.position_m)
        if gives_torque is not None and gives_torque.tobytes() != self._gives_torque:
            self._set_torque_motors(gives_torque)
        self._commands[:] = commands
        self._mujoco.mj_step(self._model, self._data, self._physics_steps)

    def state(self) -> State:
        """Of the robot, in arrays that the next step changes."""
        return self._state

    def foot_forces(self) -> Float[np.ndarray, "4 3"]:
        """What the terrain pushed each foot with in the last physics step, in the world's frame."""
        forces, force = np.zeros((len(LEGS), 3)), np.empty(6)
        for i, contact in enumerate(self._data.contact):
            for geom, sign in ((contact.geom1, -1), (contact.geom2, 1)):  # the force is that on the second
                foot = self._foot_of.get(geom)
                if foot is not None:
                    self._mujoco.mj_contactForce(self._model, self._data, i, force)
                    forces[foot] += sign * force[:3] @ contact.frame.reshape(3, 3)
        return forces

    def foot_pressures(self) -> Float[np.ndarray, " 4"]:
        """How strongly each foot pressed on the terrain in the last physics step."""
        return self._data.sensordata

    def bumps(self) -> tuple[str, ...]:
        """The parts of a solid robot, other than its feet, that touched the terrain in the last physics step."""
        touching = self._data.contact.geom
        if not mujoco_kernels.includes_any(touching, self._is_part):
            return ()
        return tuple(self._model.geom(geom).name for geom in touching.ravel() if self._is_part[geom])

    def image(self, view: int = 0) -> UInt8[np.ndarray, "H W 3"]:
        """What a view sees."""
        return self._camera(view).look(self._data)

    def depth(self, view: int = 0) -> Float[np.ndarray, "H W"]:
        """How far away along the view's axis each pixel's surface is, float32; the sky is as far as the view goes."""
        return self._camera(view).depth(self._data)

    def segments(self, view: int = 0) -> Int[np.ndarray, "H W"]:
        """What each pixel of a view shows, as an index of `SEGMENTS`."""
        return self._segment_of[self._camera(view).shapes(self._data)]

    def picture(self) -> UInt8[np.ndarray, "H W 3"]:
        """The scene for people, from above and behind the robot."""
        return self._camera(self._number("CAMERA", CHASE_CAMERA)).look(self._data)

    def close(self) -> None:
        """Free the cameras."""
        self._resources.close()

    def _number(self, kind: str, name: str) -> int:
        return self._mujoco.mj_name2id(self._model, getattr(self._mujoco.mjtObj, f"mjOBJ_{kind}"), name)

    def _place(self, i: int, box: Box | None) -> None:
        """Make the i-th box of the model this one, or none."""
        model, geom = self._model, self._box_geoms[i]
        half = np.array(box.size_m) / 2 if box else np.ones(3)
        model.geom_size[geom] = half
        model.geom_rbound[geom] = np.linalg.norm(half)
        model.geom_aabb[geom] = (0, 0, 0, *half)
        model.geom_rgba[geom] = (*box.colour, 1) if box else 0
        model.geom_friction[geom] = (box.friction, 0, 0) if box else 0
        model.geom_condim[geom] = 3 if box and box.friction > 0 else 1
        self._near.place(i, box.centre_m if box else ASIDE_M, half, BITS[box.kind] if box else 0)
        self._segment_of[geom] = SEGMENTS.index(box.kind) if box else 0
        self._data.mocap_pos[i] = box.centre_m if box else ASIDE_M
        self._data.mocap_quat[i] = _about_z(box.yaw_rad if box else 0.0)

    def _set_torque_motors(self, gives_torque: Bool[np.ndarray, " 12"]) -> None:
        self._gives_torque = gives_torque.tobytes()
        mujoco_kernels.set_motors(gives_torque, *self._position_gains, *self._gains)

    def _camera(self, number: int) -> Camera:
        """The camera, opened when it is first needed, with everything where it is after the last step."""
        mujoco, model, data = self._mujoco, self._model, self._data
        mujoco.mj_kinematics(model, data)
        mujoco.mj_comPos(model, data)
        mujoco.mj_camlight(model, data)
        if number not in self._cameras:
            if number < len(self._views):
                view = self._views[number]
                groups = (TERRAIN_GROUP, ROBOT_GROUP) if view.sees_robot else (TERRAIN_GROUP,)
                camera = Camera(model, view.size, number, groups=groups)
            else:
                camera = Camera(model, PICTURE_SIZE, number, fast=False, shadows=True)
            self._cameras[number] = self._resources.enter_context(contextlib.closing(camera))
        return self._cameras[number]


def _about_z(yaw_rad: float) -> tuple[float, float, float, float]:
    return float(np.cos(yaw_rad / 2)), 0.0, 0.0, float(np.sin(yaw_rad / 2))
