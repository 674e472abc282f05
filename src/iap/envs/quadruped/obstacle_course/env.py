"""`iap/ObstacleCourse-v0`: a Unitree A1 walks through gaps in walls that only its camera shows."""

import math
from collections.abc import Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from jaxtyping import Float, Float32, Int, UInt8

from iap._compile import compiled
from iap._validation import require_number
from iap.envs.protocols import Label
from iap.envs.quadruped.obstacle_course.course import Course, CourseOptions
from iap.envs.quadruped.obstacle_course.teacher import label_stride
from iap.envs.quadruped.simulation.mujoco import MujocoSimulator
from iap.envs.quadruped.simulation.protocol import SEGMENTS, Simulator, State, View
from iap.envs.wrappers import Observation, observation_space, require_size, rgb_space
from iap.locomotion.robots import load_robot
from iap.locomotion.trajectory_generator import TROT, TrajectoryGenerator

CONTROL_STEP_S = 0.02

CAMERA_M, CAMERA_FOV_DEG = (0.28, 0.0, 0.04), 80.0
LARGEST_SIDE = 1024

# Stride parameters at an action of 0, and their change at an action of 1: frequency, amplitude, lift, height, steering.
STRIDE_MIDDLE = (TROT.frequency_hz, TROT.amplitude_rad, TROT.lift_rad, TROT.height_rad, 0.0)
STRIDE_RANGE = (1.0, 0.1, 0.2, 0.2, 1.0)
RESIDUAL_RAD = 0.2
MOTORS = 12
STRIDES = len(STRIDE_RANGE)
ACTIONS = STRIDES + MOTORS
SENSORS = 5 + MOTORS + 2
OPPOSITE_LEG = (1, 0, 3, 2)
SMOOTHING = 0.3  # weight of a new action in the exponential moving average that is applied

STANDING_M = 0.27
LOWEST_M, LARGEST_TILT_RAD = 0.14, 0.7  # beyond these the robot has fallen
STALL_AFTER_STEPS, STALL_STEPS, STALL_M = 90, 60, 0.08
OWN_OPTIONS = ("size", "v_cap", "residuals", "render_mode")


