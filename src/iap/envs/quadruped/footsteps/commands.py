"""What a policy that places feet says and observes: 22 numbers of command, 56 numbers of what the body feels.

It may say less, and leave the body to walk on as usual.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Float32

from iap.locomotion.body_kernels import ground_below, heading_of
from iap.locomotion.footholds import inverse_raibert
from iap.locomotion.gait import FootState
from iap.locomotion.walker import Command, Motion, Walker

FEELINGS, ACTIONS = 34, 22  # numbers of what is felt beside the last action, and of a whole action
SENSORS = FEELINGS + ACTIONS
AXES = "xyz"  # of a foothold: forward, left, up
OTHER_SIDE = (1, 0, 3, 2)  # the leg across from each

SPEED_M_S, SPEED_ON_STAIRS_M_S = 0.38, 0.25  # of a body that is left to walk on as usual
SLOWEST_M_S, ACCELERATION = 0.2, 0.37  # m/s, m/s²
HEIGHT_M, CLEARANCE_M = 0.45, 0.07
LEAN = 0.85  # share of the slope: the belly camera of a body that leans more does not see where rear feet land

# Standard deviations of what is measured.
TILT_NOISE_RAD, RATE_NOISE_RAD_S, TOE_NOISE_M = 0.025, 0.1, (0.0025, 0.0025, 0.005)


@dataclass(frozen=True)
class Reach:
    """How far the parts of an action go, lowest and highest: −1 is the first, and 1 the second.

    Attributes:
        forward_m: of a foothold, from where Raibert's rule puts it; shortening a step is safer than lengthening it.
        left_m: of a foothold.
        up_m: of a foothold.
        clearance_m: of a swing.
        speed_m_s: of the body, forward.
        sideways_m_s: of the body, to the left.
        turning_rad_s: of the body, to the left.
        height_m: of the body.
        roll_rad: of the body.
        pitch_rad: of the body, positive nose down.
    """

    forward_m: tuple[float, float] = (-0.15, 0.13)
    left_m: tuple[float, float] = (-0.08, 0.08)
    up_m: tuple[float, float] = (-0.03, 0.03)
    clearance_m: tuple[float, float] = (0.05, 0.1)
    speed_m_s: tuple[float, float] = (0.2, 0.41)
    sideways_m_s: tuple[float, float] = (-0.15, 0.15)
    turning_rad_s: tuple[float, float] = (-0.2, 0.2)
    height_m: tuple[float, float] = (0.42, 0.48)
    roll_rad: tuple[float, float] = (-0.05, 0.05)
    pitch_rad: tuple[float, float] = (-0.2, 0.2)

    @cached_property
    def limits(self) -> tuple[Float[np.ndarray, " 22"], Float[np.ndarray, " 22"]]:
        """Lowest and highest: four footholds, four clearances, and how the body moves and leans."""
        foot = (self.forward_m, self.left_m, self.up_m)
        body = (self.speed_m_s, self.sideways_m_s, self.turning_rad_s, self.height_m, self.roll_rad, self.pitch_rad)
        low, high = np.array((*foot * 4, *(self.clearance_m,) * 4, *body)).T
        return low, high

    def to_command(self, action: Float[np.ndarray, " 22"]) -> Command:
        """What an action of numbers in [−1, 1] says, from lowest to highest."""
        low, high = self.limits
        numbers = (high + low + action * (high - low)) / 2
        speed, sideways, turning, height, roll, pitch = numbers[16:].tolist()
        return Command(numbers[:12].reshape(4, 3), numbers[12:16], (speed, sideways), turning, height, roll, pitch)

    def to_action(self, command: Command) -> Float32[np.ndarray, " 22"]:
        """The action that says this, or what is nearest to it."""
        low, high = self.limits
        body = (command.turning_rad_s, command.height_m, command.roll_rad, command.pitch_rad)
        numbers = np.concatenate((command.offsets_m.ravel(), command.clearances_m, command.velocity_m_s, body))
        return np.clip((2 * numbers - high - low) / (high - low), -1, 1).astype(np.float32)

    def completed(
        self, action: Float[np.ndarray, " k"], numbers: Sequence[int], usual: Command
    ) -> Float[np.ndarray, " 22"]:
        """An action that says these of the 22 numbers, with the others as usual."""
        whole = self.to_action(usual).astype(np.float64)
        whole[numbers] = action
        return whole


def numbers_of(footholds: str | None) -> list[int]:
    """Which of the 22 numbers a policy says: all, or those axes of the four footholds."""
    if footholds is None:
        return list(range(ACTIONS))
    if not isinstance(footholds, str) or not footholds or footholds not in ("x", "y", "z", "xy", "xz", "yz", AXES):
        raise ValueError(
            f'footholds must be axes of "{AXES}" in their order, or None for all actions, not {footholds!r}'
        )
    return [3 * leg + AXES.index(axis) for leg in range(4) for axis in footholds]


def usual_command(walker: Walker, motion: Motion, on_stairs: bool) -> Command:
    """Walk on: feet land where Raibert's rule puts them, and on stairs the body leans as its feet stand."""
    most = SPEED_ON_STAIRS_M_S if on_stairs else SPEED_M_S
    speed = min(most, SLOWEST_M_S + ACCELERATION * walker.time_s)
    slope = ground_below(walker.footholds_m, motion.position_m, heading_of(motion.rotation))[0] if on_stairs else 0.0
    return Command(
        clearances_m=np.full(4, CLEARANCE_M),
        velocity_m_s=(speed, 0.0),
        height_m=HEIGHT_M,
        pitch_rad=-LEAN * math.atan(slope),
    )


