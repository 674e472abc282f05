"""`iap/IndoorCourse-v0`: a Unitree A1 walks on through rooms, doors and narrow gates."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from jaxtyping import Float

from iap._validation import require_number
from iap.envs.indoor.point_nav import require_range
from iap.envs.indoor.robots.protocol import Pose
from iap.envs.indoor.scenes.source import SceneSource
from iap.envs.indoor.task import IndoorTask, draw_start_and_goal
from iap.envs.wrappers import Observation

START_YAW_RAD, START_AHEAD_M = 0.5, 0.8
ARRIVED_M = 0.5
STALL_STEPS, STALL_M = 120, 0.1


class IndoorCourse(IndoorTask):
    """Walk as far as possible along the way to a distant place in ten seconds, with 50 steps per second.

    ## Actions
    Numbers in [−1, 1]; actions are smoothed over a few steps.

    | number | meaning |
    |---|---|
    | 0 | stride frequency |
    | 1 | stride length: about 1 m/s forwards at 1, on the spot at −1 |
    | 2 | lift of the feet |
    | 3 | height of the trunk |
    | 4 | steering, positive to the left |

    ## Observations
    | key | shape | meaning |
    |---|---|---|
    | image | (height, width, channels) | the camera at the front; as in `iap/PointNav-v0` |
    | sensors 0–1 | float32 | direction, as cosine and sine, to the point `guide_m` ahead on the way, through walls |
    | sensors 2–9 | float32 | roll, pitch; rates about x, y, z; phase of the gait (2); whether the trunk is in contact |

    Angles are in rad and rates in rad/s. The phase of the gait φ is ((cos φ + 1)/2, (sin φ + 1)/2).

    ## Rewards
    The metres by which the shortest path to the goal becomes shorter, at most `v_cap` per step.

    ## Termination
    The robot has fallen, makes no progress (less than 0.1 m in 120 steps), or has arrived. `info["ended"]` is the
    reason. `iap/IndoorCourse-v0` is truncated after 500 steps.

    ## Options
    | option | default | meaning |
    |---|---|---|
    | image | "rgb" | or "depth", "rgbd" for both, "proximity" |
    | size | (64, 64) | height and width of the image |
    | fov_deg | 90 | vertical field of view |
    | split | "train" | of generated scenes, or "held-out" |
    | scenes | 100 | number of generated scenes |
    | scene | None | folder of a scene in Gibson's format, or of several, instead of generated ones |
    | floor, resolution_m | 0, 0.01 | number of the floor, and side of a pixel of its map |
    | distance_m | (8, 20) | least and greatest length of the shortest path |
    | guide_m | 4 | how far ahead the direction sensor points |
    | v_cap | 0.02 | largest reward of a step, in metres |
    | render_mode | None | "rgb_array" makes `render` return images of the robot |
    """

    def __init__(
        self,
        image: str = "rgb",
        size: Sequence[int] = (64, 64),
        fov_deg: float = 90.0,
        split: str = "train",
        scenes: int = 100,
        scene: str | None = None,
        floor: int = 0,
        resolution_m: float = 0.01,
        distance_m: Sequence[float] = (8.0, 20.0),
        guide_m: float = 4.0,
        v_cap: float = 0.02,
        render_mode: str | None = None,
    ) -> None:
        self._distance_m = require_range("distance_m", distance_m)
        self._guide_m = require_number("guide_m", guide_m, 0.2, 100)
        self._v_cap = require_number("v_cap", v_cap, 1e-6, math.inf)
        source = SceneSource(scene, split, scenes, floor, resolution_m)  # pyright: ignore[reportArgumentType]
        super().__init__("a1", image, size, fov_deg, source, render_mode)

    @property
    def task_mirror(self) -> tuple[int, ...]:
        """The direction of the way."""
        return 1, -2

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, dict]:
        """Start in a random scene, about in the direction of the way, with rendering enabled."""
        super().reset(seed=seed, options=options)
        self._renders = True
        rng, folder = self.np_random, self.source.draw(self.np_random)
        self.route, start = draw_start_and_goal(rng, self.enter(folder), self.robot.radius_m, self._distance_m)
        ahead = self.route.point_ahead(*start, START_AHEAD_M)
        yaw = math.atan2(ahead[1] - start[1], ahead[0] - start[0]) + rng.uniform(-START_YAW_RAD, START_YAW_RAD)
        pose = Pose(*start, float(yaw))
        self.robot.reset(pose, rng)
        self._left_m = [self.route.distance(*start)]
        self._collisions = 0
        facts = {"scene": folder.name, "start": pose, "goal": self.route.goal, "shortest_m": self._left_m[0]}
        return self._observe(pose), facts | {"collisions": 0}

    def step(self, action: Float[np.ndarray, " k"]) -> tuple[Observation, float, bool, bool, dict]:
        """Move the legs for 1/50 s."""
        self._collisions += self.move(action)
        pose = self.robot.pose()
        left = self.route.distance(pose.x, pose.y)
        reward = min(max(self._left_m[-1] - left, -self._v_cap), self._v_cap)
        self._left_m.append(left)
        ended = self._termination_reason(left)
        info = {"collisions": self._collisions, "distance_m": left} | ({"ended": ended} if ended else {})
        return self._observe(pose), reward, ended is not None, False, info

    def _termination_reason(self, left: float) -> str | None:
        if self.robot.fallen():
            return "fallen"
        if left < ARRIVED_M:
            return "arrived"
        if len(self._left_m) > STALL_STEPS and self._left_m[-1 - STALL_STEPS] - left < STALL_M:
            return "stalled"
        return None

    def _observe(self, pose: Pose) -> Observation:
        point = self.route.point_ahead(pose.x, pose.y, self._guide_m)
        return self.observe(self.goal_sensors(pose, point)[1:])
