"""`iap/StepStones-v0`, `iap/StoneGrid-v0`, `iap/Stairs-v0`: a Laikago that sees where it can put its feet.

Two depth cameras look down, from the front and from the belly. The policy chooses footholds and how the body moves,
20 times a second; swinging legs go to the footholds, and model-predictive control makes standing legs carry the body.
"""

import math
from typing import Any, Literal, get_args

import gymnasium
import numpy as np
from gymnasium import spaces
from jaxtyping import Float, Float32, Int, UInt8

from iap.envs.observations import Observation, observation_space
from iap.envs.quadruped.courses import require_number
from iap.envs.quadruped.depth_rays import DepthRays
from iap.envs.quadruped.footsteps import ACTIONS, ON_STAIRS, ON_THE_LEVEL, SENSORS, sense
from iap.envs.quadruped.mujoco_simulator import MujocoSimulator
from iap.envs.quadruped.robots import load_robot
from iap.envs.quadruped.simulator import Simulator, View
from iap.envs.quadruped.uneven_terrain import FLOOR_M, KINDS, Kind, Terrain, draw_terrain, flat_terrain, most_boxes
from iap.locomotion.mpc import QPError
from iap.locomotion.quadruped import LAIKAGO
from iap.locomotion.walker import Motion, Walker

CONTROL_STEP_S, PHYSICS_STEPS = 0.005, 2
CONTROL_STEPS = 10  # an action is held for: 20 actions a second
EPISODE_STEPS = 160
SETTLING_STEPS = 20  # at rest, before the first action

DEPTH_SIZE = (24, 32)
FRONT_M, BELLY_M = (0.197, 0.0, -0.115), (-0.092, 0.0, -0.105)
VIEWS = tuple(View(place, DEPTH_SIZE, fov_deg=75.0, pitch_rad=math.pi / 2) for place in (FRONT_M, BELLY_M))
FARTHEST_M = 2.0  # that is told apart

FOOTING = ("gap", "edge", "safe")
EDGE_M = 0.035  # from which on a foot does not slip off
SAME_HEIGHT_M = 0.01

STANDING_M = 0.4835
TOUCH_N = 1.0

Bumps = Literal["any", "body", "none"]


