"""What the indoor environments share: scenes, robots, images, and the protocols."""

import math
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any, Literal, get_args

import gymnasium
import numpy as np
from gymnasium import spaces
from jaxtyping import Float, Float32, Int, UInt8

from iap._validation import require_number
from iap.envs.indoor.grids import ranges_m
from iap.envs.indoor.robots.protocol import Pose, Robot
from iap.envs.indoor.robots.rolling_base import RollingBase
from iap.envs.indoor.robots.walker import Walker
from iap.envs.indoor.route import Route
from iap.envs.indoor.scenes.compiled import CompiledScene, compile_scene
from iap.envs.indoor.scenes.folder import SEGMENTS
from iap.envs.indoor.scenes.source import SceneSource
from iap.envs.protocols import Label
from iap.envs.wrappers import Observation, observation_space, require_size, rgb_space

Image = Literal["rgb", "depth", "rgbd", "proximity"]
COLOURED = ("rgb", "rgbd")
RobotName = Literal["rolling-base", "a1"]
ROBOTS = {"rolling-base": RollingBase, "a1": Walker}
FARTHEST_M = 10.0  # of depth images
LARGEST_SIDE = 1024
KEPT_SCENES = 4  # in memory
LOOK_AHEAD_M, NEAREST_POINT_M = 1.2, 0.35  # of the teacher
RANGE_ANGLES_RAD = np.radians(np.arange(-48, 49, 12.0))  # of the ranges in its state, within the images
FARTHEST_RANGE_M = 4.0


class IndoorTask(gymnasium.Env):
    """A robot in indoor scenes, on its way to a goal."""

    segment_names = SEGMENTS
    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012
    robot: Robot
    route: Route

    def __init__(
        self, robot: str, image: str, size: Sequence[int], fov_deg: float, source: SceneSource, render_mode: str | None
    ) -> None:
        size = require_size("size", size, most=LARGEST_SIDE)
        if image not in get_args(Image):
            raise ValueError(f"image must be one of {', '.join(map(repr, get_args(Image)))}, not {image!r}")
        if robot not in ROBOTS:
            raise ValueError(f"robot must be one of {', '.join(map(repr, ROBOTS))}, not {robot!r}")
        fov = require_number("fov_deg", fov_deg, 20, 120)
        self.robot = ROBOTS[robot](size, fov)
        self.source, self._kind, self.render_mode = source, image, render_mode
        self.metadata = self.metadata | {"render_fps": round(1 / self.robot.control_step_s)}
        self.action_space = spaces.Box(-1, 1, (self.robot.actions,), np.float32)
        shown = {
            "rgb": rgb_space(size),
            "depth": spaces.Box(0, FARTHEST_M, (*size, 1), np.float32),
            "rgbd": spaces.Box(0, 255, (*size, 4), np.uint8),
            "proximity": spaces.Box(0, 255, (*size, 1), np.uint8),
        }
        self.observation_space = observation_space(shown[image], self.robot.sensors + len(self.task_mirror))
        self._scenes: OrderedDict[str, CompiledScene] = OrderedDict()
        self._entered: CompiledScene | None = None
        self._renders = True

    @property
    def task_mirror(self) -> tuple[int, ...]:
        """The sensors that the task adds to the robot's, as a signed permutation, see `iap.envs.protocols.Symmetry`."""
        return ()

    def set_rendering(self, enabled: bool) -> None:
        """Whether the next steps render an image or return the last one again."""
        self._renders = enabled

    def render(self) -> UInt8[np.ndarray, "480 640 3"] | None:
        """The robot from behind and above; ceilings are left out."""
        return None if self.render_mode is None else self.robot.picture()

    def segmentation(self) -> Int[np.ndarray, "H W"]:
        """The class of each pixel of the robot's camera, as an index of `segment_names`."""
        return self.robot.segments()

    def label(self) -> Label:
        """The action of an expert that knows the map: it follows the shortest path.

        Its state is the direction to take, as cosine and sine, and 1/(1 + r) of the distance r to the nearest obstacle
        in some directions, in metres.
        """
        pose = self.robot.pose()
        x, y = self.route.straight_point(pose.x, pose.y, LOOK_AHEAD_M, NEAREST_POINT_M)
        error = wrapped(math.atan2(y - pose.y, x - pose.x) - pose.yaw_rad)
        left = self.route.distance(pose.x, pose.y)
        state = np.array([math.cos(error), math.sin(error), *1 / (1 + self._ranges_m(pose))], np.float32)
        return Label(self.robot.drive(error, left), state=state)

    @property
    def symmetry(self) -> dict[str, list]:
        """How the mirror image changes sensors and actions."""
        task, own = self.task_mirror, self.robot.mirror
        sensors = [*task, *(int(math.copysign(abs(place) + len(task), place)) for place in own.sensors)]
        return {"sensors": sensors, "actions": [*own.actions], "offsets": [0.0] * len(task) + [*own.offsets]}

    def privileged_state(self) -> Float32[np.ndarray, " 7"]:
        """Position, heading as cosine and sine, what is left of the shortest path, and the direction to take."""
        pose = self.robot.pose()
        x, y = self.route.point_ahead(pose.x, pose.y, LOOK_AHEAD_M)
        bearing = math.atan2(y - pose.y, x - pose.x) - pose.yaw_rad
        left = self.route.distance(pose.x, pose.y)
        heading = math.cos(pose.yaw_rad), math.sin(pose.yaw_rad)
        return np.array([pose.x, pose.y, *heading, left, math.cos(bearing), math.sin(bearing)], np.float32)

    def close(self) -> None:
        """Free the cameras."""
        self.robot.close()

    def enter(self, folder: Any) -> CompiledScene:
        """Move into the scene of a folder."""
        key = str(folder)
        if key not in self._scenes:
            textured = self._kind in COLOURED or self.render_mode is not None
            options = {"floor": self.source.floor, "resolution_m": self.source.resolution_m, "textured": textured}
            self._scenes[key] = compile_scene(folder, self.robot.xml, self.robot.eye_m, **options)
            if len(self._scenes) > KEPT_SCENES:
                self._scenes.popitem(last=False)
        self._scenes.move_to_end(key)
        scene = self._scenes[key]
        if scene is not self._entered:
            self.robot.enter(scene)
            self._entered = scene
        return scene

    def observe(self, sensors: Sequence[float]) -> Observation:
        """The image and all sensors."""
        if self._renders:
            self._image = self._take_image()
        return {"image": self._image, "sensors": np.concatenate([sensors, self.robot.sense()]).astype(np.float32)}

    def move(self, action: Float[np.ndarray, " k"]) -> bool:
        """Let the robot act; whether it touched an obstacle."""
        action = np.asarray(action, np.float64)
        if action.shape != self.action_space.shape:
            raise ValueError(f"action must be of shape {self.action_space.shape}, not {action.shape}")
        if not np.isfinite(action).all():
            raise ValueError(f"action must be finite, not {action}")
        return self.robot.step(np.clip(action, -1, 1))

    def goal_sensors(self, pose: Pose, point: tuple[float, float]) -> tuple[float, float, float]:
        """Distance to a point in units of 5 m, at most 2, and its direction as cosine and sine."""
        dx, dy = point[0] - pose.x, point[1] - pose.y
        bearing = math.atan2(dy, dx) - pose.yaw_rad
        return min(math.hypot(dx, dy) / 5, 2.0), math.cos(bearing), math.sin(bearing)

    def _ranges_m(self, pose: Pose) -> Float[np.ndarray, " n"]:
        """The distances to the nearest obstacles in the directions of `RANGE_ANGLES_RAD`."""
        floor = self.route.map
        cell, side = floor.fractional_cell(pose.x, pose.y), floor.resolution_m
        angles = pose.yaw_rad + RANGE_ANGLES_RAD
        return side * ranges_m(floor.clearance.astype(np.float64) / side, cell, angles, FARTHEST_RANGE_M / side)

    def _take_image(self) -> np.ndarray:
        if self._kind == "rgb":
            return self.robot.image()
        depth = np.minimum(self.robot.depth(), FARTHEST_M)[..., None]
        if self._kind == "depth":
            return depth
        if self._kind == "proximity":
            return np.rint(255 / (1 + depth)).astype(np.uint8)
        return np.concatenate([self.robot.image(), np.rint(depth * (255 / FARTHEST_M)).astype(np.uint8)], axis=-1)