def mirror_of(numbers: Sequence[int]) -> dict[str, list]:
    """How a mirror changes sensors, and actions of these numbers: sides are exchanged, sideways becomes its negative.

    Each entry tells which number it is out of the mirror, counted from 1, and negative if its sign changes.
    """
    legs = [1 + leg for leg in OTHER_SIDE]
    feet = [sign * (3 * leg + axis) for leg in OTHER_SIDE for sign, axis in ((1, 1), (-1, 2), (1, 3))]
    whole = [*feet, *after(12, legs), *after(16, [1, -2, -3, 4, -5, 6])]
    actions = [int(math.copysign(1 + numbers.index(abs(whole[n]) - 1), whole[n])) for n in numbers]
    phases_states_needs = [*legs, *after(4, legs), *after(8, legs)]
    velocity_height_fitting = after(12, [1, -2, 3, 4, 5, -6])
    tilt = after(30, [-1, 2, -3, 4])
    sensors = [*phases_states_needs, *velocity_height_fitting, *after(18, feet), *tilt, *after(FEELINGS, actions)]
    return {"sensors": sensors, "actions": actions}


def after(count: int, signed: Sequence[int]) -> list[int]:
    """Signed numbers, counted from 1, as they are when `count` others come before them."""
    return [number + count if number > 0 else number - count for number in signed]


ON_THE_LEVEL = Reach()
ON_STAIRS = Reach(up_m=(-0.1, 0.17), pitch_rad=(-0.6, 0.2))  # a body on stairs leans as they do


def sense(
    walker: Walker,
    motion: Motion,
    needs_target: Float[np.ndarray, " 4"],
    last_action: Float[np.ndarray, " k"],
    noise: Float[np.ndarray, " 16"] | None = None,
) -> Float32[np.ndarray, " 34+k"]:
    """What the body feels, in the frame that has turned with it.

    In order: phases of the gait (4), states of the feet (4), which feet need a target (4), velocity (3), height (1),
    the velocity that fits the chosen footholds (2), landings from the base (12), roll, pitch and their rates (4), and
    the last action (22, or as many as are said).

    Args:
        walker: that walks.
        motion: of its body.
        needs_target: 1 for feet that lift off before the next action.
        last_action: that was followed.
        noise: standard normal numbers that disturb landings and tilt; none if not given.
    """
    heading = heading_of(motion.rotation)
    velocity = motion.velocity_m_s @ heading
    landings = (walker.landings_m - motion.position_m) @ heading
    tilt = np.array((*motion.roll_pitch, *(motion.turning_rad_s @ heading)[:2]))
    if noise is not None:
        landings = landings + noise[:12].reshape(4, 3) * TOE_NOISE_M
        tilt += noise[12:] * (TILT_NOISE_RAD, TILT_NOISE_RAD, RATE_NOISE_RAD_S, RATE_NOISE_RAD_S)
    chosen = landings[:, :2] - walker.robot.stance_m
    fitting = inverse_raibert(chosen, walker.states == int(FootState.SWING), velocity[:2], walker.gait.swing_s)
    _, ground = ground_below(walker.footholds_m, motion.position_m, heading)
    height = motion.position_m[2] - ground + walker.robot.toe_radius_m
    phases = walker.gait.phase(walker.time_s)
    parts = (phases, walker.states, needs_target, velocity, [height], fitting, landings.ravel(), tilt, last_action)
    return np.concatenate(parts).astype(np.float32)
