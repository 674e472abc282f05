"""One foothold at a time: which foot is next, what it observes, and the landings that were chosen so far.

The policy treats all feet alike: it observes a window of the image of the camera above the landing, mirrored for left
feet, and its action moves that landing. On level ground, front feet choose while they are in stance, and rear feet as
they lift off. On stairs the body pitches, which turns the belly camera forward: rear feet then choose first, while that
camera still shows their landing.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Float32

from iap._compile import compiled
from iap.envs.quadruped.footsteps.commands import AXES, ActionRanges
from iap.locomotion.gait import phases_at, rounded
from iap.locomotion.walker import Command, Motion, Walker
from iap.locomotion.walker_kernels import ground_below, heading_of, raibert_landings, roll_pitch_of

REAR_LEGS = (2, 3)
LEFT_LEGS = (1, 3)
SENSORS = 9
SOON_S = 0.125  # rear feet choose on stairs until this time before lift-off


@dataclass(frozen=True, eq=False)
class NextFoot:
    """The foot whose landing is chosen next.

    Attributes:
        leg: its number.
        landing_m: its default landing.
    """

    leg: int
    landing_m: Float[np.ndarray, " 3"]

    @property
    def side(self) -> int:
        """−1 for a left foot, whose observation is mirrored."""
        return -1 if self.leg in LEFT_LEGS else 1

    @property
    def camera(self) -> int:
        """The number of the camera above the landing."""
        return int(self.leg in REAR_LEGS)


class PlacedFeet:
    """The landings that were chosen so far, and the next foot to choose."""

    def __init__(self, axes: str, ranges: ActionRanges, rear_first: bool) -> None:
        """Actions that choose these axes of a foothold; rear feet choose before or after front feet."""
        self._rear_first = rear_first
        self._axes = [AXES.index(axis) for axis in axes]
        low, high = ranges.limits
        self._low, self._high = low[self._axes], high[self._axes]
        self.reset()

    def reset(self) -> None:
        """Forget all landings."""
        self._chosen_m, self._is_chosen = np.zeros((4, 3)), np.zeros(4, bool)

    def next_foot(self, walker: Walker, motion: Motion, default: Command) -> NextFoot:
        """One of the two feet that lift off next."""
        gait = (walker.gait.clock, walker.time_s, walker.gait.lead_s)
        rule = (walker.robot.stance_m, motion[:3], default.velocity_m_s, default.height_m - walker.robot.toe_radius_m)
        return NextFoot(*_next_foot(gait, self._rear_first, *rule))

    def command(
        self, foot: NextFoot, action: Float[np.ndarray, " k"], walker: Walker, motion: Motion, default: Command
    ) -> Command:
        """The default command with the landing of this foot, and of all feet that were placed before."""
        offset = np.zeros(3)
        offset[self._axes] = (self._high + self._low + action * (self._high - self._low)) / 2
        offset[1] *= foot.side
        placed = (self._chosen_m, self._is_chosen)
        rule = (default.velocity_m_s, walker.gait.lead_s, default.height_m - walker.robot.toe_radius_m)
        offsets = _place_foot((foot.leg, foot.landing_m), offset, *placed, motion[:3], walker.robot.stance_m, *rule)
        return replace(default, offsets_m=offsets)

    def action(self, foot: NextFoot, offset_m: Float[np.ndarray, " 3"]) -> Float32[np.ndarray, " k"]:
        """The action that moves the landing by this offset, clipped to the range."""
        wanted = (offset_m * (1, foot.side, 1))[self._axes]
        return np.clip((2 * wanted - self._high - self._low) / (self._high - self._low), -1, 1).astype(np.float32)


def foot_sensors(foot: NextFoot, walker: Walker, motion: Motion) -> Float32[np.ndarray, " 9"]:
    """Is it a rear foot, velocity (3), height, roll and pitch, and their rates; mirrored for left feet."""
    return _foot_sensors(foot.camera, foot.side, motion[:4], walker.footholds_m)


@compiled
def _next_foot(gait, rear_first, stance, motion, wanted, drop_m):
    """The leg that chooses next, one of the two that lift off next, and its default landing."""
    clock, time_s, lead_s = gait
    period_s, duty, _ = clock
    phases = phases_at(clock, time_s)
    until_s = np.empty(4)
    for leg in range(4):
        until_s[leg] = rounded(duty - phases[leg]) % 1.0 * period_s
    soon_s = until_s.min()
    front, rear = np.flatnonzero(until_s == soon_s)[:2]
    chooses_rear = soon_s > SOON_S if rear_first else soon_s == 0
    leg = rear if chooses_rear else front
    landing = raibert_landings(stance, motion, wanted, lead_s, drop_m)[leg]
    landing[:2] += soon_s * motion[2][:2]
    return leg, landing


@compiled
def _place_foot(foot, offset, chosen, is_chosen, motion, stance, wanted, lead_s, drop_m):
    """Store the landing of a foot, and return the offsets of all feet that were placed."""
    leg, landing = foot
    heading = heading_of(motion[1])
    chosen[leg] = landing + heading @ offset
    is_chosen[leg] = True
    landings = raibert_landings(stance, motion, wanted, lead_s, drop_m)
    offsets = np.zeros((4, 3))
    for other in range(4):
        if is_chosen[other]:
            offsets[other] = (chosen[other] - landings[other]) @ heading
    return offsets


@compiled
def _foot_sensors(is_rear, side, motion, footholds):
    position, rotation, velocity, angular_velocity = motion
    heading = heading_of(rotation)
    _, ground = ground_below(footholds, position, heading)
    speed, rates = velocity @ heading, angular_velocity @ heading
    roll, pitch = roll_pitch_of(rotation)
    sensors = np.empty(SENSORS, np.float32)
    sensors[0] = is_rear
    sensors[1], sensors[2], sensors[3] = speed[0], side * speed[1], speed[2]
    sensors[4] = position[2] - ground
    sensors[5], sensors[6], sensors[7], sensors[8] = side * roll, pitch, side * rates[0], rates[1]
    return sensors
