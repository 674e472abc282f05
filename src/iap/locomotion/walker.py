"""A walking controller: feet in swing move to their footholds, and feet in contact move the body.

Legs in swing track angles, legs in contact give torques. A command sets the next footholds, as offsets from Raibert's
rule, and the motion of the body.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from iap.locomotion import walker_kernels
from iap.locomotion.gait import TROT, FootState, Gait
from iap.locomotion.mpc import ConvexMPC
from iap.locomotion.robots import Quadruped

STEPS_PER_PLAN = 4  # control steps between two solutions of the MPC, unless a foot lands or lifts off
TOUCH_N = 1.0  # smallest normal force that counts as contact


class Motion(NamedTuple):
    """The measured motion of the robot, in the world's frame."""

    position_m: Float[np.ndarray, " 3"]
    rotation: Float[np.ndarray, "3 3"]  # from the body's frame to the world's
    velocity_m_s: Float[np.ndarray, " 3"]
    angular_velocity_rad_s: Float[np.ndarray, " 3"]
    angles_rad: Float[np.ndarray, "4 3"]
    touching: Bool[np.ndarray, " 4"]

    @classmethod
    def empty(cls) -> "Motion":
        """Uninitialised arrays, to be filled by `measure`."""
        return cls(np.empty(3), np.empty((3, 3)), np.empty(3), np.empty(3), np.empty((4, 3)), np.empty(4, bool))

    def copy(self) -> "Motion":
        """A copy, which later measurements do not change."""
        return Motion(*(array.copy() for array in self))

    def measure(
        self,
        position_m: Float[np.ndarray, " 3"],
        quaternion: Float[np.ndarray, " 4"],
        velocity_m_s: Float[np.ndarray, " 3"],
        rates_rad_s: Float[np.ndarray, " 3"],
        angles_rad: Float[np.ndarray, " 12"],
        pressures_n: Float[np.ndarray, " 4"],
    ) -> None:
        """Set the motion from sensors: the quaternion is (w, x, y, z), rates are in the body's frame."""
        measured = (position_m, quaternion, velocity_m_s, rates_rad_s, angles_rad, pressures_n)
        walker_kernels.measure(self[:], *measured, TOUCH_N)

    @property
    def roll_pitch(self) -> tuple[float, float]:
        """Roll and pitch of the body; pitch is positive nose down."""
        return walker_kernels.roll_pitch_of(self.rotation)


@dataclass(frozen=True, eq=False)
class Command:
    """The desired motion of the robot.

    Attributes:
        offsets_m: of the next footholds from Raibert's rule, forward, left and up.
        clearances_m: of the next swings.
        velocity_m_s: of the body, forward and to the left.
        yaw_rate_rad_s: of the body, positive to the left.
        height_m: of the base above the ground.
        roll_rad: of the body.
        pitch_rad: of the body, positive nose down.
    """

    offsets_m: Float[np.ndarray, "4 3"] = field(default_factory=lambda: np.zeros((4, 3)))
    clearances_m: Float[np.ndarray, " 4"] = field(default_factory=lambda: np.full(4, 0.08))
    velocity_m_s: tuple[float, float] = (0.0, 0.0)
    yaw_rate_rad_s: float = 0.0
    height_m: float = 0.43
    roll_rad: float = 0.0
    pitch_rad: float = 0.0


class Walker:
    """Motor commands for a robot that walks with a gait.

    Each step changes the arrays in place.

    Attributes:
        time_s: since the start.
        states: of the feet, a `FootState` each.
        toes_m: positions of the toes, in the world.
        footholds_m: position of each toe at its last contact.
        landings_m: target of each toe's current or last swing.
        mpc: the controller of the contact forces.
    """

    def __init__(
        self,
        robot: Quadruped,
        gait: Gait = TROT,
        step_s: float = 0.005,
        *,
        lifts_first: bool = False,
        follows_feet: bool = True,
    ) -> None:
        """A controller for one robot.

        Args:
            robot: its model.
            gait: the schedule of stance and swing.
            step_s: time between control steps.
            lifts_first: swing feet up before forward, which stairs require.
            follows_feet: add feedback to the commanded velocity and yaw rate that keeps the body above its feet.
        """
        self.robot = robot
        self.gait = gait
        self.mpc = ConvexMPC(robot.mpc)
        self._step_s = step_s
        self._lifts_first = lifts_first
        self._follows_feet = follows_feet
        self._shape = (robot.stance_m, robot.com_m, robot.toe_radius_m)
        self._horizon = (robot.mpc.horizon, robot.mpc.step_s)

    def reset(self, motion: Motion) -> None:
        """Start the gait at rest."""
        self._steps = 0
        self.time_s = 0.0
        self.states: Int[np.ndarray, " 4"] = np.full(4, int(FootState.STANCE))
        body = (motion.angles_rad, motion.rotation, motion.position_m)
        self.toes_m = walker_kernels.toes_in_world(self.robot.legs.geometry, *body)
        self.footholds_m = self.toes_m.copy()
        self.landings_m = self.toes_m.copy()
        places = (self.toes_m, self.footholds_m, self.landings_m, self.toes_m.copy())
        self._feet = (self.states, np.zeros(4, bool), np.zeros(4), *places, np.zeros(4), np.zeros(4))
        self._forces: Float[np.ndarray, "4 3"] = np.zeros((4, 3))

    def step(self, motion: Motion, command: Command) -> tuple[Float[np.ndarray, " 12"], Bool[np.ndarray, " 12"]]:
        """Advance by one step: motor angles, or torques where the second result is True.

        Raises:
            QPError: if the MPC has no solution.
        """
        geometry, body, feet = self.robot.legs.geometry, motion[:], self._feet
        has_changed = walker_kernels.update_feet(geometry, body, feet, self.gait.clock, self.time_s, self._step_s)
        if has_changed:
            self._lift_off(motion, command)
        if has_changed or self._steps % STEPS_PER_PLAN == 0:
            self._forces = self._plan(motion, command)
        self._steps += 1
        self.time_s = self._steps * self._step_s
        return walker_kernels.motor_commands(geometry, body, feet, self._forces, self._lifts_first)

    def next_landings(
        self, motion: Motion, velocity_m_s: tuple[float, float], height_m: float
    ) -> Float[np.ndarray, "4 3"]:
        """The landing of each toe by Raibert's rule if it lifted off now, in the world; offsets are relative to it."""
        drop_m = height_m - self.robot.toe_radius_m
        return walker_kernels.raibert_landings(self.robot.stance_m, motion[:3], velocity_m_s, self.gait.lead_s, drop_m)

    def _lift_off(self, motion: Motion, command: Command) -> None:
        """Set the landings of the feet that lift off now."""
        raibert = (command.velocity_m_s, self.gait.lead_s, command.height_m - self.robot.toe_radius_m)
        chosen = (command.offsets_m, command.clearances_m)
        walker_kernels.lift_off(motion[:], self._feet, self.robot.stance_m, *raibert, *chosen)

    def _plan(self, motion: Motion, command: Command) -> Float[np.ndarray, "4 3"]:
        """The contact forces of the first step of the horizon, in the world."""
        wanted = (
            *command.velocity_m_s,
            command.yaw_rate_rad_s,
            command.height_m,
            command.roll_rad,
            command.pitch_rad,
        )
        gait = (self.gait.clock, self.time_s, self.gait.lead_s)
        *problem, heading = walker_kernels.horizon_problem(
            self._shape, motion[:], self._feet, gait, wanted, self._follows_feet, self._horizon
        )
        return self.mpc.forces(*problem)[0] @ heading.T
