"""The simulator interface: terrain boxes and motor commands go in, the robot's state and images come out.

x is forward, y to the left, z up; metres, radians, seconds, newtons. Motors and legs are in the order of
`iap.locomotion`: FR, FL, RR, RL, and abduction, hip, knee.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

SEGMENTS = ("sky", "floor", "wall", "robot")  # the classes of `Simulator.segments`

Colour = tuple[float, float, float]  # red, green, blue, each in [0, 1]


@dataclass(frozen=True)
class Box:
    """A part of the terrain.

    Attributes:
        kind: feet collide with a "floor", the trunk with a "wall". Feet pass through walls, because a robot cannot see
            where its rear feet would catch on the end of a wall.
        centre_m: x, y, z.
        size_m: length, width and height, before the rotation by yaw.
        yaw_rad: rotation about z, positive to the left.
        colour: of all its sides.
        friction: coefficient of its contacts.
    """

    kind: Literal["floor", "wall"]
    centre_m: tuple[float, float, float]
    size_m: tuple[float, float, float]
    yaw_rad: float = 0.0
    colour: Colour = (0.5, 0.5, 0.5)
    friction: float = 1.0


@dataclass(frozen=True)
class View:
    """A camera on the trunk.

    Attributes:
        position_m: in the trunk's frame.
        size: of its images, (height, width).
        fov_deg: vertical field of view.
        pitch_rad: rotation downwards from straight ahead.
        shows_robot: whether the robot itself is rendered, which takes time.
    """

    position_m: tuple[float, float, float]
    size: tuple[int, int]
    fov_deg: float
    pitch_rad: float = 0.0
    shows_robot: bool = False


class State(NamedTuple):
    """Positions and velocities of the trunk and the motors."""

    position_m: Float[np.ndarray, " 3"]
    quaternion: Float[np.ndarray, " 4"]  # w, x, y, z
    velocity_m_s: Float[np.ndarray, " 3"]  # in the world's frame
    rates_rad_s: Float[np.ndarray, " 3"]  # in the trunk's frame, as gyroscopes measure them
    angles_rad: Float[np.ndarray, " 12"]
    speeds_rad_s: Float[np.ndarray, " 12"]


class Simulator(Protocol):
    """A robot on a terrain."""

    def reset(self, terrain: Sequence[Box], position_m: Sequence[float], yaw_rad: float) -> None:
        """Put the robot on a new terrain, at rest in its standing pose, with the trunk at this position."""
        ...

    def step(self, commands: Float[np.ndarray, " 12"], gives_torque: Bool[np.ndarray, " 12"] | None = None) -> None:
        """Simulate one control step. Commands are motor angles, or torques where `gives_torque` is True."""
        ...

    def state(self) -> State:
        """The state of the robot, in arrays that the next step may change."""
        ...

    def foot_forces(self) -> Float[np.ndarray, "4 3"]:
        """The force of the terrain on each foot, in the world's frame."""
        ...

    def foot_pressures(self) -> Float[np.ndarray, " 4"]:
        """The normal force of each foot, in an array that the next step may change."""
        ...

    def body_contacts(self) -> tuple[str, ...]:
        """The parts of a solid robot, other than its feet, that are in contact with the terrain."""
        ...

    def image(self, view: int = 0) -> UInt8[np.ndarray, "H W 3"]:
        """The image of a view."""
        ...

    def depth(self, view: int = 0) -> Float[np.ndarray, "H W"]:
        """The distance of each pixel's surface along the view's axis, float32; the far plane for the sky."""
        ...

    def segments(self, view: int = 0) -> Int[np.ndarray, "H W"]:
        """The class of each pixel of a view, as an index of `SEGMENTS`."""
        ...

    def scene(self) -> UInt8[np.ndarray, "H W 3"]:
        """An image for people, from above and behind the robot."""
        ...

    def places_in_scene(self, points_m: Float[np.ndarray, "n 3"]) -> list[tuple[float, float]]:
        """Row and column of points in the image of `scene`, whose edges are at 0 and 1."""
        ...

    def close(self) -> None:
        """Free the cameras."""
        ...
