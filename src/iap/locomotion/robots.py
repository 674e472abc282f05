"""Legged robots as trees of rigid bodies, and as models for the walking controller, read from JSON.

Each JSON file contains the masses, inertias, frames and limits of the manufacturer's public description. Links that
cannot move relative to each other become one body. The trunk is made mirror-symmetric: its centre of mass moves to the
middle (by 2 mm for the A1), and its inertia loses the products with y. The legs are mirror images of each other.
Without this, no gait with equal strides goes straight.
"""

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from importlib import resources
from typing import Any

import numpy as np
from jaxtyping import Float

from iap.locomotion.kinematics import LEGS, Legs
from iap.locomotion.mpc import MPCConfig

ROBOTS = ("a1", "laikago")
MIRROR = np.array([1.0, -1.0, 1.0])

Vector = tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class Mass:
    """Mass in kilograms, centre of mass, and the inertia about it (3×3)."""

    kg: float
    com_m: Float[np.ndarray, " 3"]
    inertia: Float[np.ndarray, "3 3"]

    def moved(self, position_m: Float[np.ndarray, " 3"], rotation: Float[np.ndarray, "3 3"]) -> "Mass":
        """The same in a frame in which its own frame has this position and rotation."""
        return Mass(self.kg, position_m + rotation @ self.com_m, rotation @ self.inertia @ rotation.T)

    def mirror_symmetric(self) -> "Mass":
        """The mean of it and its mirror image."""
        return Mass(self.kg, self.com_m * [1, 0, 1], (self.inertia + MIRROR[:, None] * self.inertia * MIRROR) / 2)

    def __add__(self, other: "Mass") -> "Mass":
        kg = self.kg + other.kg
        com = (self.kg * self.com_m + other.kg * other.com_m) / kg
        return Mass(kg, com, self._inertia_about(com) + other._inertia_about(com))

    def _inertia_about(self, point: Float[np.ndarray, " 3"]) -> Float[np.ndarray, "3 3"]:
        r = self.com_m - point
        return self.inertia + self.kg * (r @ r * np.eye(3) - np.outer(r, r))


@dataclass(frozen=True, eq=False)
class Motor:
    """A hinge joint and its motor: torque = clip(stiffness·(target − angle) − damping·speed, ±torque_nm).

    The inertia of the rotor, in kg·m² behind the gear, is not in the manufacturer's description. Without it, a standing
    robot oscillates unless the physics steps are far smaller.
    """

    axis: Vector
    range_rad: tuple[float, float] | None
    torque_nm: float
    stiffness: float
    damping: float
    rotor_inertia: float


@dataclass(frozen=True, eq=False)
class Body:
    """A rigid part of the robot.

    Attributes:
        name: the manufacturer's name.
        parent: the name of its parent, or None for the trunk.
        position_m: of its frame, in the parent's frame.
        rpy_rad: rotation of its frame about the parent's x, y and z, in this order.
        mass: of all its links.
        motor: of the joint with the parent; None for the trunk.
        tip_m: position of the next body, or of the toe.
    """

    name: str
    parent: str | None
    position_m: Vector
    rpy_rad: Vector
    mass: Mass
    motor: Motor | None
    tip_m: Vector


@dataclass(frozen=True, eq=False)
class Robot:
    """A quadruped as rigid bodies: the trunk, then abduction, hip and knee of each leg in the order of `LEGS`.

    Attributes:
        name: of its file.
        bodies: parents first.
        pose_rad: standing pose of the twelve motors.
        trunk_size_m: length, width, height.
        toe_radius_m: of the spheres at the ends of the legs.
        is_solid: whether trunk, thighs and shins collide with floors; otherwise only feet do.
        controller: parameters of the walking controller, empty if it does not support this robot.
    """

    name: str
    bodies: tuple[Body, ...]
    pose_rad: Float[np.ndarray, " 12"]
    trunk_size_m: Vector
    toe_radius_m: float
    is_solid: bool
    controller: dict[str, Any] = field(default_factory=dict, repr=False)

    @property
    def mass_kg(self) -> float:
        """Of all bodies."""
        return sum(body.mass.kg for body in self.bodies)

    @property
    def legs(self) -> Legs:
        """The kinematics of the legs."""
        abductions, thighs, shanks = self.bodies[1::3], self.bodies[2::3], self.bodies[3::3]
        thigh, shank = ((-body.tip_m[0], -body.tip_m[2]) for body in (thighs[0], shanks[0]))  # back and down
        hip_zero, knee_zero = thighs[0].rpy_rad[1], shanks[0].rpy_rad[1]
        return Legs(
            hips=np.array([body.position_m for body in abductions]),
            lateral_m=np.array([body.position_m[1] + body.tip_m[1] for body in thighs]),
            thigh_m=math.hypot(*thigh),
            shank_m=math.hypot(*shank),
            thigh_angle=math.atan2(*thigh) + hip_zero,
            shank_angle=math.atan2(*shank) + hip_zero + knee_zero,
        )


