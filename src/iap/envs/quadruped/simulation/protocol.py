"""The seam between tasks and whoever simulates: boxes and motor commands go in, the robot's state and images come out.

x is forward, y to the left, z up; metres, radians, seconds, newtons. Motors and legs are in the order of
`iap.locomotion`: FR, FL, RR, RL, and abduction, hip, knee.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

import numpy as np
from jaxtyping import Bool, Float, Int, UInt8

SEGMENTS = ("sky", "floor", "wall", "robot")  # what a pixel of `segments` shows, by its number

Colour = tuple[float, float, float]  # red, green, blue, each in [0, 1]


@dataclass(frozen=True)
class Box:
    """A part of the terrain.

    Attributes:
        kind: feet tread on a "floor" and the trunk runs against a "wall"; a foot passes through a wall, because robots
            that are blind behind would catch their feet at its end.
        centre_m: x, y, z.
        size_m: length, width and height, before it is turned.
        yaw_rad: by how much it is turned to the left.
        colour: of all its sides.
        friction: of whatever touches it.
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
        fov_deg: vertical angle of view.
        pitch_rad: by how much it looks down from straight ahead.
        sees_robot: whether the robot itself is drawn, which takes time and is no use where it is out of sight.
    """

    position_m: tuple[float, float, float]
    size: tuple[int, int]
    fov_deg: float
    pitch_rad: float = 0.0
    sees_robot: bool = False


class State(NamedTuple):
    """Where the trunk is and how it moves, and the motors."""

    position_m: Float[np.ndarray, " 3"]
    quaternion: Float[np.ndarray, " 4"]  # w, x, y, z
    velocity_m_s: Float[np.ndarray, " 3"]  # in the world's frame
    rates_rad_s: Float[np.ndarray, " 3"]  # in the trunk's frame, as gyroscopes measure them
    angles_rad: Float[np.ndarray, " 12"]
    speeds_rad_s: Float[np.ndarray, " 12"]


class Simulator(Protocol):
    """A robot on a terrain."""

    def reset(self, terrain: Sequence[Box], position_m: Sequence[float], yaw_rad: float) -> None:
        """Put the robot at rest in its standing pose, with the trunk at a place on a new terrain."""
        ...

    def step(self, commands: Float[np.ndarray, " 12"], gives_torque: Bool[np.ndarray, " 12"] | None = None) -> None:
        """Simulate one control step, in which motors hold angles, or give torques where so marked."""
        ...

    def state(self) -> State:
        """Of the robot, in arrays that the next step may change."""
        ...

    def foot_forces(self) -> Float[np.ndarray, "4 3"]:
        """What the terrain pushes each foot with, in the world's frame."""
        ...

    def foot_pressures(self) -> Float[np.ndarray, " 4"]:
        """How strongly each foot presses on the terrain, in an array that the next step may change."""
        ...

    def bumps(self) -> tuple[str, ...]:
        """The parts of a solid robot, other than its feet, that touch the terrain."""
        ...

    def image(self, view: int = 0) -> UInt8[np.ndarray, "H W 3"]:
        """What a view sees."""
        ...

    def depth(self, view: int = 0) -> Float[np.ndarray, "H W"]:
        """How far away along the view's axis each pixel's surface is, float32; the sky is as far as the view goes."""
        ...

    def segments(self, view: int = 0) -> Int[np.ndarray, "H W"]:
        """What each pixel of a view shows, as an index of `SEGMENTS`."""
        ...

    def picture(self) -> UInt8[np.ndarray, "H W 3"]:
        """The scene for people, from above and behind the robot."""
        ...

    def close(self) -> None:
        """Free the cameras."""
        ...
