"""A Laikago that follows commands on a terrain, control step by control step, until it falls."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool

from iap.envs.quadruped.footsteps import walking_kernels
from iap.envs.quadruped.footsteps.fall_limits import FallLimits
from iap.envs.quadruped.footsteps.ground_cameras import VIEWS
from iap.envs.quadruped.robots import load_robot
from iap.envs.quadruped.simulation.mujoco import MujocoSimulator
from iap.envs.quadruped.simulation.protocol import Box, Simulator
from iap.locomotion.gait import Gait
from iap.locomotion.mpc import QPError
from iap.locomotion.quadruped import LAIKAGO
from iap.locomotion.walker import TOUCH_N, Command, Motion, Walker

CONTROL_STEP_S, PHYSICS_STEPS = 0.005, 2
CONTROL_STEPS = 10  # a command is followed for: 20 commands a second
SETTLING_STEPS = 20  # at rest, before the first command

STANDING_M = 0.4835


class WalkingRobot:
    """A simulated robot and its walker.

    Attributes:
        simulator: of the robot and the terrain.
        walker: that moves its legs.
    """

    def __init__(self, most_boxes: int, limits: FallLimits, most_m_s: float, *, lifts_first: bool) -> None:
        """A robot on terrains of so many boxes.

        Args:
            most_boxes: of a terrain.
            limits: at which it has fallen.
            most_m_s: up to which speed its way counts.
            lifts_first: swing feet up before forward, as stairs need it.
        """
        robot = load_robot("laikago")
        self.simulator: Simulator = MujocoSimulator(robot, VIEWS, most_boxes, CONTROL_STEP_S, PHYSICS_STEPS)
        self.walker = Walker(LAIKAGO, step_s=CONTROL_STEP_S, lifts_first=lifts_first)
        self._pose = robot.pose_rad
        self._limits = limits
        self._most_step_m = most_m_s * CONTROL_STEP_S

    def restart(self, boxes: Sequence[Box], gait: Gait) -> Motion:
        """Stand at the beginning of a terrain, and tell how."""
        self.walker.gait = gait
        self.simulator.reset(boxes, (0.0, 0.0, STANDING_M), 0.0)
        for _ in range(SETTLING_STEPS):
            self.simulator.step(self._pose)
        motion = Motion.unknown()
        motion.measure(*self.simulator.state()[:5], self.simulator.foot_pressures())
        self.walker.restart(motion)
        return motion

    def follow(self, motion: Motion, command: Command) -> tuple[Motion, float, str | None]:
        """Do as told for a twentieth of a second: the motion after it, how far forward, and why it ended before."""
        walker, simulator, limits = self.walker, self.simulator, self._limits.numbers
        motion = motion.copy()  # whoever has kept it keeps it as it was
        body, state, pressures = motion[:], simulator.state()[:5], simulator.foot_pressures()
        way_m, ended = 0.0, None
        for _ in range(CONTROL_STEPS):
            try:
                commands, gives_torque = walker.step(motion, command)
            except QPError:
                return motion, way_m, "no forces carry the body"
            simulator.step(commands, gives_torque)
            ahead_m, passed = walking_kernels.measure(body, *state, pressures, TOUCH_N, walker.footholds_m, limits)
            way_m += min(max(ahead_m, -self._most_step_m), self._most_step_m)
            ended = self._limits.why_ended(passed, simulator.bumps())
            if ended:
                break
        return motion, way_m, ended

    def lifting_before_next(self) -> Bool[np.ndarray, " 4"]:
        """Which feet lift off before the next command, so that this one decides where they land."""
        gait, soon_s = self.walker.gait, CONTROL_STEPS * CONTROL_STEP_S
        progress = gait.swing_progress(self.walker.time_s + soon_s - CONTROL_STEP_S)
        return (progress >= 0) & (progress < soon_s / gait.swing_s - 1e-9)
