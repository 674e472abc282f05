"""`iap/ObstacleCourse-v0`: a Unitree A1 trots through gaps in walls, which only its camera shows."""

import math
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from jaxtyping import Float, Float32, Int, UInt8

from iap._compile import compiled
from iap.envs.quadruped.obstacle_course.course import Course, CourseOptions, require_number
from iap.envs.quadruped.robots import load_robot
from iap.envs.quadruped.simulation.mujoco import MujocoSimulator
from iap.envs.quadruped.simulation.protocol import SEGMENTS, Simulator, View
from iap.envs.wrappers import Observation, observation_space, require_size, rgb_space
from iap.locomotion.trajectory_generator import TROT, TrajectoryGenerator

CONTROL_STEP_S = 0.02

CAMERA_M, CAMERA_FOV_DEG = (0.28, 0.0, 0.04), 80.0
LARGEST_SIDE = 1024

# How far an action of 1 takes the stride from the trot's: frequency, amplitude, lift, height, steering.
STRIDE_REACH = (1.0, 0.1, 0.2, 0.2, 1.0)
STRIDE_MIDDLE = (TROT.frequency_hz, TROT.amplitude_rad, TROT.lift_rad, TROT.height_rad, 0.0)
RESIDUAL_RAD = 0.2
MOTORS = 12
STRIDES = len(STRIDE_REACH)
ACTIONS = STRIDES + MOTORS
SENSORS = 5 + MOTORS + 2
OTHER_SIDE = (1, 0, 3, 2)  # the leg across from each
SMOOTHING = 0.3  # share of a new action in the one that is followed, at each step

STANDING_M = 0.27
LOWEST_M, LARGEST_TILT_RAD = 0.14, 0.7  # of a robot that has not fallen
STALL_AFTER_STEPS, STALL_STEPS, STALL_M = 90, 60, 0.08


