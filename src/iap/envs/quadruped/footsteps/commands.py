"""Actions and sensors of the task with all feet: 22 numbers of command, 34 sensors and the last action.

| action | meaning |
|---|---|
| 0–11 | offset of the next foothold of FR, FL, RR, RL from Raibert's rule: forward, left, up |
| 12–15 | clearance of the next swing of each foot |
| 16–18 | velocity of the body: forward, left, yaw rate |
| 19–21 | height, roll and pitch of the body |

| sensor | meaning |
|---|---|
| 0–3 | phases of the legs |
| 4–7 | states of the feet, see `FootState` |
| 8–11 | 1 for feet whose next foothold this action sets |
| 12–15 | velocity (3) and height of the body |
| 16–17 | the velocity that fits the current footholds, by the inverse of Raibert's rule |
| 18–29 | landings relative to the base, in the heading frame |
| 30–33 | roll, pitch, and their rates |
| 34– | the last action |
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from jaxtyping import Float, Float32

from iap.locomotion.footholds import inverse_raibert
from iap.locomotion.gait import FootState
from iap.locomotion.walker import Command, Motion, Walker
from iap.locomotion.walker_kernels import ground_below, heading_of

BODY_SENSORS, ACTIONS = 34, 22  # sensors besides the last action, and numbers of a full action
SENSORS = BODY_SENSORS + ACTIONS
AXES = "xyz"  # of a foothold: forward, left, up
OPPOSITE_LEG = (1, 0, 3, 2)

SPEED_M_S, SPEED_ON_STAIRS_M_S = 0.38, 0.25  # of the default command
SLOWEST_M_S, ACCELERATION = 0.2, 0.37  # m/s, m/s²
HEIGHT_M, CLEARANCE_M = 0.45, 0.07
LEAN = 0.85  # pitch as a fraction of the slope; with more, the belly camera does not show the rear landings

# Standard deviations of the sensor noise.
TILT_NOISE_RAD, RATE_NOISE_RAD_S, TOE_NOISE_M = 0.025, 0.1, (0.0025, 0.0025, 0.005)


@dataclass(frozen=True)
class ActionRanges:
    """The values of an action's entries at −1 and at 1.

    Attributes:
        forward_m: offset of a foothold from Raibert's rule; shortening a step is safer than lengthening it.
        left_m: offset of a foothold.
        up_m: offset of a foothold.
        clearance_m: of a swing.
        speed_m_s: of the body, forward.
        sideways_m_s: of the body, to the left.
        yaw_rate_rad_s: of the body, to the left.
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
    yaw_rate_rad_s: tuple[float, float] = (-0.2, 0.2)
    height_m: tuple[float, float] = (0.42, 0.48)
    roll_rad: tuple[float, float] = (-0.05, 0.05)
    pitch_rad: tuple[float, float] = (-0.2, 0.2)

    @cached_property
    def limits(self) -> tuple[Float[np.ndarray, " 22"], Float[np.ndarray, " 22"]]:
        """Lowest and highest values of all 22 entries."""
        foot = (self.forward_m, self.left_m, self.up_m)
        body = (self.speed_m_s, self.sideways_m_s, self.yaw_rate_rad_s, self.height_m, self.roll_rad, self.pitch_rad)
        low, high = np.array((*foot * 4, *(self.clearance_m,) * 4, *body)).T
        return low, high

    def to_command(self, action: Float[np.ndarray, " 22"]) -> Command:
        """The command of an action with entries in [−1, 1]."""
        low, high = self.limits
        numbers = (high + low + action * (high - low)) / 2
        speed, sideways, yaw_rate, height, roll, pitch = numbers[16:].tolist()
        return Command(numbers[:12].reshape(4, 3), numbers[12:16], (speed, sideways), yaw_rate, height, roll, pitch)

    def to_action(self, command: Command) -> Float32[np.ndarray, " 22"]:
        """The action of a command, clipped to the ranges."""
        low, high = self.limits
        body = (command.yaw_rate_rad_s, command.height_m, command.roll_rad, command.pitch_rad)
        numbers = np.concatenate((command.offsets_m.ravel(), command.clearances_m, command.velocity_m_s, body))
        return np.clip((2 * numbers - high - low) / (high - low), -1, 1).astype(np.float32)

    def completed(
        self, action: Float[np.ndarray, " k"], indices: Sequence[int], default: Command
    ) -> Float[np.ndarray, " 22"]:
        """A full action from the entries at `indices`, with all others from the default command."""
        full = self.to_action(default).astype(np.float64)
        full[indices] = action
        return full


