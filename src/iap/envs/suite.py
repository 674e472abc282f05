"""`iap/DOMAIN-TASK-v0`: the tasks of dm_control's suite, seen through a camera and nothing else."""

import contextlib
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces
from jaxtyping import Float, UInt8

from iap.attention.arrays import require_count
from iap.envs.camera import Camera, load_mujoco
from iap.envs.frames import CAMERA, LONGEST_SIDE, _loaded
from iap.envs.observations import Observation, observation_space, require_size, rgb_space

EPISODE_STEPS = 1000  # of the task, each with a reward in [0, 1], before repeating actions
USUAL_REPEATS = {"ball_in_cup": 4, "cartpole": 8, "cheetah": 4, "finger": 2, "reacher": 4, "walker": 2}
REPEATS_ELSEWHERE = 2
PICTURE_SIDE = 400  # at least, of the longer side


class SuiteTask(gymnasium.Env):
    """A task of the suite from pixels.

    States and rewards are exactly those of dm_control; the images leave out shadows and reflections for speed.
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"]}  # noqa: RUF012

    def __init__(
        self,
        task: str,
        size: Sequence[int] = (100, 100),
        action_repeat: int | None = None,
        camera: int = CAMERA,
        render_mode: str | None = None,
    ) -> None:
        """The named task.

        Args:
            task: "domain-task", such as "cheetah-run".
            size: (height, width) of the image.
            action_repeat: steps of the task an action is held for, its rewards summed; by default what is usual.
            camera: which of the model's cameras.
            render_mode: "rgb_array" for larger pictures from `render`.
        """
        self._size = require_size("size", size, most=LONGEST_SIDE)
        usual = USUAL_REPEATS.get(task.partition("-")[0], REPEATS_ELSEWHERE)
        self._repeat = require_count("action_repeat", usual if action_repeat is None else action_repeat)
        self.render_mode = render_mode
        self._resources = contextlib.ExitStack()
        self._env = self._resources.enter_context(_loaded(task, seed=0))
        self._physics, self._task = self._env.physics, self._env.task
        self._model, self._data = self._physics.model.ptr, self._physics.data.ptr
        self._number = require_count("camera", camera, least=0, most=self._model.ncam - 1)
        self._camera = self._open_camera(self._size)
        self._picture: Camera | None = None
        substeps = round(self._env.control_timestep() / self._physics.timestep())
        self._simulate = _simulation(self._model, self._data, substeps)
        self._looking = True
        self.observation_space = observation_space(rgb_space(self._size))
        self.action_space = _action_space(self._model)
        self.metadata = SuiteTask.metadata | {"render_fps": round(1 / (self._env.control_timestep() * self._repeat))}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Observation, dict]:
        """Start an episode, with an image whatever `look` said before."""
        super().reset(seed=seed, options=options)
        self._task.random.seed(self.np_random.integers(2**32))
        self._env.reset()
        self._camera.upload_terrain()
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
            self._picture = self._open_camera((scale * self._size[0], scale * self._size[1]), fast=False)
        self._picture.upload_terrain()
        return self._picture.look(self._data)

    def true_state(self) -> Float[np.ndarray, " s"]:
        """Positions and velocities of all joints, and the state of the actuators."""
        return self._physics.get_state().astype(np.float32)

    def close(self) -> None:
        """Free the cameras and the simulator."""
        self._resources.close()

    def _open_camera(self, size: tuple[int, int], *, fast: bool = True) -> Camera:
        return self._resources.enter_context(contextlib.closing(Camera(self._model, size, self._number, fast=fast)))

    def _observe(self) -> Observation:
        if self._looking:
            self._image = self._camera.look(self._data)
        return {"image": self._image, "sensors": np.zeros(0, np.float32)}

    def _advance(self, action: Float[np.ndarray, " k"]) -> float:
        """One step of the task, as dm_control makes it but without its observations and checks."""
        self._task.before_step(action, self._physics)
        self._simulate()
        self._task.after_step(self._physics)
        return float(self._task.get_reward(self._physics))


def _action_space(model: Any) -> spaces.Box:
    low, high = model.actuator_ctrlrange.astype(np.float32).T
    limited = model.actuator_ctrllimited.astype(bool)
    return spaces.Box(np.where(limited, low, -np.inf), np.where(limited, high, np.inf), dtype=np.float32)


def _simulation(model: Any, data: Any, substeps: int) -> Callable[[], None]:
    """How to simulate one step of the task; what depends on positions and velocities is up to date afterwards."""
    mujoco = load_mujoco()

    if model.opt.integrator == mujoco.mjtIntegrator.mjINT_RK4:

        def simulate() -> None:
            mujoco.mj_step(model, data, substeps)
            mujoco.mj_step1(model, data)
    else:

        def simulate() -> None:
            mujoco.mj_step2(model, data)  # the first half was done at the end of the step before
            if substeps > 1:
                mujoco.mj_step(model, data, substeps - 1)
            mujoco.mj_step1(model, data)

    return simulate