def wrapped(angle_rad: float) -> float:
    """The same angle in [−π, π)."""
    return (angle_rad + math.pi) % (2 * math.pi) - math.pi


def draw_start_and_goal(
    rng: np.random.Generator, scene: CompiledScene, radius_m: float, distance_m: tuple[float, float], tries: int = 12
) -> tuple[Route, tuple[float, float]]:
    """A random goal, and a start whose shortest path to it has a length in a range; else the nearest that there is."""
    free = scene.map.walkable(radius_m + scene.map.resolution_m)
    rows, columns = np.nonzero(free)
    if not len(rows):
        raise ValueError(f"the scene has no floor for a robot with a radius of {radius_m:g} m")
    best: tuple[float, Route, tuple[float, float]] | None = None
    for _ in range(tries):
        cell = int(rng.integers(len(rows)))
        route = Route.to(scene.map, radius_m, scene.map.position(rows[cell], columns[cell]))
        lengths = route.distances[rows, columns]
        fits = np.flatnonzero((lengths >= distance_m[0]) & (lengths <= distance_m[1]))
        if len(fits):
            chosen = int(fits[rng.integers(len(fits))])
            return route, scene.map.position(rows[chosen], columns[chosen])
        off = np.abs(np.clip(lengths, *distance_m) - lengths)
        nearest = int(np.argmin(off))
        if best is None or off[nearest] < best[0]:
            best = float(off[nearest]), route, scene.map.position(rows[nearest], columns[nearest])
    assert best is not None
    return best[1], best[2]
