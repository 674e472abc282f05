"""`iap/StepStones-v0`, `iap/StoneGrid-v0`, `iap/Stairs-v0`: choose all footholds and the motion of the body."""

import numpy as np
from jaxtyping import Float, Float32, Int

from iap._validation import require_number
from iap.envs.protocols import Label
from iap.envs.quadruped.footsteps.base import FootstepsBase, TerrainName
from iap.envs.quadruped.footsteps.commands import ACTIONS, BODY_SENSORS, action_indices, body_sensors, symmetry_of
from iap.envs.quadruped.footsteps.fall_limits import Contacts
from iap.envs.quadruped.footsteps.ground_cameras import DEPTH_SIZE, VIEWS
from iap.envs.quadruped.footsteps.teacher import label_footholds
from iap.envs.wrappers import Observation
from iap.locomotion.walker import Command


class Footsteps(FootstepsBase):
    """A Laikago walks over uneven terrain as far as possible without falling.

    Legs in swing move to the chosen footholds, and model-predictive control computes the forces of legs in contact.
    Each action lasts 1/20 s. The terrain is drawn anew for each episode.

    ## Actions
    22 numbers in [−1, 1]: footholds, clearances, and the motion of the body, see `footsteps.commands`. With
    `footholds="xy"`, only these axes of the four footholds; everything else follows the default command.

    ## Observations
    | key | shape | meaning |
    |---|---|---|
    | image | (48, 32, 1) float32 | depths in metres: front camera above belly camera, both looking down, forward up |
    | sensors | (34 + actions,) float32 | state of body and feet, then the last action, see `footsteps.commands` |

    ## Rewards
    The forward distance of the step in metres, at most `v_cap` m/s.

    ## Termination
    Roll, pitch, height or contacts exceed their limits, or no contact forces can carry the body. `info["ended"]` is
    the reason. The registered ids are truncated after 160 steps.

    ## Options
    | option | default | meaning |
    |---|---|---|
    | terrain | by id | "step-stones", "stone-grid", "stairs" or "flat" |
    | footholds | None | axes of the footholds that an action chooses, such as "x" or "xz"; None is all 22 numbers |
    | last_action | True | whether the sensors contain the last action |
    | noise | 0.0 | scale of the sensor noise; 1 is that of real sensors |
    | v_cap | 0.375 | largest rewarded speed, in m/s |
    | max_roll_rad | 0.25 | termination limit |
    | max_pitch_rad | 1.0 | termination limit |
    | min_height_m | 0.15 | termination limit, of the body above its feet |
    | terminate_on_contact | by terrain | contact of "any" part except feet, of the "body" (not shins), or "none" |
    | render_mode | None | "rgb_array" makes `render` return images of the scene |

    The default of `terminate_on_contact` is "body" on stairs, whose edges shins may touch, and "any" elsewhere.
    """

    metadata = FootstepsBase.metadata | {"image_parts": ("front camera", "belly camera")}

    def __init__(
        self,
        terrain: TerrainName,
        footholds: str | None = None,
        last_action: bool = True,
        noise: float = 0.0,
        v_cap: float = 0.375,
        max_roll_rad: float = 0.25,
        max_pitch_rad: float = 1.0,
        min_height_m: float = 0.15,
        terminate_on_contact: Contacts | None = None,
        render_mode: str | None = None,
    ) -> None:
        self._noise = require_number("noise", noise, 0, 100)
        self._indices = action_indices(footholds)
        super().__init__(terrain, v_cap, max_roll_rad, max_pitch_rad, min_height_m, terminate_on_contact, render_mode)
        self._shows_last_action = last_action
        actions = len(self._indices)
        sensors = BODY_SENSORS + (actions if last_action else 0)
        self._set_spaces((len(VIEWS) * DEPTH_SIZE[0], DEPTH_SIZE[1], 1), sensors, actions)

    @property
    def symmetry(self) -> dict[str, list]:
        """How the mirror image changes sensors and actions."""
        return symmetry_of(self._indices, last_action=self._shows_last_action)

    def segmentation(self) -> Int[np.ndarray, "48 32"]:
        """The footing at each pixel, as an index of `segment_names`."""
        return self._cameras.labels(self.terrain, self.motion)

    def to_action(self, command: Command) -> Float32[np.ndarray, " k"]:
        """The action that is closest to a command."""
        return self.ranges.to_action(command)[self._indices]

    def needs_target(self) -> Float[np.ndarray, " 4"]:
        """1 for feet that lift off before the next action, so that this one sets their landings."""
        return self._robot.lifting_before_next().astype(float)

    @property
    def chooses_part_of_the_action(self) -> bool:
        """Whether the option `footholds` leaves entries of the action to the default command."""
        return len(self._indices) < ACTIONS

    @property
    def terrain_boxes(self) -> Float[np.ndarray, "n 8"]:
        """The terrain for compiled functions, see `GroundCameras.boxes`."""
        return self._cameras.boxes

    def label(self) -> Label:
        """The action of a teacher that knows the terrain, and all footholds that are as safe."""
        return label_footholds(self)

    def _to_command(self, action: Float[np.ndarray, " k"]) -> Command:
        self._last_action = action
        return self.ranges.to_command(self.ranges.completed(action, self._indices, self.default_command()))

    def _reset_commands(self) -> None:
        self._last_action = np.zeros(len(self._indices))

    def _observe(self) -> Observation:
        if self._renders:
            self._image = self._cameras.depths(self.motion)
        noise = self._noise * self.np_random.standard_normal(16) if self._noise > 0 else None
        last_action = self._last_action if self._shows_last_action else self._last_action[:0]
        sensors = body_sensors(self.walker, self.motion, self.needs_target(), last_action, noise)
        return {"image": self._image, "sensors": sensors}
