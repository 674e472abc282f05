"""Another place for the camera, from which it looks at the same point."""

import math
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from iap.envs.rendering.camera import load_mujoco

ANGLE_PER_SCALE = math.pi / 2
NEARER_PER_SCALE, FARTHER_PER_SCALE = 0.5, 1.5  # of the radius
STEP_PER_SCALE, SPEED_PER_SCALE = 0.1, 0.4  # of a camera USUAL_RADIUS_M away, in metres a step
ROLL_STEP_PER_SCALE, ROLL_SPEED_PER_SCALE = math.pi / 300, math.pi / 50
USUAL_RADIUS_M = 4.0
ABOVE_RAD = 0.1  # a camera nearer to the vertical looks straight down, as reacher's does

Vector = Float[np.ndarray, "3"]


class Place(NamedTuple):
    """Where a camera is: around the world's origin or the robot it follows. `polar` is π/2 − elevation."""

    radius_m: float
    azimuth: float
    polar: float
    roll: float = 0.0


class Motion(NamedTuple):
    """How a camera moves in one step of the task."""

    velocity_m: Vector
    roll: float


def place_ranges(own: Place, scale: float) -> tuple[Place, Place]:
    """The lowest and the highest place around the camera's own.

    All but cameras straight above stay in the upper quadrant: polar angle in [0, π/2], azimuth in [−π, 0]. A task
    whose own camera is outside keeps it at the edge.
    """
    angle = ANGLE_PER_SCALE * scale
    low = Place(own.radius_m * (1 - NEARER_PER_SCALE * scale), own.azimuth - angle, own.polar - angle, -angle)
    high = Place(own.radius_m * (1 + FARTHER_PER_SCALE * scale), own.azimuth + angle, own.polar + angle, angle)
    if is_above(own):
        return low, high
    return (
        low._replace(azimuth=max(low.azimuth, min(-math.pi, own.azimuth)), polar=max(low.polar, 0.0)),
        high._replace(
            azimuth=min(high.azimuth, max(0.0, own.azimuth)), polar=min(high.polar, max(math.pi / 2, own.polar))
        ),
    )


def is_above(own: Place) -> bool:
    """Whether the camera looks straight down, so that no side of its image is up."""
    return abs(own.polar) < ABOVE_RAD


def draw_place(low: Place, high: Place, rng: np.random.Generator) -> Place:
    """The place of an episode."""
    return Place(*rng.uniform(low, high))


def draw_motion(own: Place, scale: float, rng: np.random.Generator) -> Motion:
    """The motion that an episode begins with."""
    direction = rng.normal(size=3)
    speed_m = rng.uniform(0, SPEED_PER_SCALE * scale * own.radius_m / USUAL_RADIUS_M)
    roll = rng.uniform(-1, 1) * ROLL_SPEED_PER_SCALE * scale
    return Motion(speed_m * direction / np.linalg.norm(direction), roll)


def walk(
    place: Place, motion: Motion, low: Place, high: Place, own: Place, scale: float, rng: np.random.Generator
) -> tuple[Place, Motion]:
    """One step: a random push, a speed limit, and a stop at the edges of the range."""
    unit_m = scale * own.radius_m / USUAL_RADIUS_M
    velocity_m = motion.velocity_m + rng.normal(0, STEP_PER_SCALE * unit_m, 3)
    velocity_m *= min(1.0, SPEED_PER_SCALE * unit_m / max(float(np.linalg.norm(velocity_m)), 1e-12))
    roll = np.clip(
        motion.roll + rng.normal(0, ROLL_STEP_PER_SCALE * scale), *(ROLL_SPEED_PER_SCALE * scale * np.array([-1, 1]))
    )
    before_m = position(place)
    wanted = _around(before_m + velocity_m, place)._replace(roll=place.roll + float(roll))
    arrived = Place(*np.clip(_beside(wanted, low, high), low, high).tolist())
    return arrived, Motion(position(arrived) - before_m, arrived.roll - place.roll)


def position(place: Place) -> Vector:
    """The place in metres along x, y and z."""
    flat_m = place.radius_m * math.sin(place.polar)
    return np.array(
        [flat_m * math.cos(place.azimuth), flat_m * math.sin(place.azimuth), place.radius_m * math.cos(place.polar)]
    )


def place_of(position_m: Vector) -> Place:
    """The angles and the radius of a position."""
    x, y, z = position_m.tolist()
    return Place(math.sqrt(x * x + y * y + z * z), math.atan2(y, x), math.atan2(math.hypot(x, y), z))


