"""`iap/DOMAIN-TASK-v0`: the tasks of dm_control's suite from images, with optional distractions."""

import contextlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces
from jaxtyping import Float, UInt8

from iap._validation import require_count
from iap.envs.control_suite.distractions.combined import KINDS, DistractionOptions, make_distractions
from iap.envs.control_suite.distractions.sources import PROCEDURAL, Split
from iap.envs.control_suite.frames import CAMERA, LARGEST_SIDE
from iap.envs.control_suite.keypoints import (
    Keypoint,
    KeypointReader,
    NoisyKeypoints,
    parse_keypoints,
    parts_of,
    randomize_joints,
)
from iap.envs.control_suite.loading import loaded
from iap.envs.control_suite.rewards import reward_function
from iap.envs.control_suite.stepping import action_space, physics_step
from iap.envs.control_suite.tasks import GOALS, LABELS, default_repeat, domain_of
from iap.envs.control_suite.view import SEGMENTS, View
from iap.envs.rendering.camera import shares_of_picture
from iap.envs.wrappers import Observation, observation_space, require_size

EPISODE_STEPS = 1000  # task steps, each with a reward in [0, 1], before actions are repeated
PICTURE_SIDE = 400  # lower bound of the longer side of `render`
PLANE = 0  # MuJoCo's geom type
LARGEST_SEED = 2**32 - 1
CHANNELS = {"rgb": 3, "grey": 1}
LUMA = np.array([77, 150, 29], np.uint16)  # weights of red, green and blue, of 256