class ObstacleCourse(gymnasium.Env):
    """Walk as far as possible in ten seconds, 50 steps a second.

    The reward of a step is how far it came along the platform, at most `v_cap` metres; an episode ends early when the
    robot has fallen, has left the platform, or stands still.

    An action has 17 numbers in [−1, 1], and 0 is a trot straight on at 1 m/s: strides a second, their length,
    how high feet are lifted, how high the trunk is held, steering (positive to the left), and, unless `residuals` is
    False, what is added to the twelve motor angles, of FR, FL, RR, RL, each abduction, hip, knee. Actions are smoothed
    over a few steps.

    The sensors are 19: roll and pitch (rad), rates about x, y, z (rad/s), the motor angles from the standing pose
    (rad), and the phase of the gait as two numbers in [0, 1].
    """

    segment_names = SEGMENTS
    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 50}  # noqa: RUF012

    def __init__(
        self,
        size: Sequence[int] = (32, 32),
        walls: int = CourseOptions.walls,
        gap_m: Sequence[float] = CourseOptions.gap_m,
        spacing_m: float = CourseOptions.spacing_m,
        wall_jitter_m: float = CourseOptions.wall_jitter_m,
        width_m: float = CourseOptions.width_m,
        wall_friction: float = CourseOptions.wall_friction,
        start_y_m: float = CourseOptions.start_y_m,
        start_yaw_rad: float = CourseOptions.start_yaw_rad,
        v_cap: float = 0.025,
        residuals: bool = True,
        render_mode: str | None = None,
    ) -> None:
        """A course of this kind.

        Args:
            size: (height, width) of the image.
            walls: how many, the first two metres from the start.
            gap_m: narrowest and widest gap, which is at the left or the right end of each wall.
            spacing_m: from wall to wall.
            wall_jitter_m: by how much a wall may be nearer or farther.
            width_m: of the platform.
            wall_friction: 0 lets the trunk slide along walls.
            start_y_m: by how much the start may be off the middle.
            start_yaw_rad: by how much the start may be turned.
            v_cap: largest reward of a step, in metres.
            residuals: whether actions reach the single motors, or the stride alone.
            render_mode: "rgb_array" for pictures of the scene from `render`.
        """
        size = require_size("size", size, most=LARGEST_SIDE)
        self.options = CourseOptions(
            walls,
            gap_m,
            spacing_m,
            wall_jitter_m,
            width_m,
            wall_friction,
            start_y_m,
            start_yaw_rad,
        )
        self._v_cap = require_number("v_cap", v_cap, 1e-6, math.inf)
        self.render_mode = render_mode
        self.observation_space = observation_space(rgb_space(size), SENSORS)
        self._actions = ACTIONS if residuals else STRIDES
        self.action_space = spaces.Box(-1, 1, (self._actions,), np.float32)
        robot = load_robot("a1")
        self._simulator: Simulator = MujocoSimulator(
            robot, [View(CAMERA_M, size, CAMERA_FOV_DEG)], most_boxes=1 + walls, control_step_s=CONTROL_STEP_S
        )
        self._gait = TrajectoryGenerator(TROT, robot.pose_rad, CONTROL_STEP_S)
        self._pose = robot.pose_rad
        self._looking = True

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, dict]:
        """Draw a course and start on it, with an image whatever `look` said before.

        With `options={"mirrored": True}`, it is the mirror image of the course that would have been drawn.
        """
        super().reset(seed=seed, options=options)
        course = self.options.draw(self.np_random)
        self.course: Course = course.mirrored() if (options or {}).get("mirrored") else course
        start = (0.0, self.course.start_y_m, STANDING_M)
        self._simulator.reset(self.course.boxes(), start, self.course.start_yaw_rad)
        self._state = self._simulator.state()
        self._gait.restart(0.75 if self.course.left_foot_first else 0.25)
        self._action = np.zeros(self._actions)
        self._way = [0.0]
        self._looking = True
        return self._observe(self._sense()[-1]), {"course": self.course}

    def step(self, action: Float[np.ndarray, " k"]) -> tuple[Observation, float, bool, bool, dict]:
        """Move the legs for a fiftieth of a second."""
        self._simulator.step(self._motor_angles(np.asarray(action, np.float64)))
        x, y, z, roll, pitch, sensors = self._sense()
        reward = min(max(x - self._way[-1], -self._v_cap), self._v_cap)
        self._way.append(x)
        ended = self._why_ended(x, y, z, roll, pitch)
        return self._observe(sensors), reward, ended is not None, False, {"ended": ended} if ended else {}

    def look(self, wanted: bool) -> None:
        """Whether the next steps shall draw an image, or may repeat the last one."""
        self._looking = wanted

    def render(self) -> UInt8[np.ndarray, "480 640 3"] | None:
        """The robot from behind and above."""
        return None if self.render_mode is None else self._simulator.picture()

    def segmentation(self) -> Int[np.ndarray, "H W"]:
        """What each pixel of the robot's camera shows now, as an index of `segment_names`."""
        return self._simulator.segments()

    @property
    def mirror(self) -> dict[str, list]:
        """How a mirror changes sensors and actions: sides are exchanged, what turns or leans changes its sign."""
        motors = [3 * other + joint + 1 for other in OTHER_SIDE for joint in range(3)]
        signed = [-motor if motor % 3 == 1 else motor for motor in motors]  # abduction is sideways
        half_a_stride = [-18, -19]  # the phase, counted from 1 down
        sensors = [-1, 2, -3, 4, -5, *_after(5, signed), *half_a_stride]
        actions = [1, 2, 3, 4, -5, *_after(STRIDES, signed)][: self._actions]
        return {"sensors": sensors, "actions": actions, "offsets": [0.0] * (SENSORS - 2) + [1.0, 1.0]}

    def privileged_state(self) -> Float32[np.ndarray, " 38"]:
        """Positions and velocities of trunk and motors, and the next wall's distance."""
        position = self._state.position_m
        ahead = [wall for wall in self.course.walls if wall.x_m > position[0]]
        return np.concatenate([*self._state, [ahead[0].x_m - position[0] if ahead else 0.0]]).astype(np.float32)

    def close(self) -> None:
        """Free the cameras."""
        self._simulator.close()

    def _motor_angles(self, action: Float[np.ndarray, " k"]) -> Float[np.ndarray, " 12"]:
        if action.shape != self._action.shape:
            raise ValueError(f"action must be of shape {self._action.shape}, not {action.shape}")
        stride = _follow(action, self._action)
        if stride is None:
            raise ValueError(f"action must be finite, not {action}")
        angles = self._gait.advance(*stride)
        if len(action) > STRIDES:
            angles += RESIDUAL_RAD * self._action[STRIDES:]
        return angles

    def _why_ended(self, x: float, y: float, z: float, roll: float, pitch: float) -> str | None:
        way, course = self._way, self.course
        if not (abs(y) <= course.width_m / 2 and course.start_x_m <= x <= course.end_x_m):
            return "off the platform"
        if not (z > LOWEST_M and abs(roll) < LARGEST_TILT_RAD and abs(pitch) < LARGEST_TILT_RAD):
            return "fallen"
        if len(way) > STALL_AFTER_STEPS and x - way[-1 - STALL_STEPS] < STALL_M:
            return "stalled"
        return None

    def _sense(self) -> tuple[float, float, float, float, float, Float32[np.ndarray, " 19"]]:
        """Where the trunk is, its roll and pitch, and all sensors."""
        state = self._state
        return _senses(
            state.position_m, state.quaternion, state.rates_rad_s, state.angles_rad, self._pose, *self._gait.observe()
        )

    def _observe(self, sensors: Float[np.ndarray, " 19"]) -> Observation:
        if self._looking:
            self._image = self._simulator.image()
        return {"image": self._image, "sensors": sensors}


@compiled
def _follow(action, followed):
    """Take an action into the one that is followed: the stride that it asks for, or None if it holds NaN."""
    for i in range(len(followed)):
        x = action[i]
        wanted = 1.0 if x > 1 else -1.0 if x < -1 else x
        followed[i] += SMOOTHING * (wanted - followed[i])
    if np.isnan(followed).any():
        return None
    (m0, m1, m2, m3, m4), (r0, r1, r2, r3, r4) = STRIDE_MIDDLE, STRIDE_REACH
    x = followed
    return m0 + r0 * x[0], m1 + r1 * x[1], m2 + r2 * x[2], m3 + r3 * x[3], m4 + r4 * x[4]


@compiled
def _senses(position, quaternion, rates, angles, pose, cos_phase, sin_phase):
    w, x, y, z = quaternion
    roll = math.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
    pitch = math.asin(min(max(2 * (w * y - z * x), -1.0), 1.0))
    sensors = np.empty(SENSORS, np.float32)
    sensors[0], sensors[1] = roll, pitch
    sensors[2:5] = rates
    sensors[5 : 5 + MOTORS] = angles - pose
    sensors[-2], sensors[-1] = cos_phase, sin_phase
    return position[0], position[1], position[2], roll, pitch, sensors


def _after(count: int, signed: Sequence[int]) -> list[int]:
    """Signed numbers, counted from 1, as they are when `count` others come before them."""
    return [number + count if number > 0 else number - count for number in signed]
