"""The MuJoCo model of a robot, its cameras, and boxes for the terrain."""

from collections.abc import Sequence
from typing import Any
from xml.etree import ElementTree

import numpy as np

from iap.envs.quadruped.simulation.protocol import View
from iap.locomotion.kinematics import LEGS
from iap.locomotion.robots import Body, Robot

FLOOR_BIT, WALL_BIT = 1, 2  # collision bits: feet collide with the first, the trunk with the second
TERRAIN_GROUP, ROBOT_GROUP, HIDDEN_GROUP = 0, 1, 3  # of geoms; the last is not rendered
NEAR_M, FAR_M = 0.01, 60.0
CHASE_CAMERA = "chase"
CHASE_OFFSET_M = (-1.5, -0.65, 1.45)
CHASE_TARGET_M = (0.7, 0.1, -0.05)
PICTURE_SIZE = (480, 640)
TRUNK_CLEARANCE_M = 0.045  # of the capsule that collides with walls, around hips and camera
TRUNK_CAPSULE_Z_M = -0.05  # relative to the trunk's centre: with a higher capsule the robot rears up at walls

SHELL, JOINTS, THIGH, SHIN, TOE, LAMP = (
    "0.16 0.17 0.20 1",
    "0.30 0.31 0.35 1",
    "0.95 0.45 0.10 1",
    "0.82 0.83 0.86 1",
    "0.10 0.10 0.11 1",
    "0.55 0.95 1.00 1",
)


def build_model_xml(robot: Robot, views: Sequence[View], boxes: int, physics_step_s: float) -> str:
    """The model as XML. Bodies `box0`, `box1`, … are movable boxes, and camera i is `views[i]`."""
    root = _Node("mujoco", model=robot.name)
    root.add("compiler", angle="radian", autolimits="true", eulerseq="XYZ", boundmass="0")
    option = root.add("option", timestep=physics_step_s, integrator="implicitfast", iterations=6, ls_iterations=12)
    option.add("flag", island="disable", midphase="disable", spring="disable", damper="disable")  # there are none
    _add_visuals(root)
    world = root.add("worldbody")
    for i in range(boxes):
        body = world.add("body", name=f"box{i}", mocap="true")
        body.add(
            "geom", name=f"box{i}", type="box", size="1 1 1", mass=0, contype=0, conaffinity=0, group=TERRAIN_GROUP
        )
    _add_robot(world, root.add("actuator"), robot, views)
    sensors = root.add("sensor")
    for leg in LEGS:
        sensors.add("touch", name=leg, site=leg)
    return ElementTree.tostring(root.element, encoding="unicode")


def capsule_m(robot: Robot) -> tuple[float, float]:
    """Half-length and radius of the capsule around the trunk."""
    shoulder = max(abs(body.position_m[0]) for body in robot.bodies)
    return shoulder + 0.01, robot.trunk_size_m[1] / 2 + TRUNK_CLEARANCE_M


def _add_visuals(root: "_Node") -> None:
    visual = root.add("visual")
    visual.add("headlight", ambient=".55 .55 .55", diffuse="0 0 0", specular="0 0 0")
    visual.add("map", znear=NEAR_M, zfar=FAR_M, shadowclip=3)
    visual.add("quality", numquads=1, offsamples=4, shadowsize=1024)
    root.add("statistic", extent=1, center="0 0 0")  # so that the near and far planes are in metres
    asset = root.add("asset")
    asset.add(
        "texture", type="skybox", builtin="gradient", rgb1=".55 .76 .95", rgb2=".93 .96 .99", width=32, height=192
    )


def _add_robot(world: "_Node", actuators: "_Node", robot: Robot, views: Sequence[View]) -> None:
    nodes: dict[str, _Node] = {}
    for body in robot.bodies:
        parent = world if body.parent is None else nodes[body.parent]
        node = parent.add("body", name=body.name, pos=body.position_m, euler=body.rpy_rad)
        nodes[body.name] = node
        _add_mass(node, body)
        if body.motor is None:
            node.add("freejoint", name="trunk")
            _add_trunk(node, robot, views)
            continue
        motor = body.motor
        limits = {} if motor.range_rad is None else {"range": motor.range_rad}
        node.add("joint", name=body.name, type="hinge", axis=motor.axis, armature=motor.rotor_inertia, **limits)
        actuators.add(
            "general",
            name=body.name,
            joint=body.name,
            biastype="affine",
            gainprm=motor.stiffness,
            biasprm=(0.0, -motor.stiffness, -motor.damping),
            forcerange=(-motor.torque_nm, motor.torque_nm),
        )
        _add_leg_part(node, robot, body)


def _add_mass(node: "_Node", body: Body) -> None:
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = body.mass.inertia
    node.add("inertial", pos=body.mass.com_m, mass=body.mass.kg, fullinertia=(xx, yy, zz, xy, xz, yz))


