"""The trajectory generator that a policy modulates (PMTG): a phase goes round, and twelve motor angles follow it.

A leg with phase φ is in stance for φ ≤ π and in swing afterwards:

    swing  = amplitude · cos φ                     hip  = pose − swing − extend/2
    extend = height + sin φ · (−press, or lift)    knee = pose + extend

where `press`, the leg's stiffening against the ground, goes with the amplitude. Legs are in the order FR, FL, RR, RL,
motors of a leg in the order abduction, hip, knee; a positive hip angle puts the foot back, a positive abduction
puts it to the left.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from iap._compile import compiled

LEGS = ("FR", "FL", "RR", "RL")
IS_FRONT = (True, True, False, False)
IS_LEFT = (False, True, False, True)

PRESS = 0.04  # rad of extension in stance, for each rad of amplitude
STEERING_STRIDE = 0.2  # by how much the strides of the two sides differ from their mean, at full steering
STEERING_ABDUCTION_RAD = 0.12  # by how much front feet go to the side and rear feet to the other


@dataclass(frozen=True)
class Gait:
    """How legs move, unless a policy says otherwise.

    Attributes:
        phases: of FR, FL, RR, RL, in turns.
        frequency_hz: strides a second.
        amplitude_rad: of the hip, to each side.
        lift_rad: by how much the knee bends in swing.
        height_rad: by how much the knee is straighter than in the pose.
        swing_speed_ratio: how many times as fast the phase goes in swing as in stance.
    """

    phases: tuple[float, float, float, float]
    frequency_hz: float
    amplitude_rad: float
    lift_rad: float
    height_rad: float = 0.0
    swing_speed_ratio: float = 1.0

    def __post_init__(self) -> None:
        if not 0.2 <= self.swing_speed_ratio <= 5:  # noqa: PLR2004
            raise ValueError(f"swing_speed_ratio must be between 0.2 and 5, not {self.swing_speed_ratio}")
        if len(self.phases) != len(LEGS):
            raise ValueError(f"phases must be those of {', '.join(LEGS)}, not {self.phases}")


TROT = Gait((0.5, 0.0, 0.0, 0.5), frequency_hz=3.0, amplitude_rad=0.35, lift_rad=0.4)
WALK = Gait((0.5, 0.0, 0.75, 0.25), frequency_hz=2.0, amplitude_rad=0.25, lift_rad=0.8, swing_speed_ratio=3.0)


class TrajectoryGenerator:
    """Motor angles over time, of which the caller may change the stride at every step."""

    def __init__(self, gait: Gait, pose_rad: Float[np.ndarray, " 12"], step_s: float) -> None:
        """The gait around a pose, in steps of `step_s` seconds."""
        self.gait = gait
        self._step_s = step_s
        self._pose = np.asarray(pose_rad, np.float64)
        self._leg_turns = np.array(gait.phases)
        self._stance_turns = gait.swing_speed_ratio / (1 + gait.swing_speed_ratio)
        self.turn = 0.0

    def restart(self, turn: float = 0.0) -> None:
        """Go back to a phase, in turns: a quarter puts every foot under its hip, or above that."""
        self.turn = turn % 1.0

    def advance(
        self,
        frequency_hz: float | None = None,
        amplitude_rad: float | None = None,
        lift_rad: float | None = None,
        height_rad: float | None = None,
        steering: float = 0.0,
    ) -> Float[np.ndarray, " 12"]:
        """The motor angles after one step, of the gait itself where nothing else is given.

        Args:
            frequency_hz: strides a second.
            amplitude_rad: of the hip, to each side.
            lift_rad: by how much the knee bends in swing.
            height_rad: by how much the knee is straighter than in the pose.
            steering: from −1 (to the right) to 1 (to the left); beyond it, robots tip over.
        """
        gait = self.gait
        self.turn = (self.turn + (gait.frequency_hz if frequency_hz is None else frequency_hz) * self._step_s) % 1.0
        amplitude = gait.amplitude_rad if amplitude_rad is None else amplitude_rad
        lift = gait.lift_rad if lift_rad is None else lift_rad
        height = gait.height_rad if height_rad is None else height_rad
        return _angles(self.turn, self._leg_turns, self._stance_turns, self._pose, amplitude, lift, height, steering)

    def phases(self) -> Float[np.ndarray, " 4"]:
        """The phase of each leg, in radians; the first half is stance, however long it takes."""
        return _phases(self.turn, self._leg_turns, self._stance_turns)

    def observe(self) -> tuple[float, float]:
        """The phase of the whole gait, as ((cos φ + 1)/2, (sin φ + 1)/2): it tells those of all legs."""
        phase = 2 * math.pi * self.turn
        return (math.cos(phase) + 1) / 2, (math.sin(phase) + 1) / 2


@compiled
def _phases(turn, legs, stance):
    phases = np.empty(len(legs))
    for leg in range(len(legs)):
        t = (turn + legs[leg]) % 1.0
        phases[leg] = math.pi * (t / stance if t < stance else 1 + (t - stance) / (1 - stance))
    return phases


@compiled
def _angles(turn, legs, stance, pose, amplitude, lift, height, steering):
    phases, angles = _phases(turn, legs, stance), pose.copy()
    for leg in range(len(phases)):
        cos, sin = math.cos(phases[leg]), math.sin(phases[leg])
        stride = 1 - STEERING_STRIDE * steering if IS_LEFT[leg] else 1 + STEERING_STRIDE * steering
        sideways = STEERING_ABDUCTION_RAD * steering * cos
        extend = height + sin * (lift if sin < 0 else -PRESS * amplitude)
        angles[3 * leg] += sideways if IS_FRONT[leg] else -sideways
        angles[3 * leg + 1] += -amplitude * stride * cos - extend / 2
        angles[3 * leg + 2] += extend
    return angles