class FootstepTask(gymnasium.Env):
    """Walk as far as possible, at most as fast as `v_cap`, without falling.

    The image has the depths of the front camera above those of the belly camera, in metres, forward up. `footsteps`
    says what the numbers of actions and sensors mean.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 20}  # noqa: RUF012

    def __init__(
        self,
        terrain: Kind | Literal["flat"],
        noise: float = 0.0,
        v_cap: float = 0.375,
        most_roll_rad: float = 0.25,
        most_pitch_rad: float = 1.0,
        least_height_m: float = 0.15,
        ends_at_bumps: Bumps | None = None,
        render_mode: str | None = None,
    ) -> None:
        """The task on one kind of terrain, drawn anew for each episode.

        Args:
            terrain: "step-stones", "stone-grid", "stairs", or "flat".
            noise: of what the sensors measure; 1 is that of real ones.
            v_cap: metres a second that are rewarded at most.
            most_roll_rad: at which the episode ends.
            most_pitch_rad: at which the episode ends.
            least_height_m: of the body above the ground, at which the episode ends.
            ends_at_bumps: whether the episode ends when "any" part but a foot touches the ground, the "body" (any part
                but feet and shins), or "none"; by default "body" on stairs, whose edges shins brush, else "any".
            render_mode: "rgb_array" for pictures of the scene from `render`.
        """
        if terrain not in (*KINDS, "flat"):
            raise ValueError(f"terrain must be one of {', '.join(KINDS)} or flat, not {terrain!r}")
        usual: Bumps = "body" if terrain == "stairs" else "any"
        self._ends_at_bumps: Bumps = usual if ends_at_bumps is None else ends_at_bumps
        if self._ends_at_bumps not in get_args(Bumps):
            raise ValueError(f"ends_at_bumps must be one of {', '.join(get_args(Bumps))}, not {ends_at_bumps!r}")
        self._kind: Kind | Literal["flat"] = terrain
        self._noise = require_number("noise", noise, 0, 100)
        self._most_step_m = require_number("v_cap", v_cap, 1e-6, 100) * CONTROL_STEP_S
        self._most_roll = require_number("most_roll_rad", most_roll_rad, 0, math.pi)
        self._most_pitch = require_number("most_pitch_rad", most_pitch_rad, 0, math.pi)
        self._least_height = require_number("least_height_m", least_height_m, 0, 1)
        self.render_mode = render_mode
        depths = spaces.Box(0, FARTHEST_M, (len(VIEWS) * DEPTH_SIZE[0], DEPTH_SIZE[1], 1), np.float32)
        self.observation_space = observation_space(depths, SENSORS)
        self.reach = ON_STAIRS if terrain == "stairs" else ON_THE_LEVEL
        self.action_space = spaces.Box(-1, 1, (ACTIONS,), np.float32)
        robot = load_robot("laikago")
        self._pose = robot.pose_rad
        boxes = 1 if terrain == "flat" else most_boxes(terrain)
        self._simulator: Simulator = MujocoSimulator(robot, VIEWS, boxes, CONTROL_STEP_S, PHYSICS_STEPS)
        self._depth_rays = DepthRays(VIEWS[0], FARTHEST_M)
        self.walker = Walker(LAIKAGO, step_s=CONTROL_STEP_S, lifts_first=terrain == "stairs")
        self._looking = True

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, dict]:
        """Draw a terrain and stand at its beginning, with an image whatever `look` said before."""
        super().reset(seed=seed, options=options)
        self.terrain: Terrain = flat_terrain() if self._kind == "flat" else draw_terrain(self._kind, self.np_random)
        self._simulator.reset(self.terrain.boxes, (0.0, 0.0, STANDING_M), 0.0)
        self._depth_rays.place(self.terrain.boxes)
        for _ in range(SETTLING_STEPS):
            self._simulator.step(self._pose)
        self.motion = self._measure()
        self.walker.restart(self.motion)
        self._last_action = np.zeros(ACTIONS)
        self._looking = True
        return self._observe(), {"terrain": self.terrain}

    def step(self, action: Float[np.ndarray, " 22"]) -> tuple[Observation, float, bool, bool, dict]:
        """Follow the action for a twentieth of a second."""
        action = np.minimum(np.maximum(np.asarray(action, np.float64), -1), 1)
        if not math.isfinite(action.sum()):
            raise ValueError(f"action must be finite, not {action}")
        self._last_action = action
        command = self.reach.to_command(action)
        reward, ended = 0.0, None
        for _ in range(CONTROL_STEPS):
            before_m = self.motion.position_m[0]
            try:
                commands, gives_torque = self.walker.step(self.motion, command)
            except QPError:
                ended = "no forces carry the body"
                break
            self._simulator.step(commands, gives_torque)
            self.motion = self._measure()
            reward += min(max(self.motion.position_m[0] - before_m, -self._most_step_m), self._most_step_m)
            ended = self._why_ended()
            if ended:
                break
        return self._observe(), float(reward), ended is not None, False, {"ended": ended} if ended else {}

    def look(self, wanted: bool) -> None:
        """Whether the next steps shall draw an image, or may repeat the last one."""
        self._looking = wanted

    def render(self) -> UInt8[np.ndarray, "480 640 3"] | None:
        """The robot from behind and above."""
        return None if self.render_mode is None else self._simulator.picture()

    def footing(self) -> Int[np.ndarray, "48 32"]:
        """What a foot would find at the place that each pixel shows, as an index of `FOOTING`."""
        place = (self.motion.position_m, self.motion.rotation)
        points = np.concatenate([self._depth_rays.surface(view, *place) for view in VIEWS])
        is_safe = np.abs(self.terrain.heights(points[..., :2], EDGE_M) - points[..., 2]) < SAME_HEIGHT_M
        is_gap = points[..., 2] < FLOOR_M + SAME_HEIGHT_M
        return np.where(is_gap, FOOTING.index("gap"), np.where(is_safe, FOOTING.index("safe"), FOOTING.index("edge")))

    def needs_target(self) -> Float[np.ndarray, " 4"]:
        """1 for feet that lift off before the next action, so that this one decides where they land."""
        gait, soon_s = self.walker.gait, CONTROL_STEPS * CONTROL_STEP_S
        progress = gait.swing_progress(self.walker.time_s + soon_s - CONTROL_STEP_S)
        return ((progress >= 0) & (progress < soon_s / gait.swing_s - 1e-9)).astype(float)

    def true_state(self) -> Float32[np.ndarray, " 41"]:
        """Positions and velocities of trunk and motors, and the heights of the ground where feet would land."""
        landings = self.walker.next_landings(self.motion, (0.3, 0.0), 0.45)
        heights = self.terrain.heights(landings[:, :2]) - self.motion.position_m[2]
        return np.concatenate([*self._simulator.state(), np.maximum(heights, -1.0)]).astype(np.float32)

    def close(self) -> None:
        """Free the cameras."""
        self._simulator.close()

    def _measure(self) -> Motion:
        position, quaternion, velocity, rates, angles, _ = self._simulator.state()
        touching = self._simulator.foot_pressures() > TOUCH_N
        return Motion.measured(position, quaternion, velocity, rates, angles, touching)

    def _why_ended(self) -> str | None:
        roll, pitch = self.motion.roll_pitch
        if not (abs(roll) <= self._most_roll and abs(pitch) <= self._most_pitch):
            return "tipped over"
        feet_m = sum(self.walker.footholds_m[:, 2].tolist()) / 4
        if not self.motion.position_m[2] - feet_m > self._least_height:
            return "sunk down"
        if self._ends_at_bumps != "none":
            parts = self._simulator.bumps()
            if parts and (self._ends_at_bumps == "any" or any(not part.endswith("lower_leg") for part in parts)):
                return "bumped"
        return None

    def _observe(self) -> Observation:
        if self._looking:
            place = (self.motion.position_m, self.motion.rotation)
            self._image = np.concatenate([self._depth_rays.look(view, *place) for view in VIEWS])[..., None]
        noise = self._noise * self.np_random.standard_normal(16) if self._noise > 0 else None
        sensors = sense(self.walker, self.motion, self.needs_target(), self._last_action, noise)
        return {"image": self._image, "sensors": sensors}
