"""`iap/DOMAIN-TASK-v0`: the tasks of dm_control's suite, seen through a camera, with distractions if wanted."""

import contextlib
from collections.abc import Sequence
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces
from jaxtyping import Float, UInt8

from iap.attention.arrays import require_count
from iap.envs.control_suite.distractions.combined import KINDS, distractions_of
from iap.envs.control_suite.distractions.sources import PROCEDURAL, Split
from iap.envs.control_suite.frames import CAMERA, LONGEST_SIDE
from iap.envs.control_suite.keypoints import Telling, count_told, place_named, require_error, scatter_joints
from iap.envs.control_suite.loading import loaded
from iap.envs.control_suite.rewards import reward_of
from iap.envs.control_suite.stepping import action_space, stepper
from iap.envs.control_suite.tasks import domain_of, usual_repeat
from iap.envs.control_suite.view import SEGMENTS, View
from iap.envs.wrappers import Observation, observation_space, require_size

EPISODE_STEPS = 1000  # of the task, each with a reward in [0, 1], before repeating actions
PICTURE_SIDE = 400  # at least, of the longer side
PLANE = 0  # MuJoCo's geom type of a floor
LARGEST_SEED = 2**32 - 1
CHANNELS = {"rgb": 3, "grey": 1}
TELLING = 1  # the stream of what is told wrongly
LUMA = np.array([77, 150, 29], np.uint16)  # of 256: how bright red, green and blue are