class ObstacleCourse(gymnasium.Env):
    """Walk as far as possible in ten seconds, with 50 steps per second.

    ## Actions
    Numbers in [−1, 1]; 0 is a straight trot at about 1 m/s. Actions are smoothed over a few steps.

    | number | meaning |
    |---|---|
    | 0 | stride frequency |
    | 1 | stride length |
    | 2 | lift of the feet |
    | 3 | height of the trunk |
    | 4 | steering, positive to the left |
    | 5–16 | offsets of the motor angles of FR, FL, RR, RL, each abduction, hip, knee; only if `residuals` |

    ## Observations
    | key | shape | meaning |
    |---|---|---|
    | image | (height, width, 3) uint8 | the camera at the front of the trunk |
    | sensors | (19,) float32 | roll, pitch; rates about x, y, z; motor angles relative to the pose; phase (2) |

    Angles are in rad and rates in rad/s. The phase of the gait φ is ((cos φ + 1)/2, (sin φ + 1)/2).

    ## Rewards
    The forward distance of the step in metres, at most `v_cap` per step.

    ## Termination
    The robot has fallen, has left the platform, or makes no progress. `info["ended"]` is the reason.
    `iap/ObstacleCourse-v0` is truncated after 500 steps.

    ## Options
    | option | default | meaning |
    |---|---|---|
    | size | (32, 32) | height and width of the image |
    | v_cap | 0.025 | largest reward of a step, in metres |
    | residuals | True | whether actions change single motors as well as the stride |
    | render_mode | None | "rgb_array" makes `render` return images of the scene |
    | walls | 6 | number of walls, the first two metres from the start |
    | gap_m | (1.2, 1.4) | narrowest and widest gap, at the left or the right end of a wall |
    | spacing_m | 2.5 | distance between walls |
    | wall_jitter_m | 0.25 | largest random displacement of a wall |
    | width_m | 3.0 | width of the platform |
    | wall_friction | 0.0 | 0 lets the trunk slide along walls |
    | start_y_m | 0.3 | largest distance of the start from the middle |
    | start_yaw_rad | 0.2 | largest angle of the initial heading |
    """

    segment_names = SEGMENTS
    metadata: dict[str, Any] = {  # noqa: RUF012
        "render_modes": ["rgb_array"],
        "render_fps": 50,
        "goal": "Walk as far as possible in ten seconds, through the gaps in the walls.",
        "image_title": "front camera",
    }

    def __init__(
        self,
        size: Sequence[int] = (32, 32),
        v_cap: float = 0.025,
        residuals: bool = True,
        render_mode: str | None = None,
        **course: Any,
    ) -> None:
        """The options above; `course` are the fields of `CourseOptions`."""
        size = require_size("size", size, most=LARGEST_SIDE)
        self.options = CourseOptions.from_keywords("iap/ObstacleCourse-v0", course, OWN_OPTIONS)
        self._v_cap = require_number("v_cap", v_cap, 1e-6, math.inf)
        self.render_mode = render_mode
        self.observation_space = observation_space(rgb_space(size), SENSORS)
        self._actions = ACTIONS if residuals else STRIDES
        self.action_space = spaces.Box(-1, 1, (self._actions,), np.float32)
        robot = load_robot("a1")
        views = [View(CAMERA_M, size, CAMERA_FOV_DEG)]
        self._simulator: Simulator = MujocoSimulator(
            robot, views, max_boxes=1 + self.options.walls, control_step_s=CONTROL_STEP_S
        )
        self._generator = TrajectoryGenerator(TROT, robot.pose_rad, CONTROL_STEP_S)
        self._pose = robot.pose_rad
        self._renders = True

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, dict]:
        """Draw a course and start on it, with rendering enabled.

        With `options={"mirrored": True}`, the course is the mirror image of the one that would have been drawn.
        """
        super().reset(seed=seed, options=options)
        course = self.options.draw(self.np_random)
        self.course: Course = course.mirrored() if (options or {}).get("mirrored") else course
        start = (0.0, self.course.start_y_m, STANDING_M)
        self._simulator.reset(self.course.boxes(), start, self.course.start_yaw_rad)
        self._state = self._simulator.state()
        self._generator.reset(0.75 if self.course.left_foot_first else 0.25)
        self._action = np.zeros(self._actions)
        self._positions = [0.0]
        self._renders = True
        return self._observe(self._measure()[-1]), {"course": self.course}

    def step(self, action: Float[np.ndarray, " k"]) -> tuple[Observation, float, bool, bool, dict]:
        """Move the legs for 1/50 s."""
        self._simulator.step(self._motor_angles(np.asarray(action, np.float64)))
        x, y, z, roll, pitch, sensors = self._measure()
        reward = min(max(x - self._positions[-1], -self._v_cap), self._v_cap)
        self._positions.append(x)
        ended = self._termination_reason(x, y, z, roll, pitch)
        return self._observe(sensors), reward, ended is not None, False, {"ended": ended} if ended else {}

    def set_rendering(self, enabled: bool) -> None:
        """Whether the next steps render an image or return the last one again."""
        self._renders = enabled

    def render(self) -> UInt8[np.ndarray, "480 640 3"] | None:
        """The robot from behind and above."""
        return None if self.render_mode is None else self._simulator.scene()

    def scene_labels(self) -> list[tuple[str, float, float]]:
        """The robot and the gap in the next wall."""
        position = self._state.position_m
        points = {"robot": position}
        if ahead := [wall for wall in self.course.walls if wall.x_m > position[0]]:
            side = 1 if ahead[0].gap_at_left else -1
            points["next gap"] = np.array([ahead[0].x_m, side * (self.course.width_m - ahead[0].gap_m) / 2, 0.1])
        places = self._simulator.places_in_scene(np.array([*points.values()]))
        return [(name, *place) for name, place in zip(points, places, strict=True)]

    def segmentation(self) -> Int[np.ndarray, "H W"]:
        """The class of each pixel of the robot's camera, as an index of `segment_names`."""
        return self._simulator.segments()

    @property
    def symmetry(self) -> dict[str, list]:
        """How the mirror image changes sensors and actions."""
        motors = [3 * leg + joint + 1 for leg in OPPOSITE_LEG for joint in range(3)]
        signed = [-motor if motor % 3 == 1 else motor for motor in motors]  # abduction is sideways
        phase = [-18, -19]  # shifted by half a cycle: cos and sin change sign, offset by 1
        sensors = [-1, 2, -3, 4, -5, *_shifted(5, signed), *phase]
        actions = [1, 2, 3, 4, -5, *_shifted(STRIDES, signed)][: self._actions]
        return {"sensors": sensors, "actions": actions, "offsets": [0.0] * (SENSORS - 2) + [1.0, 1.0]}

    def privileged_state(self) -> Float32[np.ndarray, " 38"]:
        """Positions and velocities of trunk and motors, and the distance of the next wall."""
        position = self._state.position_m
        ahead = [wall for wall in self.course.walls if wall.x_m > position[0]]
        return np.concatenate([*self._state, [ahead[0].x_m - position[0] if ahead else 0.0]]).astype(np.float32)

    @property
    def motion(self) -> State:
        """The state of the robot."""
        return self._state

    def label(self) -> Label:
        """What an expert would do that knows the walls: see `iap.envs.quadruped.obstacle_course.teacher`."""
        return label_stride(self)

    def close(self) -> None:
        """Free the cameras."""
        self._simulator.close()

    def _motor_angles(self, action: Float[np.ndarray, " k"]) -> Float[np.ndarray, " 12"]:
        if action.shape != self._action.shape:
            raise ValueError(f"action must be of shape {self._action.shape}, not {action.shape}")
        stride = _smooth(action, self._action)
        if stride is None:
            raise ValueError(f"action must be finite, not {action}")
        angles = self._generator.advance(*stride)
        if len(action) > STRIDES:
            angles += RESIDUAL_RAD * self._action[STRIDES:]
        return angles

    def _termination_reason(self, x: float, y: float, z: float, roll: float, pitch: float) -> str | None:
        positions, course = self._positions, self.course
        if not (abs(y) <= course.width_m / 2 and course.start_x_m <= x <= course.end_x_m):
            return "off the platform"
        if not (z > LOWEST_M and abs(roll) < LARGEST_TILT_RAD and abs(pitch) < LARGEST_TILT_RAD):
            return "fallen"
        if len(positions) > STALL_AFTER_STEPS and x - positions[-1 - STALL_STEPS] < STALL_M:
            return "stalled"
        return None

    def _measure(self) -> tuple[float, float, float, float, float, Float32[np.ndarray, " 19"]]:
        """The position of the trunk, its roll and pitch, and all sensors."""
        state, phase = self._state, self._generator.observe()
        return _sensors(state.position_m, state.quaternion, state.rates_rad_s, state.angles_rad, self._pose, *phase)

    def _observe(self, sensors: Float[np.ndarray, " 19"]) -> Observation:
        if self._renders:
            self._image = self._simulator.image()
        return {"image": self._image, "sensors": sensors}


