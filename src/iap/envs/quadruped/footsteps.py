"""What a policy that places feet says and observes: 22 numbers of command, 56 numbers of what the body feels."""

from dataclasses import dataclass

import numpy as np
from gymnasium import spaces
from jaxtyping import Float, Float32

from iap.locomotion.footholds import inverse_raibert
from iap.locomotion.gait import FootState
from iap.locomotion.walker import Command, Motion, Walker
from iap.locomotion.walker_loops import ground_below, heading_of

ACTIONS, SENSORS = 22, 56

# Standard deviations of what is measured.
TILT_NOISE_RAD, RATE_NOISE_RAD_S, TOE_NOISE_M = 0.025, 0.1, (0.0025, 0.0025, 0.005)


@dataclass(frozen=True)
class Reach:
    """How far the parts of an action go, lowest and highest.

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

    def space(self) -> spaces.Box:
        """Four footholds (forward, left, up), four clearances, and how the body moves and leans."""
        foot = (self.forward_m, self.left_m, self.up_m)
        body = (self.speed_m_s, self.sideways_m_s, self.turning_rad_s, self.height_m, self.roll_rad, self.pitch_rad)
        low, high = np.array((*foot * 4, *(self.clearance_m,) * 4, *body), np.float32).T
        return spaces.Box(low, high, dtype=np.float32)


ON_THE_LEVEL = Reach()
ON_STAIRS = Reach(up_m=(-0.1, 0.17), pitch_rad=(-0.6, 0.2))  # a body on stairs leans as they do


def to_command(action: Float[np.ndarray, " 22"]) -> Command:
    """An action as the walker takes it."""
    speed, sideways, turning, height, roll, pitch = action[16:].tolist()
    return Command(action[:12].reshape(4, 3), action[12:16], (speed, sideways), turning, height, roll, pitch)


def to_action(command: Command) -> Float32[np.ndarray, " 22"]:
    """The same, back."""
    body = (command.turning_rad_s, command.height_m, command.roll_rad, command.pitch_rad)
    parts = (command.offsets_m.ravel(), command.clearances_m, command.velocity_m_s, body)
    return np.concatenate(parts).astype(np.float32)


def sense(
    walker: Walker,
    motion: Motion,
    needs_target: Float[np.ndarray, " 4"],
    last_action: Float[np.ndarray, " 22"],
    noise: Float[np.ndarray, " 16"] | None = None,
) -> Float32[np.ndarray, " 56"]:
    """What the body feels, in the frame that has turned with it.

    In order: phases of the gait (4), states of the feet (4), which feet need a target (4), velocity (3), height (1),
    the velocity that fits the chosen footholds (2), landings from the base (12), roll, pitch and their rates (4), and
    the last action in shares of its reach (22).

    Args:
        walker: that walks.
        motion: of its body.
        needs_target: 1 for feet that lift off before the next action.
        last_action: in [−1, 1].
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
