"""`iap/PointNav-v0`: go to a goal in an unknown apartment, with the direction to the goal as a sensor."""

import math
from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np
from jaxtyping import Float

from iap._validation import require_number
from iap.envs.indoor.episodes import Episode, find_scene, load_episodes
from iap.envs.indoor.robots.protocol import Pose
from iap.envs.indoor.route import Route
from iap.envs.indoor.scenes.compiled import CompiledScene
from iap.envs.indoor.scenes.source import SceneSource
from iap.envs.indoor.task import IndoorTask, RobotName, draw_start_and_goal
from iap.envs.wrappers import Observation

Reward = Literal["progress", "success", "spl"]
SUCCESS_REWARD = 2.5


class PointNav(IndoorTask):
    """Go to a goal in an apartment that was never seen before.

    ## Actions
    Numbers in [−1, 1]. With `robot="rolling-base"`, a step is 0.1 s:

    | number | meaning |
    |---|---|
    | 0 | speed, 1 m/s forwards at 1 and 0.3 m/s backwards at −1 |
    | 1 | turning, 1.6 rad/s to the left at 1 |

    With `robot="a1"`, a step is 0.02 s, and the numbers are those of `iap/IndoorCourse-v0`.

    ## Observations
    | key | shape | meaning |
    |---|---|---|
    | image | (height, width, channels) | the camera at the front; rgb: (…, 3) uint8; depth: (…, 1) float32, metres up to 10; rgbd: (…, 4) uint8, of whose last channel 255 is 10 m; proximity: (…, 1) uint8, 255/(1 + d) at a depth of d metres |
    | sensors 0–2 | float32 | distance to the goal as the crow flies, in units of 5 m, at most 2; direction to it, cos and sin |
    | sensors 3–5 | float32 | rolling base: distance forwards and turn of the last step, and whether it touched an obstacle |
    | sensors 3–10 | float32 | A1: see `iap/IndoorCourse-v0` |

    ## Rewards
    | reward | meaning |
    |---|---|
    | "progress" | metres by which the shortest path to the goal becomes shorter, and 2.5 at success |
    | "success" | 1 at success |
    | "spl" | at success, length of the shortest path / length of the path taken, at most 1 |

    ## Termination
    Success: the robot is within `success_m` of the goal; it need not stop. Or the A1 has fallen.
    `info["ended"]` is the reason. `iap/PointNav-v0` is truncated after 300 steps; `make_env(..., max_episode_steps=…)`.

    ## Info
    | key | meaning |
    |---|---|
    | scene, start, goal, shortest_m | of the episode, at `reset` |
    | collisions | steps so far in which the robot touched an obstacle |
    | distance_m | what is left of the shortest path |
    | success, spl, path_m | so far |

    ## Options
    | option | default | meaning |
    |---|---|---|
    | robot | "rolling-base" | or "a1" |
    | image | "rgb" | or "depth", "rgbd" for both, "proximity" |
    | size | (64, 64) | height and width of the image |
    | fov_deg | 90 | vertical field of view |
    | split | "train" | of generated scenes, or "held-out" |
    | scenes | 100 | number of generated scenes |
    | scene | None | folder of a scene in Gibson's format, or of several, instead of generated ones |
    | floor, resolution_m | 0, 0.01 | number of the floor, and side of a pixel of its map |
    | episodes | None | a file of episodes, Gibson's CSV or Habitat's JSON; `scene` is then the folder of all scenes |
    | distance_m | (2, 10) | least and greatest length of the shortest path |
    | success_m | 0.36 | distance to the goal at which the episode is a success |
    | reward | "progress" | see above |
    | render_mode | None | "rgb_array" makes `render` return images of the robot |
    """  # noqa: E501

    def __init__(
        self,
        robot: RobotName = "rolling-base",
        image: str = "rgb",
        size: Sequence[int] = (64, 64),
        fov_deg: float = 90.0,
        split: str = "train",
        scenes: int = 100,
        scene: str | None = None,
        floor: int = 0,
        resolution_m: float = 0.01,
        episodes: str | None = None,
        distance_m: Sequence[float] = (2.0, 10.0),
        success_m: float = 0.36,
        reward: Reward = "progress",
        render_mode: str | None = None,
    ) -> None:
        self._distance_m = require_range("distance_m", distance_m)
        self._success_m = require_number("success_m", success_m, 0.05, 5)
        if reward not in get_args(Reward):
            raise ValueError(f"reward must be one of {', '.join(map(repr, get_args(Reward)))}, not {reward!r}")
        self._reward = reward
        source = SceneSource(scene, split, scenes, floor, resolution_m)  # pyright: ignore[reportArgumentType]
        self._episodes: list[Episode] | None = None
        if episodes is not None:
            if scene is None:
                raise ValueError("episodes needs scene, the folder of the scenes that they name")
            self._episodes = load_episodes(episodes)
        super().__init__(robot, image, size, fov_deg, source, render_mode)

    @property
    def task_mirror(self) -> tuple[int, ...]:
        """Distance and direction of the goal."""
        return 1, 2, -3

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, dict]:
        """Start in a random scene with a random goal, with rendering enabled.

        With `options={"episode": i}`, the i-th of the given episodes.
        """
        super().reset(seed=seed, options=options)
        self._renders = True
        scene, self.route, pose, name = self._draw((options or {}).get("episode"))
        self.robot.reset(pose, self.np_random)
        self._scene, self._place, self._path_m, self._collisions = scene, pose, 0.0, 0
        self._left_m = self._shortest_m = self.route.distance(pose.x, pose.y)
        start = {"scene": name, "start": pose, "goal": self.route.goal, "shortest_m": self._shortest_m}
        return self._observe(), start | self._info(success=False)

    def step(self, action: Float[np.ndarray, " k"]) -> tuple[Observation, float, bool, bool, dict]:
        """Move for one step."""
        self._collisions += self.move(action)
        before, self._place = self._place, self.robot.pose()
        self._path_m += math.dist(before[:2], self._place[:2])
        left = self.route.distance(self._place.x, self._place.y)
        progress, self._left_m = self._left_m - left, left
        success = math.dist(self._place[:2], self.route.goal) <= self._success_m
        ended = "success" if success else "fallen" if self.robot.fallen() else None
        info = self._info(success) | ({"ended": ended} if ended else {})
        reward = {"progress": progress + SUCCESS_REWARD * success, "success": float(success), "spl": info["spl"]}
        return self._observe(), reward[self._reward], ended is not None, False, info

    def _draw(self, number: int | None) -> tuple[CompiledScene, Route, Pose, str]:
        """The scene, the route, the start and the scene's name of the next episode."""
        rng, radius = self.np_random, self.robot.radius_m
        if self._episodes is None:
            folder = self.source.draw(rng)
            scene = self.enter(folder)
            route, start = draw_start_and_goal(rng, scene, radius, self._distance_m)
            return scene, route, Pose(*start, float(rng.uniform(-math.pi, math.pi))), folder.name
        chosen = int(rng.integers(len(self._episodes))) if number is None else number
        episode = self._episodes[chosen]
        scene = self.enter(find_scene(str(self.source.scene), episode.scene))
        return scene, Route.to(scene.map, radius, episode.goal), Pose(*episode.start, episode.yaw_rad), episode.scene

    def _observe(self) -> Observation:
        return self.observe(self.goal_sensors(self._place, self.route.goal))

    def _info(self, success: bool) -> dict[str, Any]:
        spl = self._shortest_m / max(self._shortest_m, self._path_m, 1e-9) if success else 0.0
        facts = {"success": success, "spl": spl, "path_m": self._path_m}
        return facts | {"collisions": self._collisions, "distance_m": self._left_m}


def require_range(name: str, value: object) -> tuple[float, float]:
    """A pair (least, greatest) of positive numbers."""
    if not isinstance(value, Sequence) or len(value) != 2:  # noqa: PLR2004
        raise ValueError(f"{name} must be (least, greatest), not {value!r}")
    least = require_number(name, value[0], 0.1, 1000)
    return least, require_number(name, value[1], least, 1000)
