"""Random poses of the camera around the point that it looks at."""

import math
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from iap.envs.rendering.camera import load_mujoco

ANGLE_PER_SCALE = math.pi / 2
NEARER_PER_SCALE, FARTHER_PER_SCALE = 0.5, 1.5  # of the radius
STEP_PER_SCALE, SPEED_PER_SCALE = 0.1, 0.4  # of a camera NOMINAL_RADIUS_M away, in metres per step
ROLL_STEP_PER_SCALE, ROLL_SPEED_PER_SCALE = math.pi / 300, math.pi / 50
NOMINAL_RADIUS_M = 4.0
ABOVE_RAD = 0.1  # a camera nearer to the vertical counts as looking straight down, as reacher's does

Vector = Float[np.ndarray, "3"]


class Place(NamedTuple):
    """The position of a camera around the world's origin or the robot that it follows; `polar` is π/2 − elevation."""

    radius_m: float
    azimuth: float
    polar: float
    roll: float = 0.0


class Motion(NamedTuple):
    """The motion of a camera in one step of the task."""

    velocity_m: Vector
    roll: float


def place_ranges(own: Place, scale: float) -> tuple[Place, Place]:
    """The ranges around the camera's original place.

    Cameras that do not look straight down stay in the upper quadrant: polar angle in [0, π/2], azimuth in [−π, 0]. If
    the original camera is outside of it, the range ends at the original place.
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
    """Whether the camera looks straight down, so that its image has no upward direction."""
    return abs(own.polar) < ABOVE_RAD


def draw_place(low: Place, high: Place, rng: np.random.Generator) -> Place:
    """The place of an episode."""
    return Place(*rng.uniform(low, high))


def draw_motion(own: Place, scale: float, rng: np.random.Generator) -> Motion:
    """The initial motion of an episode."""
    direction = rng.normal(size=3)
    speed_m = rng.uniform(0, SPEED_PER_SCALE * scale * own.radius_m / NOMINAL_RADIUS_M)
    roll = rng.uniform(-1, 1) * ROLL_SPEED_PER_SCALE * scale
    return Motion(speed_m * direction / np.linalg.norm(direction), roll)


def walk(
    place: Place, motion: Motion, low: Place, high: Place, own: Place, scale: float, rng: np.random.Generator
) -> tuple[Place, Motion]:
    """One step of a random walk with a speed limit, which stops at the edges of the range."""
    unit_m = scale * own.radius_m / NOMINAL_RADIUS_M
    velocity_m = motion.velocity_m + rng.normal(0, STEP_PER_SCALE * unit_m, 3)
    velocity_m *= min(1.0, SPEED_PER_SCALE * unit_m / max(float(np.linalg.norm(velocity_m)), 1e-12))
    roll = np.clip(
        motion.roll + rng.normal(0, ROLL_STEP_PER_SCALE * scale), *(ROLL_SPEED_PER_SCALE * scale * np.array([-1, 1]))
    )
    before_m = position(place)
    wanted = _nearest_angles(before_m + velocity_m, place)._replace(roll=place.roll + float(roll))
    arrived = Place(*np.clip(_with_azimuth_in_range(wanted, low, high), low, high).tolist())
    return arrived, Motion(position(arrived) - before_m, arrived.roll - place.roll)


def position(place: Place) -> Vector:
    """Cartesian coordinates of a place, in metres."""
    flat_m = place.radius_m * math.sin(place.polar)
    return np.array(
        [flat_m * math.cos(place.azimuth), flat_m * math.sin(place.azimuth), place.radius_m * math.cos(place.polar)]
    )


def place_of(position_m: Vector) -> Place:
    """Spherical coordinates of a position."""
    x, y, z = position_m.tolist()
    return Place(math.sqrt(x * x + y * y + z * z), math.atan2(y, x), math.atan2(math.hypot(x, y), z))


def orientation(towards: Vector, roll: float, upright: bool) -> Float[np.ndarray, "3 3"]:
    """The axes (right, up, back) of a camera that looks along `towards`, as columns.

    Args:
        towards: the viewing direction.
        roll: the rotation about the viewing direction.
        upright: whether the horizon is level; otherwise the camera is rotated by the smallest angle from looking
            straight down, which is continuous at the vertical.
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
    """How a camera is attached to a model.

    Attributes:
        follows: the body whose centre of mass it follows, or None if it is fixed to the world.
        own: its original place around that centre, or around the world's origin.
        target_m: the point that it looks at, at the distance of the robot, relative to the same origin.
    """

    follows: int | None
    own: Place
    target_m: Vector


def mount_of(model: Any, number: int) -> Mount:
    """How camera `number` is attached; it must be fixed to the world, or follow the robot without turning."""
    mujoco = load_mujoco()
    mode, body = model.cam_mode[number], int(model.cam_bodyid[number])
    follows = body if mode == mujoco.mjtCamLight.mjCAMLIGHT_TRACKCOM else None
    if follows is None and (mode != mujoco.mjtCamLight.mjCAMLIGHT_FIXED or body != 0):
        raise ValueError(f"camera {number} turns with the robot, so its pose cannot be distracted: choose another one")
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

    def reset(self, rng: np.random.Generator) -> None:
        """Draw the place and the initial motion of an episode."""
        self._rng = rng
        self._place = draw_place(self._low, self._high, rng)
        self._motion = draw_motion(self._own, self._scale, rng)
        self._pose: tuple[Vector, Float[np.ndarray, " 9"]] | None = None

    def advance(self) -> None:
        """Advance by one step of the task."""
        if self._dynamic:
            self._place, self._motion = walk(
                self._place, self._motion, self._low, self._high, self._own, self._scale, self._rng
            )
            self._pose = None

    def apply(self, data: Any) -> None:
        """Write the pose into the simulator's state, which every physics step overwrites."""
        if self._pose is None:  # unchanged from frame to frame, unless the camera moves
            place_m = position(self._place)
            axes = orientation(self._target_m - place_m, self._place.roll, upright=not is_above(self._own))
            self._pose = place_m, axes.ravel()
        place_m, axes = self._pose
        data.cam_xpos[self._number] = place_m + _origin(data, self._follows)
        data.cam_xmat[self._number] = axes


def _origin(data: Any, follows: int | None) -> Vector:
    return np.zeros(3) if follows is None else data.subtree_com[follows].copy()


def _nearest_angles(position_m: Vector, near: Place) -> Place:
    """The angles of a position; of the two equivalent choices (across the pole), the one closer to `near`."""
    place = place_of(position_m)
    choices = [place, place._replace(azimuth=place.azimuth + math.pi, polar=-place.polar)]
    wrapped = [way._replace(azimuth=near.azimuth + _wrap_angle(way.azimuth - near.azimuth)) for way in choices]
    return min(wrapped, key=lambda way: abs(way.azimuth - near.azimuth))


def _with_azimuth_in_range(place: Place, low: Place, high: Place) -> Place:
    """The nearest place with an azimuth in the range. Clipping the azimuth alone would be a jump near the pole."""
    azimuth = min(max(place.azimuth, low.azimuth), high.azimuth)
    horizontal = place.radius_m * math.sin(place.polar) * math.cos(place.azimuth - azimuth)
    vertical = place.radius_m * math.cos(place.polar)
    return Place(math.hypot(horizontal, vertical), azimuth, math.atan2(horizontal, vertical), place.roll)


def _wrap_angle(angle: float) -> float:
    return (angle + math.pi) % (2 * math.pi) - math.pi
