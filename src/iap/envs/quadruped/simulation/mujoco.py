"""The simulator interface, implemented with MuJoCo."""

import contextlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

from iap._compile import compiled
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
from iap.envs.rendering.camera import Camera, load_mujoco, project, shares_of_picture
from iap.locomotion.kinematics import LEGS
from iap.locomotion.robots import Robot

BITS = {"floor": FLOOR_BIT, "wall": WALL_BIT}
UNUSED_BOX_M = (0.0, 0.0, -100.0)  # position of boxes that the terrain does not need
TRUNK_POSITIONS, TRUNK_VELOCITIES = 7, 6


class MujocoSimulator:
    """A robot on boxes, which are moved and resized at each reset: the model is compiled once."""

    def __init__(
        self,
        robot: Robot,
        views: Sequence[View] = (),
        max_boxes: int = 8,
        control_step_s: float = 0.02,
        physics_steps: int = 3,
        model: Any = None,
    ) -> None:
        """The robot with its views, on up to `max_boxes` boxes, with `physics_steps` per control step.

        A model that was compiled before has been made from the XML of `build_model_xml` with the same arguments.
        """
        self._mujoco = mujoco = load_mujoco()
        if model is None:
            xml = build_model_xml(robot, views, max_boxes, control_step_s / physics_steps)
            model = mujoco.MjModel.from_xml_string(xml)
        self._model: Any = model
        self._data: Any = mujoco.MjData(self._model)
        self._physics_steps = physics_steps
        self._robot, self._views, self._max_boxes = robot, tuple(views), max_boxes
        self._box_geoms = [self._number("GEOM", f"box{i}") for i in range(max_boxes)]
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

    @property
    def data(self) -> Any:
        """The `mujoco.MjData`."""
        return self._data

    def reset(self, terrain: Sequence[Box], position_m: Sequence[float], yaw_rad: float) -> None:
        """Put the robot on a new terrain, at rest in its standing pose, with the trunk at this position."""
        if len(terrain) > self._max_boxes:
            raise ValueError(f"terrain must have at most {self._max_boxes} boxes, not {len(terrain)}")
        self._mujoco.mj_resetData(self._model, self._data)
        for i in range(self._max_boxes):
            self._place(i, terrain[i] if i < len(terrain) else None)
        state = self._state
        state.position_m[:] = position_m
        state.quaternion[:] = _about_z(yaw_rad)
        state.angles_rad[:] = self._robot.pose_rad
        self._commands[:] = self._robot.pose_rad
        self._near.update(state.position_m)
        self._set_torque_motors(np.zeros(self._model.nu, bool))
        self._mujoco.mj_forward(self._model, self._data)

    def step(self, commands: Float[np.ndarray, " 12"], gives_torque: Bool[np.ndarray, " 12"] | None = None) -> None:
        """Simulate one control step. Commands are motor angles, or torques where `gives_torque` is True."""
        self._near.update(self._state.position_m)
        if gives_torque is not None and gives_torque.tobytes() != self._gives_torque:
            self._set_torque_motors(gives_torque)
        self._commands[:] = commands
        self._mujoco.mj_step(self._model, self._data, self._physics_steps)

    def state(self) -> State:
        """The state of the robot, in arrays that the next step changes."""
        return self._state

    def foot_forces(self) -> Float[np.ndarray, "4 3"]:
        """The force of the terrain on each foot in the last physics step, in the world's frame."""
        forces, force = np.zeros((len(LEGS), 3)), np.empty(6)
        for i, contact in enumerate(self._data.contact):
            for geom, sign in ((contact.geom1, -1), (contact.geom2, 1)):  # the force acts on the second geom
                foot = self._foot_of.get(geom)
                if foot is not None:
                    self._mujoco.mj_contactForce(self._model, self._data, i, force)
                    forces[foot] += sign * force[:3] @ contact.frame.reshape(3, 3)
        return forces

    def foot_pressures(self) -> Float[np.ndarray, " 4"]:
        """The normal force of each foot in the last physics step."""
        return self._data.sensordata

    def body_contacts(self) -> tuple[str, ...]:
        """The parts of a solid robot, other than its feet, in contact with the terrain in the last physics step."""
        touching = self._data.contact.geom
        if not _includes_any(touching, self._is_part):
            return ()
        return tuple(self._model.geom(geom).name for geom in touching.ravel() if self._is_part[geom])

    def image(self, view: int = 0) -> UInt8[np.ndarray, "H W 3"]:
        """The image of a view."""
        return self._camera(view).render(self._data)

    def depth(self, view: int = 0) -> Float[np.ndarray, "H W"]:
        """The distance of each pixel's surface along the view's axis, float32; the far plane for the sky."""
        return self._camera(view).depth(self._data)

    def segments(self, view: int = 0) -> Int[np.ndarray, "H W"]:
        """The class of each pixel of a view, as an index of `SEGMENTS`."""
        return self._segment_of[self._camera(view).geoms(self._data)]

    def scene(self) -> UInt8[np.ndarray, "H W 3"]:
        """An image for people, from above and behind the robot."""
        return self._camera(self._number("CAMERA", CHASE_CAMERA)).render(self._data)

    def places_in_scene(self, points_m: Float[np.ndarray, "n 3"]) -> list[tuple[float, float]]:
        """Row and column of points in the image of `scene`, whose edges are at 0 and 1."""
        number = self._number("CAMERA", CHASE_CAMERA)
        self.update_cameras()
        return shares_of_picture(project(self._model, self._data, number, PICTURE_SIZE, points_m))

    def close(self) -> None:
        """Free the cameras."""
        self._resources.close()

    def _number(self, kind: str, name: str) -> int:
        return self._mujoco.mj_name2id(self._model, getattr(self._mujoco.mjtObj, f"mjOBJ_{kind}"), name)

    def _place(self, i: int, box: Box | None) -> None:
        """Give the i-th box of the model the properties of `box`, or remove it."""
        model, geom = self._model, self._box_geoms[i]
        half = np.array(box.size_m) / 2 if box else np.ones(3)
        model.geom_size[geom] = half
        model.geom_rbound[geom] = np.linalg.norm(half)
        model.geom_aabb[geom] = (0, 0, 0, *half)
        model.geom_rgba[geom] = (*box.colour, 1) if box else 0
        model.geom_friction[geom] = (box.friction, 0, 0) if box else 0
        model.geom_condim[geom] = 3 if box and box.friction > 0 else 1
        self._near.set_box(i, box.centre_m if box else UNUSED_BOX_M, half, BITS[box.kind] if box else 0)
        self._segment_of[geom] = SEGMENTS.index(box.kind) if box else 0
        self._data.mocap_pos[i] = box.centre_m if box else UNUSED_BOX_M
        self._data.mocap_quat[i] = _about_z(box.yaw_rad if box else 0.0)

    def _set_torque_motors(self, gives_torque: Bool[np.ndarray, " 12"]) -> None:
        self._gives_torque = gives_torque.tobytes()
        _set_gains(gives_torque, *self._position_gains, *self._gains)

    def update_cameras(self) -> None:
        """Compute the poses of bodies and cameras after the last step."""
        for update in (self._mujoco.mj_kinematics, self._mujoco.mj_comPos, self._mujoco.mj_camlight):
            update(self._model, self._data)

    def _camera(self, number: int) -> Camera:
        """The camera, opened at its first use, with positions updated after the last step."""
        self.update_cameras()
        model = self._model
        if number not in self._cameras:
            if number < len(self._views):
                view = self._views[number]
                groups = (TERRAIN_GROUP, ROBOT_GROUP) if view.shows_robot else (TERRAIN_GROUP,)
                camera = Camera(model, view.size, number, groups=groups)
            else:
                camera = Camera(model, PICTURE_SIZE, number, fast=False, shadows=True)
            self._cameras[number] = self._resources.enter_context(contextlib.closing(camera))
        return self._cameras[number]


def _about_z(yaw_rad: float) -> tuple[float, float, float, float]:
    return float(np.cos(yaw_rad / 2)), 0.0, 0.0, float(np.sin(yaw_rad / 2))


@compiled
def _includes_any(touching, is_part):
    """Whether any of the geoms in contact is such a part."""
    for i in range(touching.shape[0]):
        for j in range(touching.shape[1]):
            if is_part[touching[i, j]]:
                return True
    return False


@compiled
def _set_gains(gives_torque, position_gain, position_bias, gain, bias):
    """Set the gains of motors that give torques, and of those that track angles."""
    for motor in range(len(gives_torque)):
        gain[motor, 0] = 1.0 if gives_torque[motor] else position_gain[motor, 0]
        for i in range(bias.shape[1]):
            bias[motor, i] = 0.0 if gives_torque[motor] else position_bias[motor, i]
