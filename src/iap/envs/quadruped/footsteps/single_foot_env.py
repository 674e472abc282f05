"""`iap/StepStonesSingleFoot-v0`, `iap/StoneGridSingleFoot-v0`, `iap/StairsSingleFoot-v0`: one foothold at a time."""

import numpy as np
from jaxtyping import Float, Float32, Int

from iap.envs.quadruped.footsteps.base import FootstepsBase, TerrainName
from iap.envs.quadruped.footsteps.commands import AXES, action_indices
from iap.envs.quadruped.footsteps.fall_limits import Contacts
from iap.envs.quadruped.footsteps.ground_cameras import WINDOW
from iap.envs.quadruped.footsteps.single_foot import SENSORS, NextFoot, PlacedFeet, foot_sensors
from iap.envs.wrappers import Observation
from iap.locomotion.walker import Command


class SingleFootsteps(FootstepsBase):
    """As `Footsteps`, but each action sets the landing of one foot; the body follows the default command.

    All feet are alike to the policy: images and sensors of left feet are mirrored.

    ## Actions
    | number | meaning | range |
    |---|---|---|
    | x | offset of the landing, forward | −0.15 … 0.13 m |
    | y | offset of the landing, to the right for right feet, to the left for left feet | ±0.08 m |
    | z | offset of the landing, upwards | ±0.03 m; −0.10 … 0.17 m on stairs |

    `footholds` selects some of them. Actions are in [−1, 1].

    ## Observations
    | key | shape | meaning |
    |---|---|---|
    | image | (16, 16, 2) float32 | window around the default landing: height of the ground, closeness to the landing |
    | sensors | (9,) float32 | is it a rear foot, velocity (3), height, roll, pitch, and their rates |

    Both channels are 0 at edges and in gaps, see `ground_cameras.footing`.

    ## Rewards
    The forward distance of the step in metres, at most `v_cap` m/s.

    ## Termination
    As in `Footsteps`.

    ## Options
    | option | default | meaning |
    |---|---|---|
    | terrain | by id | "step-stones", "stone-grid", "stairs" or "flat" |
    | footholds | "xyz" | axes of the landing that an action chooses |
    | v_cap | 0.375 | largest rewarded speed, in m/s |
    | max_roll_rad, max_pitch_rad, min_height_m | 0.25, 1.0, 0.15 | termination limits |
    | terminate_on_contact | by terrain | contact of "any" part except feet, of the "body" (not shins), or "none" |
    | render_mode | None | "rgb_array" makes `render` return images of the scene |
    """

    metadata = FootstepsBase.metadata | {"image_title": "ground height", "image_parts": ("around the next landing",)}

    def __init__(
        self,
        terrain: TerrainName,
        footholds: str = AXES,
        v_cap: float = 0.375,
        max_roll_rad: float = 0.25,
        max_pitch_rad: float = 1.0,
        min_height_m: float = 0.15,
        terminate_on_contact: Contacts | None = None,
        render_mode: str | None = None,
    ) -> None:
        action_indices(footholds)
        super().__init__(terrain, v_cap, max_roll_rad, max_pitch_rad, min_height_m, terminate_on_contact, render_mode)
        self._placed = PlacedFeet(footholds, self.ranges, rear_first=terrain == "stairs")
        self._foot: NextFoot | None = None
        self._set_spaces((*WINDOW, 2), SENSORS, len(footholds))

    def next_foot(self) -> NextFoot:
        """The foot whose landing the next action sets."""
        if self._foot is None:
            raise RuntimeError("call reset before next_foot")
        return self._foot

    def segmentation(self) -> Int[np.ndarray, "16 16"]:
        """The footing at each pixel, as an index of `segment_names`."""
        return self._cameras.window_labels(self.next_foot(), self.terrain, self.motion)

    def to_action(self, command: Command) -> Float32[np.ndarray, " k"]:
        """The action that is closest to a command."""
        foot = self.next_foot()
        return self._placed.action(foot, command.offsets_m[foot.leg])

    def _to_command(self, action: Float[np.ndarray, " k"]) -> Command:
        return self._placed.command(self.next_foot(), action, self.walker, self.motion, self.default_command())

    def _reset_commands(self) -> None:
        self._placed.reset()

    def _observe(self) -> Observation:
        self._foot = foot = self._placed.next_foot(self.walker, self.motion, self.default_command())
        if self._renders:
            self._image = self._cameras.window(foot, self.motion)
        return {"image": self._image, "sensors": foot_sensors(foot, self.walker, self.motion)}