def _add_trunk(node: "_Node", robot: Robot, views: Sequence[View]) -> None:
    half_length, radius = capsule_m(robot)
    # A capsule without friction slides along the end of a wall, on which a box would get caught.
    node.add(
        "geom",
        name="trunk",
        type="capsule",
        fromto=(-half_length, 0, TRUNK_CAPSULE_Z_M, half_length, 0, TRUNK_CAPSULE_Z_M),
        size=radius,
        condim=1,
        friction=0,
        contype=0,
        conaffinity=WALL_BIT,
        group=HIDDEN_GROUP,
    )
    # The light is in the symmetry plane, so that a mirrored world gives a mirrored image.
    # It moves with the robot, since shadows are rendered around its axis only.
    node.add(
        "light",
        mode="track",
        directional="true",
        pos=(-1.0, 0, 4.0),
        dir=(0.5, 0, -1),
        diffuse=(0.55, 0.55, 0.55),
        specular=(0, 0, 0),
    )
    for view in views:
        sin, cos = np.sin(view.pitch_rad), np.cos(view.pitch_rad)
        node.add("camera", pos=view.position_m, xyaxes=(0, -1, 0, sin, 0, cos), fovy=view.fov_deg)
    node.add(
        "camera",
        name=CHASE_CAMERA,
        mode="track",
        pos=CHASE_OFFSET_M,
        xyaxes=_camera_axes(np.subtract(CHASE_TARGET_M, CHASE_OFFSET_M)),
        fovy=50,
    )
    _draw_trunk(node, robot)


def _draw_trunk(node: "_Node", robot: Robot) -> None:
    """A rounded body, with a front that shows the walking direction."""
    length, width, height = np.array(robot.trunk_size_m) / 2
    shoulder = max(abs(body.position_m[0]) for body in robot.bodies)
    for y in (-0.55 * width, 0.55 * width):
        ends = (-shoulder - 0.01, y, 0, shoulder + 0.01, y, 0)
        node.draw("capsule", SHELL, fromto=ends, size=0.85 * height)
    node.draw("box", SHELL, pos=(0, 0, 0), size=(length, width, 0.8 * height), **_collision(robot, "shell"))
    node.draw("box", THIGH, pos=(-0.02, 0, 0.87 * height), size=(0.9 * length, 0.45 * width, 0.012))
    node.draw("box", SHELL, pos=(shoulder + 0.045, 0, 0.005), size=(0.03, 0.6 * width, 0.6 * height))
    for y in (-0.32 * width, 0.32 * width):
        node.draw("sphere", LAMP, pos=(shoulder + 0.072, y, 0.012), size=0.011)


def _add_leg_part(node: "_Node", robot: Robot, body: Body) -> None:
    tip = np.array(body.tip_m)
    is_shin = not any(other.parent == body.name for other in robot.bodies)
    if is_shin:
        node.draw("capsule", SHIN, fromto=(0, 0, 0, *tip), size=0.013, **_collision(robot, body.name))
        node.add("site", name=body.name[:2], pos=tip, size=1.5 * robot.toe_radius_m, group=HIDDEN_GROUP)
        node.add(
            "geom",
            name=body.name[:2],
            type="sphere",
            pos=tip,
            size=robot.toe_radius_m,
            rgba=TOE,
            friction=0,  # a contact has the larger of two frictions, so that of the floor counts
            condim=3,
            contype=0,
            conaffinity=FLOOR_BIT,
            group=ROBOT_GROUP,
        )
    elif any(other.parent == body.parent and other.name != body.name for other in robot.bodies):
        node.draw("cylinder", JOINTS, fromto=(-0.03, 0, 0, 0.03, 0, 0), size=0.042)
        node.draw("cylinder", JOINTS, fromto=(*(0.35 * tip), *(1.15 * tip)), size=0.046)
    else:
        node.draw("capsule", THIGH, fromto=(0, 0, 0, *tip), size=0.022, **_collision(robot, body.name))
        node.draw("sphere", JOINTS, pos=tip, size=0.025)


def _collision(robot: Robot, name: str) -> dict[str, Any]:
    """Attributes that make a part of a solid robot collide with floors, and name it for contact queries."""
    return {"name": name, "conaffinity": FLOOR_BIT} if robot.is_solid else {}


def _camera_axes(direction: np.ndarray) -> tuple[float, ...]:
    """The x and y axes of an upright camera with this viewing direction."""
    right = np.cross(direction, (0, 0, 1))
    return (*right, *np.cross(right, direction))


class _Node:
    """An XML element that takes numbers and tuples as attributes."""

    def __init__(self, tag: str, parent: ElementTree.Element | None = None, **attributes: Any) -> None:
        texts = {name: _text(value) for name, value in attributes.items()}
        if parent is None:
            self.element = ElementTree.Element(tag, texts)
        else:
            self.element = ElementTree.SubElement(parent, tag, texts)

    def add(self, tag: str, **attributes: Any) -> "_Node":
        return _Node(tag, self.element, **attributes)

    def draw(self, shape: str, rgba: str, **attributes: Any) -> None:
        """A geom without mass, and without collisions unless the attributes say otherwise."""
        bits = {"contype": 0, "conaffinity": 0}
        self.add("geom", type=shape, rgba=rgba, group=ROBOT_GROUP, **(bits | attributes))


def _text(value: Any) -> str:
    return (
        value
        if isinstance(value, str)
        else " ".join(repr(float(x)) if not isinstance(x, int) else str(x) for x in np.atleast_1d(value).tolist())
    )
