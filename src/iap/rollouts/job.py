"""A job, which all episodes of a pool share, and the runner that executes its episodes in one process."""

import math
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

import gymnasium
import numpy as np
from jaxtyping import Float

from iap._observations import sensor_count
from iap._validation import NotFiniteError, require_count
from iap.envs.core import EnvConfig, action_count
from iap.policies import Moments, Normaliser, Policy, PolicyConfig, init, unflatten
from iap.policies.image_format import ImageFormat
from iap.rollouts.episode import Actor, Episode, one_thread, run_episode
from iap.rollouts.random_actions import RandomActions
from iap.rollouts.replayed_frames import Frames, run_with_replaced_frames


@dataclass(frozen=True)
class Job:
    """What all episodes of a pool have in common.

    Attributes:
        env: the environment.
        policy: the policy without its parameters.
        max_steps: maximum number of steps; None leaves the end to the environment.
        frames: the images that the policy receives: its own, or for an ablation those of another time.
        random_actions: whether actions are random, as a baseline.
    """

    env: EnvConfig
    policy: PolicyConfig
    max_steps: int | None = None
    frames: Frames = "own"
    random_actions: bool = False

    def __post_init__(self) -> None:
        if self.frames not in get_args(Frames):
            raise ValueError(f"frames must be one of {', '.join(get_args(Frames))}, not {self.frames!r}")
        if self.max_steps is not None:
            require_count("max_steps", self.max_steps)

    def make_runner(self) -> "Runner":
        """What executes the episodes in one process."""
        return Runner(self)


class Runner:
    """Builds the environment of a job once, and runs episodes of any θ in it."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._last: tuple[np.ndarray, Normaliser | None, Actor] | None = None
        self.env = job.env.make()
        try:
            _check_shapes(job.policy, self.env)
            self._compile()
        except BaseException:
            self.close()
            raise

    @one_thread
    def run(self, theta: Float[np.ndarray, " p"], seed: int, normaliser: Normaliser | None = None) -> Episode:
        """Run one episode. Its result depends only on the job and these arguments."""
        try:
            if not np.isfinite(theta).all():
                raise NotFiniteError("theta holds NaN or infinity")
            if self.job.random_actions:
                return run_episode(self.env, RandomActions(self.job.policy.actions), seed, self.job.max_steps)
            policy = self._policy(theta, normaliser)
            return self.run_policy(policy, seed)
        except NotFiniteError as error:
            return failed_episode(self.job, seed, str(error))

    def run_policy(self, policy: Actor, seed: int) -> Episode:
        """Run one episode of a policy."""
        if self.job.frames == "own":
            return run_episode(self.env, policy, seed, self.job.max_steps)
        return run_with_replaced_frames(self.env, policy, seed, self.job.frames, self.job.max_steps)

    def close(self) -> None:
        """Close the environment."""
        self.env.close()

    def _policy(self, theta: Float[np.ndarray, " p"], normaliser: Normaliser | None) -> Actor:
        """Return the policy of this θ; that of the last episode if θ is the same, as policies hold no state."""
        if self._last is not None:
            last_theta, last_normaliser, policy = self._last
            if normaliser is last_normaliser and np.array_equal(theta, last_theta):
                return policy
        policy = Policy(self.job.policy, unflatten(self.job.policy, theta), normaliser)
        self._last = theta.copy(), normaliser, policy
        return policy

    def _compile(self) -> None:
        """Act once on zeros, so that compilation does not count towards the time limit of an episode."""
        spaces: Any = self.env.observation_space
        policy = Policy(self.job.policy, init(self.job.policy, 0))
        policy.act(policy.reset(), {name: np.zeros(space.shape, space.dtype) for name, space in spaces.items()})


def failed_episode(job: Job, seed: int, error: str, trace: str = "") -> Episode:
    """Return the result of an episode that failed."""
    return Episode(seed, math.nan, 0, Moments.none(job.policy.inputs_size), error, trace)


def describe_error(error: Exception) -> str:
    """Return an exception as one line: its type, its message, and where it was raised."""
    message = f"{type(error).__name__}: {error}"
    frames = traceback.extract_tb(error.__traceback__)
    if not frames:
        return message
    return f"{message} (in {frames[-1].name}, {Path(frames[-1].filename).name} line {frames[-1].lineno})"


def format_error(error: Exception) -> str:
    """Return the traceback of an exception as text."""
    return "".join(traceback.format_exception(error))


def image_format_of(env: gymnasium.Env) -> ImageFormat:
    """The format of an environment's images; values with a unit, such as depth in metres, are not scaled."""
    spaces: Any = env.observation_space
    image = spaces["image"]
    physical = "image_unit" in env.metadata
    return ImageFormat.of(image.dtype, image.low.min().item(), image.high.max().item(), physical=physical)


def _check_shapes(policy: PolicyConfig, env: gymnasium.Env) -> None:
    """Raise if the policy was made for another environment."""
    spaces: Any = env.observation_space
    offered = (spaces["image"].shape, sensor_count(spaces), action_count(env.action_space))
    wanted = (policy.image_shape, policy.sensors, policy.actions)
    if wanted != offered:
        raise ValueError(f"policy is for (image, sensors, actions) {wanted}, but the environment has {offered}")
    if policy.image_format is not None and policy.encoder.uses_image:
        format_ = image_format_of(env)
        if format_ != policy.image_format:
            raise ValueError(f"policy is for images of {policy.image_format}, but the environment's are {format_}")