@dataclass(frozen=True, eq=False)
class Quadruped:
    """A robot as the walking controller models it.

    Attributes:
        legs: their kinematics.
        stance_m: positions of the toes below the standing body, forward and to the left of the base.
        pose_rad: standing pose of the motors of a leg.
        toe_radius_m: of the sphere at the end of a shank, whose centre is called the toe.
        com_m: centre of mass relative to the base, in the standing pose.
        mpc: mass, inertia and weights of the model-predictive controller.
    """

    legs: Legs
    stance_m: Float[np.ndarray, "4 2"]
    pose_rad: Vector
    toe_radius_m: float
    com_m: Float[np.ndarray, " 3"]
    mpc: MPCConfig = field(repr=False)

    @classmethod
    def of(cls, robot: Robot) -> "Quadruped":
        """The model of a robot whose file has a section "controller"."""
        facts = robot.controller
        return cls(
            robot.legs,
            np.array(facts["stance_m"]),
            (robot.pose_rad[0], robot.pose_rad[1], robot.pose_rad[2]),
            robot.toe_radius_m,
            np.array(facts["com_m"]),
            MPCConfig(facts["mass_kg"], tuple(facts["inertia"])),
        )


def load_robot(name: str) -> Robot:
    """The robot of this name."""
    if name not in ROBOTS:
        raise ValueError(f"robot must be one of {', '.join(ROBOTS)}, not {name!r}")
    facts = json.loads(resources.files("iap.locomotion").joinpath(f"{name}.json").read_text("utf-8"))
    motors = facts["motors"]
    trunk, *legs = _bodies(facts)
    return Robot(
        facts["name"],
        (trunk, *sorted(legs, key=lambda body: LEGS.index(body.name[:2]))),
        np.array(motors["pose_rad"] * len(LEGS)),
        tuple(facts["trunk_size_m"]),
        facts["toe_radius_m"],
        facts.get("is_solid", False),
        facts.get("controller", {}),
    )


def rotation(rpy_rad: Vector) -> Float[np.ndarray, "3 3"]:
    """The matrix of rotations about the fixed x, y and z axes, in this order."""
    (cr, cp, cy), (sr, sp, sy) = np.cos(rpy_rad), np.sin(rpy_rad)
    about_x = np.array([[1, 0, 0], [0, cr, -sr], [0, sr, cr]])
    about_y = np.array([[cp, 0, sp], [0, 1, 0], [-sp, 0, cp]])
    about_z = np.array([[cy, -sy, 0], [sy, cy, 0], [0, 0, 1]])
    return about_z @ about_y @ about_x


def _bodies(facts: dict[str, Any]) -> Iterator[Body]:
    """The bodies, parents first."""
    masses = {link["name"]: _mass(link) for link in facts["links"]}
    below: dict[str, list[dict]] = {name: [] for name in masses}
    for joint in facts["joints"]:
        below[joint["parent"]].append(joint)

    def whole(name: str) -> Mass:
        """A link with all links that are fixed to it."""
        total = masses[name]
        for joint in below[name]:
            if joint["axis"] is None:
                total += whole(joint["child"]).moved(np.array(joint["position_m"]), rotation(joint["rpy_rad"]))
        return total

    trunk = facts["links"][0]["name"]
    yield Body(trunk, None, (0, 0, 0), (0, 0, 0), whole(trunk).mirror_symmetric(), None, (0, 0, 0))
    gains = list(zip(facts["motors"]["stiffness"], facts["motors"]["damping"], strict=True))
    rotor = facts["motors"].get("rotor_inertia", 0.0)
    pending = [(joint, 0) for joint in below[trunk]]
    while pending:
        joint, depth = pending.pop(0)
        if joint["axis"] is None:
            continue
        child, limits = joint["child"], joint.get("range_rad")
        motor = Motor(tuple(joint["axis"]), tuple(limits) if limits else None, joint["torque_nm"], *gains[depth], rotor)
        yield Body(
            child,
            joint["parent"],
            tuple(joint["position_m"]),
            tuple(joint["rpy_rad"]),
            whole(child),
            motor,
            tuple(below[child][-1]["position_m"]),  # the last joint is that of the next motor, or of the toe
        )
        pending += [(lower, depth + 1) for lower in below[child]]


def _mass(link: dict[str, Any]) -> Mass:
    xx, yy, zz, xy, xz, yz = link["inertia"]
    return Mass(link["mass_kg"], np.array(link["com_m"]), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))


LAIKAGO = Quadruped.of(load_robot("laikago"))
