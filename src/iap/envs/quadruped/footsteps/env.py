"""`iap/StepStones-v0`, `iap/StoneGrid-v0`, `iap/Stairs-v0`: a Laikago that sees where it can put its feet.

Two depth cameras look down, from the front and from the belly. The policy chooses footholds and how the body moves,
20 times a second; swinging legs go to the footholds, and model-predictive control makes standing legs carry the body.
"""

import math
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces
from jaxtyping import Float, Float32, Int, UInt8

from iap.envs.quadruped.footsteps.commands import (
    AXES,
    FEELINGS,
    ON_STAIRS,
    ON_THE_LEVEL,
    mirror_of,
    numbers_of,
    sense,
    usual_command,
)
from iap.envs.quadruped.footsteps.fall_limits import Bumps, FallLimits
from iap.envs.quadruped.footsteps.ground_cameras import DEPTH_SIZE, FARTHEST_M, FOOTING, VIEWS, GroundCameras
from iap.envs.quadruped.footsteps.single_foot import OneFoot, Turn, sense_turn
from iap.envs.quadruped.footsteps.single_foot_kernels import SENSED, WINDOW
from iap.envs.quadruped.footsteps.terrain import KINDS, Kind, Terrain, draw_terrain, flat_terrain, most_boxes
from iap.envs.quadruped.footsteps.walking_robot import WalkingRobot
from iap.envs.quadruped.obstacle_course.course import require_number
from iap.envs.wrappers import Observation, observation_space
from iap.locomotion.gait import TROT
from iap.locomotion.quadruped import LAIKAGO
from iap.locomotion.walker import Command

EPISODE_STEPS = 160