def orientation(towards: Vector, roll: float, upright: bool) -> Float[np.ndarray, "3 3"]:
    """The axes (right, up, back) of a camera that looks along `towards`, as columns.

    Args:
        towards: where it looks.
        roll: by how much it is turned about that.
        upright: whether to keep the horizon level; else it is turned the shortest way from looking straight down,
            which is smooth where `upright` would spin.
    """
    back = -towards / np.linalg.norm(towards)
    if upright:
        right = np.cross([0.0, 0.0, 1.0], back)
        right /= np.linalg.norm(right)
    else:
        right = np.array([1 - back[0] ** 2 / (1 + back[2]), -back[0] * back[1] / (1 + back[2]), -back[0]])
    up = np.cross(back, right)
    turned = np.array([[math.cos(roll), -math.sin(roll)], [math.sin(roll), math.cos(roll)]])
    return np.column_stack([np.column_stack([right, up]) @ turned, back])


class Mount(NamedTuple):
    """How a camera of a model is put up.

    Attributes:
        follows: the body whose centre of mass it moves with, or None if it stands still in the world.
        own: its place around that centre, or around the world's origin.
        target_m: the point it looks at, as far away as the robot, from the same origin.
    """

    follows: int | None
    own: Place
    target_m: Vector


def mount_of(model: Any, number: int) -> Mount:
    """How camera `number` is put up; it must stand still in the world or follow the robot without turning."""
    mujoco = load_mujoco()
    mode, body = model.cam_mode[number], int(model.cam_bodyid[number])
    follows = body if mode == mujoco.mjtCamLight.mjCAMLIGHT_TRACKCOM else None
    if follows is None and (mode != mujoco.mjtCamLight.mjCAMLIGHT_FIXED or body != 0):
        raise ValueError(f"camera {number} turns with the robot, so it cannot be moved about: choose another one")
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    place_m = data.cam_xpos[number] - _origin(data, follows)
    far_m = np.linalg.norm(data.cam_xpos[number] - data.subtree_com[1])
    target_m = place_m - far_m * data.cam_xmat[number].reshape(3, 3)[:, 2]
    return Mount(follows, place_of(place_m), target_m)


class CameraDistraction:
    """The pose of one of a model's cameras."""

    def __init__(self, model: Any, number: int, scale: float, dynamic: bool) -> None:
        self._number, self._scale, self._dynamic = number, scale, dynamic
        self._follows, self._own, self._target_m = mount_of(model, number)
        self._low, self._high = place_ranges(self._own, scale)

    def begin(self, rng: np.random.Generator) -> None:
        """Choose the place of an episode, and how the camera moves."""
        self._rng = rng
        self._place = draw_place(self._low, self._high, rng)
        self._motion = draw_motion(self._own, self._scale, rng)
        self._aim: tuple[Vector, Float[np.ndarray, " 9"]] | None = None

    def advance(self) -> None:
        """Let a step of the task pass."""
        if self._dynamic:
            self._place, self._motion = walk(
                self._place, self._motion, self._low, self._high, self._own, self._scale, self._rng
            )
            self._aim = None

    def show(self, data: Any) -> None:
        """Put the camera there; the simulator puts it back with each step."""
        if self._aim is None:  # the same from frame to frame, unless the camera moves
            place_m = position(self._place)
            axes = orientation(self._target_m - place_m, self._place.roll, upright=not is_above(self._own))
            self._aim = place_m, axes.ravel()
        place_m, axes = self._aim
        data.cam_xpos[self._number] = place_m + _origin(data, self._follows)
        data.cam_xmat[self._number] = axes


def _origin(data: Any, follows: int | None) -> Vector:
    return np.zeros(3) if follows is None else data.subtree_com[follows].copy()


def _around(position_m: Vector, near: Place) -> Place:
    """The angles of a position, of the two ways to say them (across the pole) the one nearer to `near`."""
    place = place_of(position_m)
    turns = [place, place._replace(azimuth=place.azimuth + math.pi, polar=-place.polar)]
    turned = [way._replace(azimuth=near.azimuth + _within_half_a_turn(way.azimuth - near.azimuth)) for way in turns]
    return min(turned, key=lambda way: abs(way.azimuth - near.azimuth))


def _beside(place: Place, low: Place, high: Place) -> Place:
    """The nearest place with an azimuth in the range; near the pole, to turn there would be a leap."""
    azimuth = min(max(place.azimuth, low.azimuth), high.azimuth)
    aside = place.radius_m * math.sin(place.polar) * math.cos(place.azimuth - azimuth)
    above = place.radius_m * math.cos(place.polar)
    return Place(math.hypot(aside, above), azimuth, math.atan2(aside, above), place.roll)


def _within_half_a_turn(angle: float) -> float:
    return (angle + math.pi) % (2 * math.pi) - math.pi
