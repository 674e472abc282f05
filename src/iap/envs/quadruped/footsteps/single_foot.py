"""Feet that are placed one at a time, by what is seen around the place where each would land.

All feet are alike to the policy: it sees a window of the image of the camera that is over the landing, as if the foot
were a right one, and its action moves that landing. Where ground is level, front feet choose while they stand, and rear
feet as they lift off. A body that leans with stairs turns the belly camera forward: rear feet then choose first, as
long as that camera still sees where they would land.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Float32

from iap.envs.quadruped.footsteps import single_foot_kernels
from iap.envs.quadruped.footsteps.commands import AXES, Reach
from iap.locomotion.walker import Command, Motion, Walker

REAR_LEGS = (2, 3)
LEFT_LEGS = (1, 3)


@dataclass(frozen=True, eq=False)
class Turn:
    """A foot that is to be placed.

    Attributes:
        leg: which one.
        landing_m: where it would land as usual.
    """

    leg: int
    landing_m: Float[np.ndarray, " 3"]

    @property
    def side(self) -> int:
        """−1 for a left foot, which is seen in a mirror."""
        return -1 if self.leg in LEFT_LEGS else 1

    @property
    def camera(self) -> int:
        """Which camera is over the landing."""
        return int(self.leg in REAR_LEGS)


class OneFoot:
    """Whose turn it is, what it observes, and what has been said for all feet."""

    def __init__(self, axes: str, reach: Reach, rear_first: bool) -> None:
        """Actions that choose these axes of a foothold, rear feet before front feet or after them."""
        self._rear_first = rear_first
        self._axes = [AXES.index(axis) for axis in axes]
        low, high = reach.limits
        self._low, self._high = low[self._axes], high[self._axes]
        self.restart()

    def restart(self) -> None:
        """Forget what was said."""
        self._chosen_m, self._is_chosen = np.zeros((4, 3)), np.zeros(4, bool)

    def turn(self, walker: Walker, motion: Motion, usual: Command) -> Turn:
        """One of the two feet that lift off next: rear feet choose at last, or as long as that is not soon."""
        gait = (walker.gait.clock, walker.time_s, walker.gait.lead_s)
        rule = (walker.robot.stance_m, motion[:3], usual.velocity_m_s, usual.height_m - walker.robot.toe_radius_m)
        return Turn(*single_foot_kernels.next_turn(gait, self._rear_first, *rule))

    def command(
        self, turn: Turn, action: Float[np.ndarray, " k"], walker: Walker, motion: Motion, usual: Command
    ) -> Command:
        """Place a foot; as usual otherwise, with the other feet where they were placed."""
        offset = np.zeros(3)
        offset[self._axes] = (self._high + self._low + action * (self._high - self._low)) / 2
        offset[1] *= turn.side
        placed = (self._chosen_m, self._is_chosen)
        rule = (usual.velocity_m_s, walker.gait.lead_s, usual.height_m - walker.robot.toe_radius_m)
        offsets = single_foot_kernels.place_foot(
            (turn.leg, turn.landing_m), offset, *placed, motion[:3], walker.robot.stance_m, *rule
        )
        return replace(usual, offsets_m=offsets)

    def action(self, turn: Turn, offset_m: Float[np.ndarray, " 3"]) -> Float32[np.ndarray, " k"]:
        """The action that moves the landing like this, or what is nearest to it."""
        wanted = (offset_m * (1, turn.side, 1))[self._axes]
        return np.clip((2 * wanted - self._high - self._low) / (self._high - self._low), -1, 1).astype(np.float32)


def sense_turn(turn: Turn, walker: Walker, motion: Motion) -> Float32[np.ndarray, " 9"]:
    """What the body feels as if the foot were a right one: is it a rear one, velocity, height, tilt (2), rates (2)."""
    return single_foot_kernels.sense_turn(turn.camera, turn.side, motion[:4], walker.footholds_m)