LEVEL_RANGES = ActionRanges()
STAIRS_RANGES = ActionRanges(up_m=(-0.1, 0.17), pitch_rad=(-0.6, 0.2))  # a body on stairs pitches with them


def action_indices(footholds: str | None) -> list[int]:
    """The entries of the 22 that a policy chooses: all, or these axes of the four footholds."""
    if footholds is None:
        return list(range(ACTIONS))
    if not isinstance(footholds, str) or not footholds or footholds not in ("x", "y", "z", "xy", "xz", "yz", AXES):
        raise ValueError(
            f'footholds must be axes of "{AXES}" in this order, or None for all actions, not {footholds!r}'
        )
    return [3 * leg + AXES.index(axis) for leg in range(4) for axis in footholds]


def default_command(walker: Walker, motion: Motion, on_stairs: bool) -> Command:
    """Walk on: footholds by Raibert's rule; on stairs the body pitches with the slope of its feet."""
    most = SPEED_ON_STAIRS_M_S if on_stairs else SPEED_M_S
    speed = min(most, SLOWEST_M_S + ACCELERATION * walker.time_s)
    slope = ground_below(walker.footholds_m, motion.position_m, heading_of(motion.rotation))[0] if on_stairs else 0.0
    return Command(
        clearances_m=np.full(4, CLEARANCE_M),
        velocity_m_s=(speed, 0.0),
        height_m=HEIGHT_M,
        pitch_rad=-LEAN * math.atan(slope),
    )


def symmetry_of(indices: Sequence[int], *, last_action: bool = True) -> dict[str, list]:
    """How the mirror image changes sensors, and the entries of an action at `indices`: see `protocols.Symmetry`."""
    legs = [1 + leg for leg in OPPOSITE_LEG]
    feet = [sign * (3 * leg + axis) for leg in OPPOSITE_LEG for sign, axis in ((1, 1), (-1, 2), (1, 3))]
    full = [*feet, *shifted(12, legs), *shifted(16, [1, -2, -3, 4, -5, 6])]
    actions = [int(math.copysign(1 + indices.index(abs(full[n]) - 1), full[n])) for n in indices]
    phases_states_needs = [*legs, *shifted(4, legs), *shifted(8, legs)]
    velocity_height_fitting = shifted(12, [1, -2, 3, 4, 5, -6])
    tilt = shifted(30, [-1, 2, -3, 4])
    sensors = [*phases_states_needs, *velocity_height_fitting, *shifted(18, feet), *tilt]
    if last_action:
        sensors += shifted(BODY_SENSORS, actions)
    return {"sensors": sensors, "actions": actions}


def shifted(count: int, signed: Sequence[int]) -> list[int]:
    """Signed numbers, counted from 1, behind `count` others."""
    return [number + count if number > 0 else number - count for number in signed]


def body_sensors(
    walker: Walker,
    motion: Motion,
    needs_target: Float[np.ndarray, " 4"],
    last_action: Float[np.ndarray, " k"],
    noise: Float[np.ndarray, " 16"] | None = None,
) -> Float32[np.ndarray, " 34+k"]:
    """All sensors, in the heading frame.

    Args:
        walker: the controller.
        motion: of the body.
        needs_target: 1 for feet that lift off before the next action.
        last_action: the previous action.
        noise: standard normal numbers that disturb landings and tilt; no noise if not given.
    """
    heading = heading_of(motion.rotation)
    velocity = motion.velocity_m_s @ heading
    landings = (walker.landings_m - motion.position_m) @ heading
    tilt = np.array((*motion.roll_pitch, *(motion.angular_velocity_rad_s @ heading)[:2]))
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