class FootstepTask(gymnasium.Env):
    """Walk as far as possible, at most as fast as `v_cap`, without falling.

    The image has the depths of the front camera above those of the belly camera, in metres, forward up. `footsteps`
    says what the numbers of actions and sensors mean.
    """

    segment_names = FOOTING
    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 20}  # noqa: RUF012

    def __init__(
        self,
        terrain: Kind | Literal["flat"],
        footholds: str | None = None,
        one_foot: bool = False,
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
            footholds: what an action chooses: axes of the four footholds, "x", "xy", "xz" and so on, while the body
                walks on as usual; by default, all 22 numbers.
            one_foot: whether feet are placed one at a time, by a policy to which all are alike; the image is then a
                window of (16, 16, 2) around the place where the foot would land: see `one_foot`.
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
        bumps = usual if ends_at_bumps is None else ends_at_bumps
        limits = FallLimits(most_roll_rad, most_pitch_rad, least_height_m, bumps)
        self._kind: Kind | Literal["flat"] = terrain
        self._noise = require_number("noise", noise, 0, 100)
        most_m_s = require_number("v_cap", v_cap, 1e-6, 100)
        self.render_mode = render_mode
        self._numbers = numbers_of(footholds)
        if one_foot and self._noise > 0:
            raise ValueError(f"noise must be 0 with one_foot=True, which has sensors of its own, not {noise}")
        self.reach = ON_STAIRS if terrain == "stairs" else ON_THE_LEVEL
        self.places_one_foot = one_foot
        self._one_foot = OneFoot(footholds or AXES, self.reach, terrain == "stairs") if one_foot else None
        shape = (len(VIEWS) * DEPTH_SIZE[0], DEPTH_SIZE[1], 1) if self._one_foot is None else (*WINDOW, 2)
        actions = len(self._numbers) if self._one_foot is None else len(footholds or AXES)
        sensors = FEELINGS + actions if self._one_foot is None else SENSED
        self.observation_space = observation_space(spaces.Box(0, FARTHEST_M, shape, np.float32), sensors)
        self.action_space = spaces.Box(-1, 1, (actions,), np.float32)
        boxes = 1 if terrain == "flat" else most_boxes(terrain)
        self._robot = WalkingRobot(boxes, limits, most_m_s, lifts_first=terrain == "stairs")
        self._simulator, self.walker = self._robot.simulator, self._robot.walker
        self._cameras = GroundCameras(LAIKAGO.toe_radius_m)
        self._turn: Turn | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, dict]:
        """Draw a terrain and stand at its beginning, with an image whatever `look` said before.

        With `options={"mirrored": True}`, it is the mirror image of the terrain that would have been drawn, and the
        feet of the other side go first.
        """
        super().reset(seed=seed, options=options)
        terrain = flat_terrain() if self._kind == "flat" else draw_terrain(self._kind, self.np_random)
        is_mirrored = bool((options or {}).get("mirrored"))
        self.terrain: Terrain = terrain.mirrored() if is_mirrored else terrain
        self._cameras.place(self.terrain.boxes)
        self.motion = self._robot.restart(self.terrain.boxes, TROT.mirrored() if is_mirrored else TROT)
        self._last_action = np.zeros(len(self._numbers))
        if self._one_foot is not None:
            self._one_foot.restart()
        self._looking = True
        return self._observe(), {"terrain": self.terrain}

    def step(self, action: Float[np.ndarray, " k"]) -> tuple[Observation, float, bool, bool, dict]:
        """Follow the action for a twentieth of a second."""
        action = np.minimum(np.maximum(np.asarray(action, np.float64), -1), 1)
        if not math.isfinite(action.sum()):
            raise ValueError(f"action must be finite, not {action}")
        self._last_action = action
        self.motion, reward, ended = self._robot.follow(self.motion, self._to_command(action))
        return self._observe(), reward, ended is not None, False, {"ended": ended} if ended else {}

    def look(self, wanted: bool) -> None:
        """Whether the next steps shall draw an image, or may repeat the last one."""
        self._looking = wanted

    def render(self) -> UInt8[np.ndarray, "480 640 3"] | None:
        """The robot from behind and above."""
        return None if self.render_mode is None else self._simulator.picture()

    def segmentation(self) -> Int[np.ndarray, "H W"]:
        """What a foot would find at the place that each pixel shows, as an index of `segment_names`."""
        if self._one_foot is not None:
            return self._cameras.labels_around(self.turn(), self.terrain, self.motion)
        return self._cameras.labels(self.terrain, self.motion)

    @property
    def mirror(self) -> dict[str, list] | None:
        """How a mirror changes sensors and actions, images being reversed; None if all feet are alike already."""
        return mirror_of(self._numbers) if self._one_foot is None else None

    def usual_command(self) -> Command:
        """What the body does, and where feet go, if nothing else is said."""
        return usual_command(self.walker, self.motion, self._kind == "stairs")

    def to_action(self, command: Command) -> Float32[np.ndarray, " k"]:
        """The action that says as much of this as an action can."""
        if self._one_foot is not None:
            turn = self.turn()
            return self._one_foot.action(turn, command.offsets_m[turn.leg])
        return self.reach.to_action(command)[self._numbers]

    def turn(self) -> Turn:
        """Which foot is to be placed now, if one is placed at a time."""
        assert self._turn is not None
        return self._turn

    def needs_target(self) -> Float[np.ndarray, " 4"]:
        """1 for feet that lift off before the next action, so that this one decides where they land."""
        return self._robot.lifting_before_next().astype(float)

    def privileged_state(self) -> Float32[np.ndarray, " 41"]:
        """Positions and velocities of trunk and motors, and the heights of the ground where feet would land."""
        landings = self.walker.next_landings(self.motion, (0.3, 0.0), 0.45)
        heights = self.terrain.heights(landings[:, :2]) - self.motion.position_m[2]
        return np.concatenate([*self._simulator.state(), np.maximum(heights, -1.0)]).astype(np.float32)

    def close(self) -> None:
        """Free the cameras."""
        self._simulator.close()

    def _to_command(self, action: Float[np.ndarray, " k"]) -> Command:
        usual = self.usual_command()
        if self._one_foot is not None:
            return self._one_foot.command(self.turn(), action, self.walker, self.motion, usual)
        return self.reach.to_command(self.reach.completed(action, self._numbers, usual))

    def _observe(self) -> Observation:
        if self._one_foot is not None:
            self._turn = turn = self._one_foot.turn(self.walker, self.motion, self.usual_command())
            if self._looking:
                self._image = self._cameras.around(turn, self.motion)
            return {"image": self._image, "sensors": sense_turn(turn, self.walker, self.motion)}
        if self._looking:
            self._image = self._cameras.depths(self.motion)
        noise = self._noise * self.np_random.standard_normal(16) if self._noise > 0 else None
        sensors = sense(self.walker, self.motion, self.needs_target(), self._last_action, noise)
        return {"image": self._image, "sensors": sensors}