@compiled
def _smooth(action, smoothed):
    """Update the smoothed action in place, and return its stride parameters, or None if it contains NaN."""
    for i in range(len(smoothed)):
        x = action[i]
        wanted = 1.0 if x > 1 else -1.0 if x < -1 else x
        smoothed[i] += SMOOTHING * (wanted - smoothed[i])
    if np.isnan(smoothed).any():
        return None
    (m0, m1, m2, m3, m4), (r0, r1, r2, r3, r4) = STRIDE_MIDDLE, STRIDE_RANGE
    x = smoothed
    return m0 + r0 * x[0], m1 + r1 * x[1], m2 + r2 * x[2], m3 + r3 * x[3], m4 + r4 * x[4]


@compiled
def _sensors(position, quaternion, rates, angles, pose, cos_phase, sin_phase):
    w, x, y, z = quaternion
    roll = math.atan2(2 * (w * x + y * z), 1 - 2 * (x * x + y * y))
    pitch = math.asin(min(max(2 * (w * y - z * x), -1.0), 1.0))
    sensors = np.empty(SENSORS, np.float32)
    sensors[0], sensors[1] = roll, pitch
    sensors[2:5] = rates
    sensors[5 : 5 + MOTORS] = angles - pose
    sensors[-2], sensors[-1] = cos_phase, sin_phase
    return position[0], position[1], position[2], roll, pitch, sensors


def _shifted(count: int, signed: Sequence[int]) -> list[int]:
    """Signed numbers, counted from 1, behind `count` others."""
    return [number + count if number > 0 else number - count for number in signed]
