"""A legged robot as a tree of rigid bodies, read from the JSON file of its name beside this module.

Each file holds the masses, inertias, frames and limits of the maker's public description. Two things are done to them
here: links that cannot move against each other become one body, and the trunk becomes its own mirror image (its
centre of mass goes to the middle, by 2 mm for the A1, and its inertia loses the products with y; the legs are
mirror images of each other as they are). Without it, no gait of equal strides would go straight.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
from jaxtyping import Float

from iap.locomotion.trajectory_generator import LEGS

ROBOTS = ("a1", "laikago")
MIRROR = np.array([1.0, -1.0, 1.0])


@dataclass(frozen=True, eq=False)
class Mass:
    """What a rigid body weighs: kilograms, where their centre is, and the inertia about it (3×3)."""

    kg: float
    com_m: Float[np.ndarray, " 3"]
    inertia: Float[np.ndarray, "3 3"]

    def moved(self, position_m: Float[np.ndarray, " 3"], rotation: Float[np.ndarray, "3 3"]) -> "Mass":
        """The same in the frame in which its own frame is at this place."""
        return Mass(self.kg, position_m + rotation @ self.com_m, rotation @ self.inertia @ rotation.T)

    def mirror_symmetric(self) -> "Mass":
        """The mean of it and its mirror image, left for right."""
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
    """A joint that turns, and what drives it: torque = clip(stiffness·(target − angle) − damping·speed, ±torque_nm).

    The rotor's inertia, in kg·m² behind the gear, is not in the maker's description; without any, legs are so light for
    their motors that a standing robot shivers and creeps, unless it is simulated in far smaller steps.
    """

    axis: tuple[float, float, float]
    range_rad: tuple[float, float] | None
    torque_nm: float
    stiffness: float
    damping: float
    rotor_inertia: float


@dataclass(frozen=True, eq=False)
class Body:
    """A rigid part of the robot, in a frame given in that of its parent.

    Attributes:
        name: as the maker calls it.
        parent: its name, or None for the trunk.
        position_m: of its frame.
        rpy_rad: of its frame: turns about the parent's x, y and z, in this order.
        mass: of all links that make it up.
        motor: that turns it against the parent; None for the trunk.
        tip_m: where the next body, or the toe, is attached.
    """

    name: str
    parent: str | None
    position_m: tuple[float, float, float]
    rpy_rad: tuple[float, float, float]
    mass: Mass
    motor: Motor | None
    tip_m: tuple[float, float, float]


@dataclass(frozen=True, eq=False)
class Robot:
    """A quadruped: the trunk, then abduction, hip and knee of each leg in the order of `LEGS`.

    Attributes:
        name: of its file.
        bodies: parents first.
        pose_rad: of the twelve motors, standing.
        trunk_size_m: length, width, height.
        toe_radius_m: of the spheres at the tips of the last bodies of the legs.
        is_solid: whether trunk, thighs and shins touch floors; otherwise only feet do.
    """

    name: str
    bodies: tuple[Body, ...]
    pose_rad: Float[np.ndarray, " 12"]
    trunk_size_m: tuple[float, float, float]
    toe_radius_m: float
    is_solid: bool

    @property
    def mass_kg(self) -> float:
        """Of all bodies."""
        return sum(body.mass.kg for body in self.bodies)


def load_robot(name: str) -> Robot:
    """The robot of this name."""
    if name not in ROBOTS:
        raise ValueError(f"robot must be one of {', '.join(ROBOTS)}, not {name!r}")
    facts = json.loads(resources.files("iap.envs.quadruped").joinpath(f"{name}.json").read_text("utf-8"))
    motors = facts["motors"]
    trunk, *legs = _bodies(facts)
    return Robot(
        facts["name"],
        (trunk, *sorted(legs, key=lambda body: LEGS.index(body.name[:2]))),
        np.array(motors["pose_rad"] * len(LEGS)),
        tuple(facts["trunk_size_m"]),
        facts["toe_radius_m"],
        facts.get("is_solid", False),
    )


def rotation(rpy_rad: tuple[float, float, float]) -> Float[np.ndarray, "3 3"]:
    """The matrix of turns about the fixed x, y and z axes, in this order."""
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
        """The link with all that is fixed to it."""
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
        tip = below[child][-1]["position_m"]  # the last joint is the next motor, or holds the toe
        yield Body(
            child,
            joint["parent"],
            tuple(joint["position_m"]),
            tuple(joint["rpy_rad"]),
            whole(child),
            motor,
            tuple(tip),
        )
        pending += [(lower, depth + 1) for lower in below[child]]


def _mass(link: dict[str, Any]) -> Mass:
    xx, yy, zz, xy, xz, yz = link["inertia"]
    return Mass(link["mass_kg"], np.array(link["com_m"]), np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]))