class SuiteTask(gymnasium.Env):
    """A task of the suite from pixels.

    States are exactly those of dm_control, rewards up to rounding; images leave out shadows and reflections for speed.
    An episode's motion comes from its dynamics seed and its look from its visual seed. `reset(seed=…)` gives both;
    `reset(options={"visual_seed": …, "dynamics_seed": …})` gives either for this episode.
    """

    segment_names = SEGMENTS
    metadata: dict[str, Any] = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    def __init__(
        self,
        task: str,
        size: Sequence[int] = (100, 100),
        action_repeat: int | None = None,
        camera: int = CAMERA,
        frame: Literal["rgb", "grey"] = "rgb",
        proprioception: bool = False,
        told: Sequence[str] = (),
        keypoint_noise: float = 0.0,
        difficulty: str | float | None = None,
        distractions: str | Sequence[str] = KINDS,
        dynamic: bool = False,
        backgrounds: str = PROCEDURAL,
        split: Split = "train",
        visual_seed: int | None = None,
        dynamics_seed: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        """The named task.

        Args:
            task: "domain-task", such as "cheetah-run".
            size: (height, width) of the image.
            action_repeat: steps of the task an action is held for, its rewards summed; by default what is usual.
            camera: which of the model's cameras.
            frame: "rgb" for three channels, "grey" for one.
            proprioception: whether the sensors hold what dm_control observes; else there are none.
            told: parts (geoms) whose places the sensors hold, as `places` has them: what perfect eyes would tell, to
                learn what to do without looking.
            keypoint_noise: the standard deviation of how wrong each of these numbers is, throughout an episode, and once
                more at every step.
            difficulty: of the distractions: "easy", "medium", "hard", or a scale in 0..1; None has no distractions.
            distractions: which there are, of "background", "camera" and "colour".
            dynamic: whether they change within an episode.
            backgrounds: "procedural", or a path: a folder of videos or images, DAVIS-2017, or a video file.
            split: "train", or "held-out" for backgrounds that are never in "train".
            visual_seed: of the look of every episode; by default each has its own.
            dynamics_seed: of the motion of every episode; by default each has its own.
            render_mode: "rgb_array" for larger pictures from `render`.
        """
        self._size = require_size("size", size, most=LONGEST_SIDE)
        self._repeat = require_count("action_repeat", usual_repeat(task) if action_repeat is None else action_repeat)
        if frame not in CHANNELS:
            raise ValueError(f"frame must be one of {', '.join(map(repr, CHANNELS))}, not {frame!r}")
        self._frame, self._proprioception = frame, proprioception
        self._told, self._error = (told,) if isinstance(told, str) else tuple(told), require_error(keypoint_noise)
        self._seeds = {"dynamics_seed": dynamics_seed, "visual_seed": visual_seed}
        _require_seeds(self._seeds)
        self.render_mode = render_mode
        self._resources = contextlib.ExitStack()
        self._env = self._resources.enter_context(loaded(task, seed=0))
        self._physics, self._task = self._env.physics, self._env.task
        self._model, self._data = self._physics.model.ptr, self._physics.data.ptr
        self._number = require_count("camera", camera, least=0, most=self._model.ncam - 1)
        self._distractions = distractions_of(
            self._model,
            domain_of(task),
            self._number,
            self._size,
            kinds=distractions,
            difficulty=difficulty,
            dynamic=dynamic,
            backgrounds=backgrounds,
            split=split,
        )
        self._view = self._open_view(self._size)
        self._picture: View | None = None
        substeps = round(self._env.control_timestep() / self._physics.timestep())
        self._telling = Telling(self._model, self._number, self._size, self._told)
        self._begin_telling(0)
        self._simulate = stepper(self._model, self._data, substeps)
        self._reward = reward_of(task, self._task, self._physics)
        self._parts = np.flatnonzero(self._model.geom_type != PLANE)
        self._looking = True
        image = spaces.Box(0, 255, (*self._size, CHANNELS[frame]), np.uint8)
        self.observation_space = observation_space(image, self._felt().size + count_told(self._told))
        self.action_space = action_space(self._model)
        self.metadata = SuiteTask.metadata | {"render_fps": round(1 / (self._env.control_timestep() * self._repeat))}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, dict]:
        """Start an episode, with an image whatever `look` said before."""
        super().reset(seed=seed, options=options)
        drawn = {name: int(self.np_random.integers(2**32)) for name in self._seeds}
        fixed = {name: value for name, value in self._seeds.items() if value is not None}
        seeds = drawn | fixed | _require_seeds(options or {})
        self._task.random.seed(seeds["dynamics_seed"])
        self._distractions.begin(seeds["visual_seed"])
        self._env.reset()
        self._begin_telling(seeds["visual_seed"])
        self._view.begin()
        if self._picture is not None:
            self._picture.begin()
        self._left = EPISODE_STEPS
        self._looking = True
        return self._observe(), {}

    def step(self, action: Float[np.ndarray, " k"]) -> tuple[Observation, float, bool, bool, dict]:
        """Hold the action for some steps of the task, and look at the end."""
        reward, terminated = 0.0, False
        with self._physics.check_invalid_state():
            for _ in range(min(self._repeat, self._left)):
                reward += self._advance(action)
                terminated = self._task.get_termination(self._physics) is not None
                if terminated:
                    break
        self._left -= self._repeat
        return self._observe(), reward, terminated, self._left <= 0, {}

    def look(self, wanted: bool) -> None:
        """Whether the next steps shall draw an image, or may repeat the last one."""
        self._looking = wanted

    def render(self) -> UInt8[np.ndarray, "P Q 3"] | None:
        """The same view in more pixels."""
        if self.render_mode is None:
            return None
        if self._picture is None:
            scale = -(-PICTURE_SIDE // max(self._size))
            self._picture = self._open_view((scale * self._size[0], scale * self._size[1]), fast=False)
        self._distractions.show(self._data)
        return self._picture.look(self._data)

    def segmentation(self) -> UInt8[np.ndarray, "H W"]:
        """What each pixel of the image shows now, as an index of `segment_names`."""
        self._distractions.show(self._data)
        return self._view.masks(self._data)

    def privileged_state(self) -> Float[np.ndarray, " s"]:
        """Positions and velocities of all joints, and the state of the actuators."""
        return self._physics.get_state().astype(np.float32)

    def landmarks(self) -> Float[np.ndarray, " s"]:
        """Where the parts of the model are, in m; along x from where a camera is that follows the robot."""
        places = self._data.geom_xpos[self._parts]
        if self._model.cam_mode[self._number] != 0:
            places[:, 0] -= self._data.subtree_com[self._model.cam_bodyid[self._number], 0]
        return places.ravel().astype(np.float32)

    def places(self, parts: Sequence[str]) -> Float[np.ndarray, " n"]:
        """Where the middle of each of these parts (geoms) is in the image, (row, column), whose edges are at ±1.

        "A from B" is how far A is from B. "row of A" or "column of A" is one of the two numbers; "x of A", "y of A" and
        "z of A" are where A is in the room, in m.
        """
        return Telling(self._model, self._number, self._size, parts)(self._data)

    def keypoints_visible(self, parts: Sequence[str]) -> bool:
        """Whether the middles of all parts that `places` would be told of are in the image."""
        named = [place_named(name) for name in parts]
        whole = {part for place in named for part in (place.part, place.origin) if part is not None}
        return bool((np.abs(self.places(sorted(whole))) <= 1).all())

    def randomize_state(self, rng: np.random.Generator) -> Observation:
        """Put the robot into any pose, moving anyhow, and look: eyes can be taught what the task seldom shows."""
        scatter_joints(self._model, self._data, rng)
        self._looking = True
        return self._observe()

    def close(self) -> None:
        """Free the cameras and the simulator."""
        self._resources.close()

    def _open_view(self, size: tuple[int, int], *, fast: bool = True) -> View:
        view = View(self._model, size, self._number, fast=fast, background=self._distractions.background)
        return self._resources.enter_context(contextlib.closing(view))

    def _observe(self) -> Observation:
        if self._looking:
            self._distractions.show(self._data)
            image = self._view.look(self._data)
            self._image = image if self._frame == "rgb" else (image @ LUMA >> 8).astype(np.uint8)[..., None]
        return {"image": self._image, "sensors": self._sensors()}

    def _sensors(self) -> Float[np.ndarray, " n"]:
        return np.concatenate([self._felt(), self._tell()], dtype=np.float32)

    def _felt(self) -> Float[np.ndarray, " n"]:
        observed = self._task.get_observation(self._physics).values() if self._proprioception else []
        return np.concatenate([np.zeros(0), *map(np.ravel, observed)])

    def _begin_telling(self, seed: int) -> None:
        """How wrong will be what is told in the episode."""
        self._rng = np.random.default_rng([seed, TELLING])
        self._wrong = self._error * self._rng.standard_normal(count_told(self._told))

    def _tell(self) -> Float[np.ndarray, " n"]:
        if not self._told:
            return np.zeros(0)
        self._distractions.show(self._data)
        return self._telling(self._data) + self._wrong + self._error * self._rng.standard_normal(len(self._wrong))

    def _advance(self, action: Float[np.ndarray, " k"]) -> float:
        """One step of the task, as dm_control makes it but without its observations and checks."""
        self._task.before_step(action, self._physics)
        self._simulate()
        self._task.after_step(self._physics)
        self._distractions.advance()
        return self._reward()


def _require_seeds(seeds: dict[str, Any]) -> dict[str, Any]:
    """Refuse what is no seed, by name."""
    for name, value in seeds.items():
        if name not in ("dynamics_seed", "visual_seed"):
            raise ValueError(f"options of reset are dynamics_seed and visual_seed, not {name!r}")
        if value is not None:
            require_count(name, value, least=0, most=LARGEST_SEED)
    return seeds
