"""The part of the footstep environments that does not depend on how footholds are chosen."""

import math
from abc import abstractmethod
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces
from jaxtyping import Float, Float32, UInt8

from iap._validation import require_number
from iap.envs.quadruped.footsteps.commands import LEVEL_RANGES, STAIRS_RANGES, default_command
from iap.envs.quadruped.footsteps.fall_limits import Contacts, FallLimits
from iap.envs.quadruped.footsteps.ground_cameras import FARTHEST_M, FOOTING, GroundCameras
from iap.envs.quadruped.footsteps.terrain import KINDS, Kind, Terrain, draw_terrain, flat_terrain, max_boxes
from iap.envs.quadruped.footsteps.walking_robot import WalkingRobot
from iap.envs.wrappers import Observation, observation_space
from iap.locomotion.gait import TROT, FootState
from iap.locomotion.robots import LAIKAGO
from iap.locomotion.walker import Command

TerrainName = Kind | Literal["flat"]


class FootstepsBase(gymnasium.Env):
    """A Laikago on a terrain; a subclass defines actions and observations.

    Attributes:
        terrain: of the episode.
        motion: of the body.
        walker: the walking controller.
        ranges: of the actions.
    """

    segment_names = FOOTING
    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": ["rgb_array"],
        "render_fps": 20,
        "image_unit": "m",
        "image_title": "depth downwards",
        "goal": "Walk forward over uneven terrain without falling, up to eight seconds.",
    }

    def __init__(
        self,
        terrain: TerrainName,
        v_cap: float,
        max_roll_rad: float,
        max_pitch_rad: float,
        min_height_m: float,
        terminate_on_contact: Contacts | None,
        render_mode: str | None,
    ) -> None:
        if terrain not in (*KINDS, "flat"):
            raise ValueError(f"terrain must be one of {', '.join(KINDS)} or flat, not {terrain!r}")
        default: Contacts = "body" if terrain == "stairs" else "any"
        contacts = default if terminate_on_contact is None else terminate_on_contact
        limits = FallLimits(max_roll_rad, max_pitch_rad, min_height_m, contacts)
        max_speed_m_s = require_number("v_cap", v_cap, 1e-6, 100)
        self.render_mode = render_mode
        self._kind: TerrainName = terrain
        self.ranges = STAIRS_RANGES if terrain == "stairs" else LEVEL_RANGES
        boxes = 1 if terrain == "flat" else max_boxes(terrain)
        self._robot = WalkingRobot(boxes, limits, max_speed_m_s, lifts_first=terrain == "stairs")
        self._simulator, self.walker = self._robot.simulator, self._robot.walker
        self._cameras = GroundCameras(LAIKAGO.toe_radius_m)

    def _set_spaces(self, image_shape: tuple[int, int, int], sensors: int, actions: int) -> None:
        self.observation_space = observation_space(spaces.Box(0, FARTHEST_M, image_shape, np.float32), sensors)
        self.action_space = spaces.Box(-1, 1, (actions,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, dict]:
        """Draw a terrain and stand at its start, with rendering enabled.

        With `options={"mirrored": True}`, the terrain is the mirror image of the one that would have been drawn, and
        the feet of the other side move first.
        """
        super().reset(seed=seed, options=options)
        terrain = flat_terrain() if self._kind == "flat" else draw_terrain(self._kind, self.np_random)
        is_mirrored = bool((options or {}).get("mirrored"))
        self.terrain: Terrain = terrain.mirrored() if is_mirrored else terrain
        self._cameras.set_terrain(self.terrain.boxes)
        self.motion = self._robot.reset(self.terrain.boxes, TROT.mirrored() if is_mirrored else TROT)
        self._reset_commands()
        self._renders = True
        return self._observe(), {"terrain": self.terrain}

    def step(self, action: Float[np.ndarray, " k"]) -> tuple[Observation, float, bool, bool, dict]:
        """Apply the action for 1/20 s."""
        action = np.minimum(np.maximum(np.asarray(action, np.float64), -1), 1)
        if not math.isfinite(action.sum()):
            raise ValueError(f"action must be finite, not {action}")
        self.motion, reward, ended = self._robot.follow(self.motion, self._to_command(action))
        return self._observe(), reward, ended is not None, False, {"ended": ended} if ended else {}

    def set_rendering(self, enabled: bool) -> None:
        """Whether the next steps compute an image or return the last one again."""
        self._renders = enabled

    def render(self) -> UInt8[np.ndarray, "480 640 3"] | None:
        """The robot from behind and above."""
        return None if self.render_mode is None else self._simulator.scene()

    def scene_labels(self) -> list[tuple[str, float, float]]:
        """The robot, and where its feet in swing will land; the front one is named."""
        landings = self.walker.landings_m[self.walker.states == FootState.SWING]
        points = np.array([self.motion.position_m, *landings[np.argsort(-landings[:, 0])]])
        names = ["robot", "next landing", *[""] * len(landings)]
        return [(name, *place) for name, place in zip(names, self._simulator.places_in_scene(points), strict=False)]

    def default_command(self) -> Command:
        """The motion of the body and the feet without any action."""
        return default_command(self.walker, self.motion, self._kind == "stairs")

    def privileged_state(self) -> Float32[np.ndarray, " 41"]:
        """Positions and velocities of trunk and motors, and the heights of the ground at the next landings."""
        landings = self.walker.next_landings(self.motion, (0.3, 0.0), 0.45)
        heights = self.terrain.heights(landings[:, :2]) - self.motion.position_m[2]
        return np.concatenate([*self._simulator.state(), np.maximum(heights, -1.0)]).astype(np.float32)

    def close(self) -> None:
        """Free the cameras."""
        self._simulator.close()

    @abstractmethod
    def to_action(self, command: Command) -> Float32[np.ndarray, " k"]:
        """The action that is closest to a command."""

    @abstractmethod
    def _to_command(self, action: Float[np.ndarray, " k"]) -> Command:
        """The command of an action."""

    @abstractmethod
    def _reset_commands(self) -> None:
        """Forget the actions of the last episode."""

    @abstractmethod
    def _observe(self) -> Observation:
        """The observation of the current state."""
