"""A walking robot: swinging feet go to their footholds, and standing feet carry the body.

Swinging legs hold angles, standing legs give torques. Whoever commands chooses where the next feet land, as offsets
from where Raibert's rule would put them, and how the body shall move.
"""

from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int

from iap.locomotion import walker_loops
from iap.locomotion.gait import TROT, FootState, Gait
from iap.locomotion.mpc import ConvexMPC
from iap.locomotion.quadruped import Quadruped

STEPS_PER_PLAN = 4  # control steps for which planned forces hold, unless a foot lands or lifts off


class Motion(NamedTuple):
    """What the robot is doing, in the world's frame."""

    position_m: Float[np.ndarray, " 3"]
    rotation: Float[np.ndarray, "3 3"]  # from the body's frame to the world's
    velocity_m_s: Float[np.ndarray, " 3"]
    turning_rad_s: Float[np.ndarray, " 3"]
    angles_rad: Float[np.ndarray, "4 3"]
    touching: Bool[np.ndarray, " 4"]

    @classmethod
    def measured(
        cls,
        position_m: Float[np.ndarray, " 3"],
        quaternion: Float[np.ndarray, " 4"],
        velocity_m_s: Float[np.ndarray, " 3"],
        rates_rad_s: Float[np.ndarray, " 3"],
        angles_rad: Float[np.ndarray, " 12"],
        touching: Bool[np.ndarray, " 4"],
    ) -> "Motion":
        """From an orientation (w, x, y, z), and turning rates in the body's frame; nothing is kept of the arrays."""
        rotation = walker_loops.rotation_of(quaternion)
        angles = angles_rad.reshape(4, 3).copy()
        return cls(position_m.copy(), rotation, velocity_m_s.copy(), rotation @ rates_rad_s, angles, touching)

    @property
    def roll_pitch(self) -> tuple[float, float]:
        """Of the body, with pitch positive nose down."""
        return walker_loops.roll_pitch_of(self.rotation)


@dataclass(frozen=True, eq=False)
class Command:
    """What the robot shall do.

    Attributes:
        offsets_m: of the next footholds from where Raibert's rule puts them, forward, left and up.
        clearances_m: of the next swings.
        velocity_m_s: forward and to the left.
        turning_rad_s: to the left.
        height_m: of the base above the ground.
        roll_rad: of the body.
        pitch_rad: of the body, positive nose down.
    """

    offsets_m: Float[np.ndarray, "4 3"] = field(default_factory=lambda: np.zeros((4, 3)))
    clearances_m: Float[np.ndarray, " 4"] = field(default_factory=lambda: np.full(4, 0.08))
    velocity_m_s: tuple[float, float] = (0.0, 0.0)
    turning_rad_s: float = 0.0
    height_m: float = 0.43
    roll_rad: float = 0.0
    pitch_rad: float = 0.0


class Walker:
    """Motor commands for a robot that follows a gait.

    Attributes:
        time_s: since the start.
        states: of the feet, a `FootState` each.
        toes_m: where the toes are, in the world.
        footholds_m: where each toe was when it last touched the ground.
        landings_m: where each toe shall land, or should have landed last.
        mpc: the stance control.
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
        """The robot in a gait.

        Args:
            robot: that walks.
            gait: when its legs stand and swing.
            step_s: time between control steps.
            lifts_first: swing feet up before forward, as stairs need it.
            follows_feet: add what keeps the body above its feet to the commanded velocity and turning.
        """
        self.robot = robot
        self.gait = gait
        self.mpc = ConvexMPC(robot.mpc)
        self._step_s = step_s
        self._lifts_first = lifts_first
        self._follows_feet = follows_feet

    def restart(self, motion: Motion) -> None:
        """Begin the gait at rest."""
        self._steps = 0
        self.time_s = 0.0
        self.states: Int[np.ndarray, " 4"] = np.full(4, int(FootState.STANCE))
        body = (motion.angles_rad, motion.rotation, motion.position_m)
        self.toes_m = walker_loops.toes_in_world(self.robot.legs.geometry, *body)
        self.footholds_m = self.toes_m.copy()
        self.landings_m = self.toes_m.copy()
        self._starts_m = self.toes_m.copy()
        self._clearances_m = np.zeros(4)
        self._lost_s = np.zeros(4)
        self._forces: Float[np.ndarray, "4 3"] = np.zeros((4, 3))

    def step(self, motion: Motion, command: Command) -> tuple[Float[np.ndarray, " 12"], Bool[np.ndarray, " 12"]]:
        """Angles of the motors, or torques where the second result says so; time goes on by one step.

        Raises:
            QPError: if no forces of the feet carry the body.
        """
        body = (self.robot.legs.geometry, motion.angles_rad, motion.rotation, motion.position_m)
        progress = self.gait.swing_progress(self.time_s)
        memory = (self.footholds_m, self._lost_s)
        self.toes_m, self.states, has_changed, lifting = walker_loops.sense_feet(
            *body, motion.touching, progress, self.states, memory, self._step_s
        )
        if has_changed:
            self._lift_off(motion, command, lifting)
        if has_changed or self._steps % STEPS_PER_PLAN == 0:
            self._forces = self._plan(motion, command)
        swings = (self._starts_m, self.landings_m, self._clearances_m)
        self._steps += 1
        self.time_s = self._steps * self._step_s
        return walker_loops.motor_commands(
            *body, self.states, progress, self.toes_m, swings, self._lost_s, self._forces, self._lifts_first
        )

    def next_landings(
        self, motion: Motion, velocity_m_s: tuple[float, float], height_m: float
    ) -> Float[np.ndarray, "4 3"]:
        """Where each toe would land by Raibert's rule if it lifted off now, in the world: offsets count from there."""
        return walker_loops.raibert_landings(
            self.robot.stance_m,
            motion[:3],
            np.array(velocity_m_s),
            self.gait.swing_s + self.gait.stance_s / 2,
            height_m - self.robot.toe_radius_m,
        )

    def _lift_off(self, motion: Motion, command: Command, lifting: Bool[np.ndarray, " 4"]) -> None:
        """Choose the landings of the feet that lift off now."""
        nominal = self.next_landings(motion, command.velocity_m_s, command.height_m)
        offsets = command.offsets_m @ walker_loops.heading_of(motion.rotation).T
        self.landings_m[lifting] = (nominal + offsets)[lifting]
        self._starts_m[lifting] = self.toes_m[lifting]
        self._clearances_m[lifting] = command.clearances_m[lifting]

    def _plan(self, motion: Motion, command: Command) -> Float[np.ndarray, "4 3"]:
        """The forces on the feet now, in the world: the first of those over the horizon."""
        spec = self.robot.mpc
        contacts = self.gait.contacts(self.time_s, spec.horizon, spec.step_s)
        walker_loops.correct_contacts(contacts, self.states)
        # Whoever stands now may lift off and land again within the horizon.
        nominal = self.next_landings(motion, command.velocity_m_s, command.height_m)
        landings = np.where(contacts[0, :, None], nominal, self.landings_m)
        wanted = (
            *command.velocity_m_s,
            command.turning_rad_s,
            command.height_m,
            command.roll_rad,
            command.pitch_rad,
        )
        state, reference, feet, heading = walker_loops.horizon_problem(
            motion[:3],
            motion.turning_rad_s,
            self.robot.com_m,
            (self.toes_m, self.footholds_m, landings, self.robot.toe_radius_m),
            contacts,
            wanted,
            self._follows_feet,
            spec.step_s,
        )
        return self.mpc.forces(state, reference, contacts, feet)[0] @ heading.T