class SuiteTask(gymnasium.Env):
    """A task of dm_control's suite from images.

    States are exactly those of dm_control, and rewards equal up to rounding. Images have no shadows and reflections.
    An episode's motion depends on its dynamics seed, and its appearance on its visual seed. `reset(seed=…)` sets both;
    `reset(options={"visual_seed": …, "dynamics_seed": …})` sets either for one episode.

    ## Actions
    One number per actuator, within the actuator's control range.

    ## Observations
    | key | shape | meaning |
    |---|---|---|
    | image | (height, width, 3 or 1) uint8 | the view of the camera |
    | sensors | (n,) float32 | dm_control's observation if `proprioception`, then `keypoints`; left out without them |

    ## Rewards
    dm_control's reward, in [0, 1] per task step, summed over the repeats of an action.

    ## Termination
    As in dm_control (most tasks never terminate). Truncation after 1000 task steps.

    ## Options
    | option | default | meaning |
    |---|---|---|
    | size | (100, 100) | height and width of the image |
    | action_repeat | by domain, 2 to 8 | task steps per action |
    | camera | 0 | number of the model's camera |
    | frame | "rgb" | or "grey" |
    | proprioception | False | whether the sensors contain dm_control's observation |
    | keypoints | () | names of keypoints that the sensors contain, see `control_suite.keypoints` |
    | keypoint_noise | 0.0 | standard deviation of a constant error per episode, and of another one per step |
    | difficulty | None | scale of the distractions: "easy", "medium", "hard" or a number in 0 … 1; None disables them |
    | distractions | all | some of "background", "camera", "colour" |
    | dynamic | False | whether distractions change within an episode |
    | backgrounds | "procedural" | or the path of a folder of videos or images, of DAVIS-2017, or of a video file |
    | videos | None | number of training videos, or "all"; None is 4 up to easy, 8 up to medium, above that all |
    | split | "train" | or "held-out", whose backgrounds never occur in "train" |
    | public_camera | False | whether camera poses are distributed as in the public code of the benchmark |
    | visual_seed | None | fixes the appearance of all episodes |
    | dynamics_seed | None | fixes the motion of all episodes |
    | render_mode | None | "rgb_array" makes `render` return a larger image |
    """

    segment_names = SEGMENTS
    has_visual_seeds = True
    metadata: dict[str, Any] = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    def __init__(
        self,
        task: str,
        size: Sequence[int] = (100, 100),
        action_repeat: int | None = None,
        camera: int = CAMERA,
        frame: Literal["rgb", "grey"] = "rgb",
        proprioception: bool = False,
        keypoints: str | Sequence[str] = (),
        keypoint_noise: float = 0.0,
        difficulty: str | float | None = None,
        distractions: str | Sequence[str] = KINDS,
        dynamic: bool = False,
        backgrounds: str = PROCEDURAL,
        videos: int | Literal["all"] | None = None,
        split: Split = "train",
        public_camera: bool = False,
        visual_seed: int | None = None,
        dynamics_seed: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        self._size = require_size("size", size, most=LARGEST_SIDE)
        self._repeat = require_count("action_repeat", default_repeat(task) if action_repeat is None else action_repeat)
        if frame not in CHANNELS:
            raise ValueError(f"frame must be one of {', '.join(map(repr, CHANNELS))}, not {frame!r}")
        self._frame, self._proprioception = frame, proprioception
        self._seeds = {"dynamics_seed": dynamics_seed, "visual_seed": visual_seed}
        _require_seeds(self._seeds)
        self.render_mode = render_mode
        self._resources = contextlib.ExitStack()
        self._env = self._resources.enter_context(loaded(task, seed=0))
        self._physics, self._task = self._env.physics, self._env.task
        self._model, self._data = self._physics.model.ptr, self._physics.data.ptr
        self._camera = require_count("camera", camera, least=0, most=self._model.ncam - 1)
        options = DistractionOptions(distractions, difficulty, dynamic, backgrounds, videos, split, public_camera)
        self._distractions = make_distractions(self._model, domain_of(task), self._camera, self._size, options)
        self._view = self._open_view(self._size)
        self._picture: View | None = None
        substeps = round(self._env.control_timestep() / self._physics.timestep())
        self._readers: dict[Any, KeypointReader] = {}
        self._keypoints = NoisyKeypoints(self._reader(parse_keypoints(keypoints)), keypoint_noise)
        self._simulate = physics_step(self._model, self._data, substeps)
        self._reward = reward_function(task, self._task, self._physics)
        self._parts = np.flatnonzero(self._model.geom_type != PLANE)
        self._renders = True
        image = spaces.Box(0, 255, (*self._size, CHANNELS[frame]), np.uint8)
        proprioceptive = self._sensors_of(proprioception, self._reader(())).size
        self.observation_space = observation_space(image, proprioceptive + len(self._keypoints))
        self.action_space = action_space(self._model)
        self._labels = LABELS.get(domain_of(task), {})
        frames_per_second = round(1 / (self._env.control_timestep() * self._repeat))
        self.metadata = SuiteTask.metadata | {"render_fps": frames_per_second, "goal": GOALS.get(task, "")}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, dict]:
        """Start an episode, with rendering enabled."""
        super().reset(seed=seed, options=options)
        drawn = {name: int(self.np_random.integers(2**32)) for name in self._seeds}
        fixed = {name: value for name, value in self._seeds.items() if value is not None}
        seeds = drawn | fixed | _require_seeds(options or {})
        self._task.random.seed(seeds["dynamics_seed"])
        self._distractions.reset(seeds["visual_seed"])
        self._env.reset()
        self._keypoints.reset(seeds["visual_seed"])
        self._view.reset()
        if self._picture is not None:
            self._picture.reset()
        self._steps_left = EPISODE_STEPS
        self._renders = True
        return self._observe(), {}

    def step(self, action: Float[np.ndarray, " k"]) -> tuple[Observation, float, bool, bool, dict]:
        """Apply the action for `action_repeat` steps of the task, and observe the last state."""
        reward, terminated = 0.0, False
        with self._physics.check_invalid_state():
            for _ in range(min(self._repeat, self._steps_left)):
                reward += self._advance(action)
                terminated = self._task.get_termination(self._physics) is not None
                if terminated:
                    break
        self._steps_left -= self._repeat
        return self._observe(), reward, terminated, self._steps_left <= 0, {}

    def set_rendering(self, enabled: bool) -> None:
        """Whether the next steps render an image or return the last one again."""
        self._renders = enabled

    def render(self) -> UInt8[np.ndarray, "P Q 3"] | None:
        """The same view in more pixels."""
        if self.render_mode is None:
            return None
        if self._picture is None:
            scale = -(-PICTURE_SIDE // max(self._size))
            self._picture = self._open_view((scale * self._size[0], scale * self._size[1]), fast=False)
        self._distractions.apply(self._data)
        return self._picture.render(self._data)

    def scene_labels(self) -> list[tuple[str, float, float]]:
        """The parts of the robot and the target, where they are inside the picture."""
        reader = self._reader(tuple(Keypoint(part) for part in self._labels))
        places = reader(self._data).reshape(-1, 2)
        return [(name, *place) for name, place in zip(self._labels.values(), shares_of_picture(places), strict=True)]

    def segmentation(self) -> UInt8[np.ndarray, "H W"]:
        """The class of each pixel of the current image, as an index of `segment_names`."""
        self._distractions.apply(self._data)
        return self._view.segmentation(self._data)

    def simulator_state(self) -> Float[np.ndarray, " s"]:
        """Positions and velocities of all joints, and the state of the actuators."""
        return self._physics.get_state().astype(np.float32)

    def privileged_state(self) -> Float[np.ndarray, " s"]:
        """World positions of all body parts in metres; x is relative to the robot if the camera follows it."""
        positions = self._data.geom_xpos[self._parts]
        if self._model.cam_mode[self._camera] != 0:
            positions[:, 0] -= self._data.subtree_com[self._model.cam_bodyid[self._camera], 0]
        return positions.ravel().astype(np.float32)

    def keypoints(self, names: Sequence[str]) -> Float[np.ndarray, " n"]:
        """The coordinates of keypoints, see `control_suite.keypoints`."""
        return self._reader(parse_keypoints(names))(self._data)

    def sensors_with(self, options: Mapping[str, Any]) -> Float[np.ndarray, " n"]:
        """The sensors now if `proprioception` and `keypoints` were as in `options`; other options do not matter.

        Keypoints are those of this environment's camera, without noise: `keypoint_noise` must be 0.
        """
        if options.get("keypoint_noise", 0) != 0:
            raise ValueError(f"keypoint_noise must be 0 for the current sensors, not {options['keypoint_noise']!r}")
        reader = self._reader(parse_keypoints(options.get("keypoints", ())))
        return self._sensors_of(options.get("proprioception", False), reader)

    def keypoints_visible(self, names: Sequence[str]) -> bool:
        """Whether the centres of all parts that the names refer to are inside the image."""
        parts = tuple(Keypoint(part) for part in parts_of(parse_keypoints(names)))
        return bool((np.abs(self._reader(parts)(self._data)) <= 1).all())

    def randomize_state(self, rng: np.random.Generator) -> Observation:
        """Draw positions and speeds of all joints, which covers states that the task rarely visits."""
        randomize_joints(self._model, self._data, rng)
        self._renders = True
        return self._observe()

    def close(self) -> None:
        """Free the cameras and the simulator."""
        self._resources.close()

    def _open_view(self, size: tuple[int, int], *, fast: bool = True) -> View:
        view = View(self._model, size, self._camera, fast=fast, background=self._distractions.background)
        return self._resources.enter_context(contextlib.closing(view))

    def _reader(self, keypoints: tuple[Keypoint, ...]) -> KeypointReader:
        if keypoints not in self._readers:
            self._readers[keypoints] = KeypointReader(self._model, self._camera, self._size, keypoints)
        return self._readers[keypoints]

    def _observe(self) -> Observation:
        if self._renders:
            self._distractions.apply(self._data)
            image = self._view.render(self._data)
            self._image = image if self._frame == "rgb" else (image @ LUMA >> 8).astype(np.uint8)[..., None]
        sensors = self._sensors()
        return {"image": self._image} | ({"sensors": sensors} if sensors.size else {})

    def _sensors(self) -> Float[np.ndarray, " n"]:
        return self._sensors_of(self._proprioception, self._keypoints)

    def _sensors_of(self, proprioception: bool, keypoints: KeypointReader | NoisyKeypoints) -> Float[np.ndarray, " n"]:
        observed = self._task.get_observation(self._physics).values() if proprioception else []
        parts = [np.ravel(part) for part in observed]
        if len(keypoints):
            self._distractions.apply(self._data)
            parts.append(keypoints(self._data))
        return np.concatenate(parts, dtype=np.float32) if parts else np.zeros(0, np.float32)

    def _advance(self, action: Float[np.ndarray, " k"]) -> float:
        """One step of the task, as in dm_control but without its observations and checks."""
        self._task.before_step(action, self._physics)
        self._simulate()
        self._task.after_step(self._physics)
        self._distractions.advance()
        return self._reward()


def _require_seeds(seeds: dict[str, Any]) -> dict[str, Any]:
    """Refuse unknown names, and values that are not seeds."""
    for name, value in seeds.items():
        if name not in ("dynamics_seed", "visual_seed"):
            raise ValueError(f"options of reset are dynamics_seed and visual_seed, not {name!r}")
        if value is not None:
            require_count(name, value, least=0, most=LARGEST_SEED)
    return seeds
