"""A simulated Laikago that follows commands on a terrain."""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool

from iap._compile import compiled
from iap.envs.quadruped.footsteps.fall_limits import FallLimits, exceeded_limit
from iap.envs.quadruped.footsteps.ground_cameras import VIEWS
from iap.envs.quadruped.simulation.mujoco import MujocoSimulator
from iap.envs.quadruped.simulation.protocol import Box, Simulator
from iap.locomotion import walker_kernels
from iap.locomotion.gait import Gait
from iap.locomotion.mpc import QPError
from iap.locomotion.robots import LAIKAGO, load_robot
from iap.locomotion.walker import TOUCH_N, Command, Motion, Walker

CONTROL_STEP_S, PHYSICS_STEPS = 0.005, 2
CONTROL_STEPS = 10  # per command: 20 commands per second
SETTLING_STEPS = 20  # at rest, before the first command

STANDING_M = 0.4835


class WalkingRobot:
    """A simulated robot and its walking controller.

    Attributes:
        simulator: of the robot and the terrain.
        walker: the controller.
    """

    def __init__(self, max_boxes: int, limits: FallLimits, max_speed_m_s: float, *, lifts_first: bool) -> None:
        """A robot on terrains of up to `max_boxes` boxes.

        Args:
            max_boxes: of a terrain.
            limits: at which it has fallen.
            max_speed_m_s: forward progress is counted up to this speed.
            lifts_first: swing feet up before forward, which stairs require.
        """
        robot = load_robot("laikago")
        self.simulator: Simulator = MujocoSimulator(robot, VIEWS, max_boxes, CONTROL_STEP_S, PHYSICS_STEPS)
        self.walker = Walker(LAIKAGO, step_s=CONTROL_STEP_S, lifts_first=lifts_first)
        self._pose = robot.pose_rad
        self._limits = limits
        self._max_step_m = max_speed_m_s * CONTROL_STEP_S

    def reset(self, boxes: Sequence[Box], gait: Gait) -> Motion:
        """Stand at the start of a terrain, and return the measured motion."""
        self.walker.gait = gait
        self.simulator.reset(boxes, (0.0, 0.0, STANDING_M), 0.0)
        for _ in range(SETTLING_STEPS):
            self.simulator.step(self._pose)
        motion = Motion.empty()
        motion.measure(*self.simulator.state()[:5], self.simulator.foot_pressures())
        self.walker.reset(motion)
        return motion

    def follow(self, motion: Motion, command: Command) -> tuple[Motion, float, str | None]:
        """Apply a command for 1/20 s: the motion afterwards, the forward progress, and why the episode ends, if so."""
        walker, simulator, limits = self.walker, self.simulator, self._limits.numbers
        motion = motion.copy()  # the caller's arrays stay as they are
        body, state, pressures = motion[:], simulator.state()[:5], simulator.foot_pressures()
        progress_m, reason = 0.0, None
        for _ in range(CONTROL_STEPS):
            try:
                commands, gives_torque = walker.step(motion, command)
            except QPError:
                return motion, progress_m, "no contact forces"
            simulator.step(commands, gives_torque)
            ahead_m, exceeded = _measure(body, *state, pressures, TOUCH_N, walker.footholds_m, limits)
            progress_m += min(max(ahead_m, -self._max_step_m), self._max_step_m)
            reason = self._limits.reason(exceeded, simulator.body_contacts())
            if reason:
                break
        return motion, progress_m, reason

    def lifting_before_next(self) -> Bool[np.ndarray, " 4"]:
        """Which feet lift off before the next command, so that this one sets their landings."""
        gait, horizon_s = self.walker.gait, CONTROL_STEPS * CONTROL_STEP_S
        progress = gait.swing_progress(self.walker.time_s + horizon_s - CONTROL_STEP_S)
        return (progress >= 0) & (progress < horizon_s / gait.swing_s - 1e-9)


@compiled
def _measure(motion, position, quaternion, velocity, rates, angles, pressures, least_pressure, footholds, limits):
    """Update the motion; return the forward progress since the last one, and which limit is exceeded."""
    before = motion[0][0]
    walker_kernels.measure(motion, position, quaternion, velocity, rates, angles, pressures, least_pressure)
    return motion[0][0] - before, exceeded_limit(motion[0], motion[1], footholds, limits)
