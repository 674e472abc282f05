"""Policies modulating trajectory generators (PMTG): twelve motor angles as functions of one phase.

A leg with phase φ is in stance for φ ≤ π and in swing afterwards:

    swing  = amplitude · cos φ                     hip  = pose − swing − extend/2
    extend = height + sin φ · (−press, or lift)    knee = pose + extend

where `press`, the extension of the leg against the ground, is proportional to the amplitude. Legs are in the order FR,
FL, RR, RL, motors of a leg in the order abduction, hip, knee. A positive hip angle moves the foot back, a positive
abduction to the left.
"""

import math
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float

from iap._compile import compiled
from iap.locomotion.kinematics import LEGS

IS_FRONT = (True, True, False, False)
IS_LEFT = (False, True, False, True)

PRESS = 0.04  # extension in stance, in rad per rad of amplitude
STEERING_STRIDE = 0.2  # relative change of the strides of the two sides at full steering
STEERING_ABDUCTION_RAD = 0.12  # sideways motion of the front feet at full steering; rear feet move the other way


@dataclass(frozen=True)
class StrideParameters:
    """The default motion of the legs.

    Attributes:
        phases: of FR, FL, RR, RL, in cycles.
        frequency_hz: strides per second.
        amplitude_rad: of the hip angle.
        lift_rad: additional knee bend in swing.
        height_rad: extension of the knee relative to the pose.
        swing_speed_ratio: speed of the phase in swing, relative to stance.
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
            raise ValueError(f"phases must have an entry for each of {', '.join(LEGS)}, not {self.phases}")


TROT = StrideParameters((0.5, 0.0, 0.0, 0.5), frequency_hz=3.0, amplitude_rad=0.35, lift_rad=0.4)
WALK = StrideParameters(
    (0.5, 0.0, 0.75, 0.25), frequency_hz=2.0, amplitude_rad=0.25, lift_rad=0.8, swing_speed_ratio=3.0
)


class TrajectoryGenerator:
    """Motor angles over time; the caller may change the stride at every step.

    Attributes:
        stride: the default parameters.
        phase: of the cycle, from 0 to 1.
    """

    def __init__(self, stride: StrideParameters, pose_rad: Float[np.ndarray, " 12"], step_s: float) -> None:
        """The stride around a pose, in steps of `step_s` seconds."""
        self.stride = stride
        self._step_s = step_s
        self._pose = np.asarray(pose_rad, np.float64)
        self._leg_phases = np.array(stride.phases)
        self._stance_fraction = stride.swing_speed_ratio / (1 + stride.swing_speed_ratio)
        self.phase = 0.0

    def reset(self, phase: float = 0.0) -> None:
        """Set the phase of the cycle: at a quarter every foot is below its hip."""
        self.phase = phase % 1.0

    def advance(
        self,
        frequency_hz: float | None = None,
        amplitude_rad: float | None = None,
        lift_rad: float | None = None,
        height_rad: float | None = None,
        steering: float = 0.0,
    ) -> Float[np.ndarray, " 12"]:
        """The motor angles after one step; parameters that are not given keep their defaults.

        Args:
            frequency_hz: strides per second.
            amplitude_rad: of the hip angle.
            lift_rad: additional knee bend in swing.
            height_rad: extension of the knee relative to the pose.
            steering: from −1 (to the right) to 1 (to the left); robots fall beyond that.
        """
        stride = self.stride
        self.phase = (self.phase + (stride.frequency_hz if frequency_hz is None else frequency_hz) * self._step_s) % 1.0
        amplitude = stride.amplitude_rad if amplitude_rad is None else amplitude_rad
        lift = stride.lift_rad if lift_rad is None else lift_rad
        height = stride.height_rad if height_rad is None else height_rad
        return _angles(
            self.phase, self._leg_phases, self._stance_fraction, self._pose, amplitude, lift, height, steering
        )

    def leg_phases(self) -> Float[np.ndarray, " 4"]:
        """The phase of each leg, in radians; stance is the first half."""
        return _leg_phases(self.phase, self._leg_phases, self._stance_fraction)

    def observe(self) -> tuple[float, float]:
        """The phase of the cycle as ((cos φ + 1)/2, (sin φ + 1)/2)."""
        phase = 2 * math.pi * self.phase
        return (math.cos(phase) + 1) / 2, (math.sin(phase) + 1) / 2


@compiled
def _leg_phases(phase, legs, stance):
    phases = np.empty(len(legs))
    for leg in range(len(legs)):
        t = (phase + legs[leg]) % 1.0
        phases[leg] = math.pi * (t / stance if t < stance else 1 + (t - stance) / (1 - stance))
    return phases


@compiled
def _angles(phase, legs, stance, pose, amplitude, lift, height, steering):
    phases, angles = _leg_phases(phase, legs, stance), pose.copy()
    for leg in range(len(phases)):
        cos, sin = math.cos(phases[leg]), math.sin(phases[leg])
        stride = 1 - STEERING_STRIDE * steering if IS_LEFT[leg] else 1 + STEERING_STRIDE * steering
        sideways = STEERING_ABDUCTION_RAD * steering * cos
        extend = height + sin * (lift if sin < 0 else -PRESS * amplitude)
        angles[3 * leg] += sideways if IS_FRONT[leg] else -sideways
        angles[3 * leg + 1] += -amplitude * stride * cos - extend / 2
        angles[3 * leg + 2] += extend
    return angles
