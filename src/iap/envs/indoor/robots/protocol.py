"""What an indoor environment asks of a robot."""

from typing import NamedTuple, Protocol

import numpy as np
from jaxtyping import Float, Float32, Int, UInt8

from iap.envs.indoor.scenes.compiled import CompiledScene


class Pose(NamedTuple):
    """Position on the floor and heading, positive to the left."""

    x: float
    y: float
    yaw_rad: float


class Mirror(NamedTuple):
    """How the mirror image changes a robot's sensors and actions, see `iap.envs.protocols.Symmetry`."""

    sensors: tuple[int, ...]
    actions: tuple[int, ...]
    offsets: tuple[float, ...]


class Robot(Protocol):
    """A robot in a scene, with a camera.

    Attributes:
        actions: numbers of an action, in [−1, 1].
        sensors: numbers of its own sensors.
        radius_m: of the circle that its middle keeps from obstacles.
        eye_m: height of its camera above the floor.
        control_step_s: duration of a step.
        mirror: of its sensors and actions.
        xml: its MuJoCo model.
    """

    actions: int
    sensors: int
    radius_m: float
    eye_m: float
    control_step_s: float
    mirror: Mirror
    xml: str

    def enter(self, scene: CompiledScene) -> None:
        """Move into a scene whose model contains the robot."""
        ...

    def reset(self, pose: Pose, rng: np.random.Generator) -> None:
        """Start at a pose."""
        ...

    def step(self, action: Float[np.ndarray, " k"]) -> bool:
        """Move for one step; whether the robot touched an obstacle."""
        ...

    def pose(self) -> Pose:
        """Where it is."""
        ...

    def sense(self) -> Float32[np.ndarray, " n"]:
        """Its own sensors."""
        ...

    def fallen(self) -> bool:
        """Whether it cannot go on."""
        ...

    def drive(self, heading_error_rad: float, distance_m: float) -> Float32[np.ndarray, " k"]:
        """The action of an expert that wants to turn by an angle, and go this far."""
        ...

    def image(self) -> UInt8[np.ndarray, "H W 3"]:
        """The colours of the camera."""
        ...

    def depth(self) -> Float32[np.ndarray, "H W"]:
        """The distances of the camera, in metres."""
        ...

    def segments(self) -> Int[np.ndarray, "H W"]:
        """The class of each pixel of the camera."""
        ...

    def picture(self) -> UInt8[np.ndarray, "H W 3"]:
        """The robot in its scene, for people."""
        ...

    def close(self) -> None:
        """Free the cameras."""
        ...
