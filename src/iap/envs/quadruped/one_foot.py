"""Feet that are placed one at a time, by what is seen around the place where each would land.

All feet are alike to the policy: it sees a window of the image of the camera that is over the landing, as if the foot
were a right one, and its action moves that landing. Front feet choose while they stand, rear feet as they lift off.
"""

from dataclasses import dataclass, replace

import numpy as np
from jaxtyping import Float, Float32, Int

from iap.envs.quadruped.footsteps import AXES, Reach
from iap.locomotion.walker import Command, Motion, Walker
from iap.locomotion.walker_loops import ground_below, heading_of

WINDOW = (16, 16)
SENSED = 9
NEAR_M, NEAR_LANDING_M = 0.5, 0.3  # what a window tells apart
MISS_PIXELS = 2  # about four centimetres on the ground
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

    def __init__(self, axes: str, reach: Reach) -> None:
        """Actions that choose these axes of a foothold."""
        self._axes = [AXES.index(axis) for axis in axes]
        low, high = reach.limits
        self._low, self._high = low[self._axes], high[self._axes]
        self.restart()

    def restart(self) -> None:
        """Forget what was said."""
        self._chosen_m: dict[int, Float[np.ndarray, " 3"]] = {}

    def turn(self, walker: Walker, motion: Motion, usual: Command) -> Turn:
        """The rear foot of those that lift off next if they do at once, else the front foot."""
        until_s = (walker.gait.duty - walker.gait.phase(walker.time_s)).round(9) % 1.0 * walker.gait.period_s
        front, rear = np.flatnonzero(until_s == until_s.min())
        leg = int(rear if until_s.min() == 0 else front)
        landing = walker.next_landings(motion, usual.velocity_m_s, usual.height_m)[leg]
        return Turn(leg, landing + until_s.min() * np.array((*motion.velocity_m_s[:2], 0.0)))

    def choose(self, turn: Turn, motion: Motion, action: Float[np.ndarray, " k"]) -> None:
        """Place a foot."""
        offset = np.zeros(3)
        offset[self._axes] = (self._high + self._low + action * (self._high - self._low)) / 2
        offset[1] *= turn.side
        self._chosen_m[turn.leg] = turn.landing_m + heading_of(motion.rotation) @ offset

    def action(self, turn: Turn, offset_m: Float[np.ndarray, " 3"]) -> Float32[np.ndarray, " k"]:
        """The action that moves the landing like this, or what is nearest to it."""
        wanted = (offset_m * (1, turn.side, 1))[self._axes]
        return np.clip((2 * wanted - self._high - self._low) / (self._high - self._low), -1, 1).astype(np.float32)

    def command(self, walker: Walker, motion: Motion, usual: Command) -> Command:
        """As usual, but with feet where they were placed."""
        landings = walker.next_landings(motion, usual.velocity_m_s, usual.height_m)
        offsets = np.zeros((4, 3))
        for leg, chosen in self._chosen_m.items():
            offsets[leg] = (chosen - landings[leg]) @ heading_of(motion.rotation)
        return replace(usual, offsets_m=offsets)


def window(turn: Turn, places: Float[np.ndarray, "H W 2"]) -> tuple[Int[np.ndarray, "16 1"], Int[np.ndarray, " 16"]]:
    """The rows and columns of a camera's image around the place where a foot would land; edges are repeated."""
    away = np.square(places - turn.landing_m[:2]).sum(axis=-1)
    row, column = np.unravel_index(away.argmin(), away.shape)
    rows = np.clip(row + np.arange(WINDOW[0]) - WINDOW[0] // 2, 0, away.shape[0] - 1)
    columns = np.clip(column + turn.side * (np.arange(WINDOW[1]) - WINDOW[1] // 2), 0, away.shape[1] - 1)
    return rows[:, None], columns


def marked(
    depths: Float32[np.ndarray, "H W"], places: Float[np.ndarray, "H W 2"], landing_m: Float[np.ndarray, " 3"]
) -> Float32[np.ndarray, "H W 2"]:
    """How much nearer than half a metre places are, and how much nearer than 0.3 m to where a foot would land.

    Both are 0 for what is of no use: gaps, and what is out of reach.
    """
    away = np.sqrt(np.square(places - landing_m[:2]).sum(axis=-1))
    return np.stack([np.maximum(NEAR_M - depths, 0), np.maximum(NEAR_LANDING_M - away, 0)], axis=-1).astype(np.float32)


def deepest_around(depths: Float32[np.ndarray, "H W"]) -> Float32[np.ndarray, "H W"]:
    """The depth at which a foot would come to rest that may miss its place by `MISS_PIXELS` to each side."""
    for axis in (0, 1):
        width = [(MISS_PIXELS, MISS_PIXELS) if i == axis else (0, 0) for i in (0, 1)]
        around = np.pad(depths, width, mode="edge")
        depths = np.lib.stride_tricks.sliding_window_view(around, 2 * MISS_PIXELS + 1, axis=axis).max(axis=-1)
    return depths


def sense_turn(turn: Turn, walker: Walker, motion: Motion) -> Float32[np.ndarray, " 9"]:
    """What the body feels as if the foot were a right one: is it a rear one, velocity, height, tilt (2), rates (2)."""
    heading = heading_of(motion.rotation)
    _, ground = ground_below(walker.footholds_m, motion.position_m, heading)
    ahead, left, up = motion.velocity_m_s @ heading
    (roll, pitch), (rolling, pitching) = motion.roll_pitch, (motion.turning_rad_s @ heading)[:2]
    height, side = motion.position_m[2] - ground, turn.side
    felt = (turn.camera, ahead, side * left, up, height, side * roll, pitch, side * rolling, pitching)
    return np.array(felt, np.float32)
