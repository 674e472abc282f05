"""What a pool is given: an environment by name and a policy but for θ; and the one who runs its episodes."""

import math
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self, get_args

import gymnasium
import numpy as np
from jaxtyping import Float

from iap.attention.arrays import require_count
from iap.envs.core import action_count, make_env
from iap.policies import Actor, Moments, Normaliser, PolicyConfig, build_policy, init, unflatten
from iap.rollouts.episode import Episode, NotFiniteError, one_thread, run_episode
from iap.rollouts.replayed_frames import Frames, run_with_other_frames


@dataclass(frozen=True)
class EnvConfig:
    """An environment by name: the id and options of `make_env`, the options as pairs."""

    id: str
    kwargs: tuple[tuple[str, Any], ...] = ()

    @classmethod
    def of(cls, id: str, **kwargs: Any) -> Self:
        """The same from keyword arguments, whose order does not matter."""
        return cls(id, tuple(sorted(kwargs.items())))

    def make(self) -> gymnasium.Env:
        """The environment itself."""
        return make_env(self.id, **dict(self.kwargs))


@dataclass(frozen=True)
class Job:
    """What all episodes of a pool have in common.

    Attributes:
        env: where to act.
        policy: who acts, but for θ.
        max_steps: when an episode is cut off; None leaves that to the environment.
        frames: what the policy is shown: its own frames, or as a control those of another moment.
    """

    env: EnvConfig
    policy: PolicyConfig
    max_steps: int | None = None
    frames: Frames = "own"

    def __post_init__(self) -> None:
        if self.frames not in get_args(Frames):
            raise ValueError(f"frames must be one of {', '.join(get_args(Frames))}, not {self.frames!r}")
        if self.max_steps is not None:
            require_count("max_steps", self.max_steps)


class Runner:
    """One environment, built once, and the episodes of any θ in it."""

    def __init__(self, job: Job) -> None:
        self.job = job
        self._built: tuple[np.ndarray, Normaliser | None, Actor] | None = None
        self.env = job.env.make()
        try:
            _check_fit(job.policy, self.env)
            self._compile()
        except BaseException:
            self.close()
            raise

    @one_thread
    def run(self, theta: Float[np.ndarray, " p"], seed: int, normaliser: Normaliser | None = None) -> Episode:
        """One episode, which depends on nothing but the job and these arguments."""
        try:
            if not np.isfinite(theta).all():
                raise NotFiniteError("theta holds NaN or infinity")
            policy = self._policy(theta, normaliser)
            if self.job.frames == "own":
                return run_episode(self.env, policy, seed, self.job.max_steps)
            return run_with_other_frames(self.env, policy, seed, self.job.frames, self.job.max_steps)
        except NotFiniteError as error:
            return failed_episode(self.job, seed, str(error))

    def close(self) -> None:
        """Let go of the environment."""
        self.env.close()

    def _policy(self, theta: Float[np.ndarray, " p"], normaliser: Normaliser | None) -> Actor:
        """The policy of this θ: that of the last episode, which holds no memory of it, if θ is the same."""
        if self._built is not None:
            last_theta, last_normaliser, policy = self._built
            if normaliser is last_normaliser and np.array_equal(theta, last_theta):
                return policy
        policy = build_policy(self.job.policy, unflatten(self.job.policy, theta), normaliser)
        self._built = theta.copy(), normaliser, policy
        return policy

    def _compile(self) -> None:
        """Act once, on nothing: what has to be compiled for it should not take an episode's time."""
        spaces: Any = self.env.observation_space
        policy = build_policy(self.job.policy, init(self.job.policy, 0))
        policy.act(policy.begin(), {name: np.zeros(space.shape, space.dtype) for name, space in spaces.items()})


def failed_episode(job: Job, seed: int, error: str) -> Episode:
    """An episode that came to nothing."""
    return Episode(seed, math.nan, 0, Moments.none(job.policy.inputs_size), error)


def explain(error: Exception) -> str:
    """An exception in a line: what it is, what it says, and where it was raised."""
    said = f"{type(error).__name__}: {error}"
    frames = traceback.extract_tb(error.__traceback__)
    return (
        f"{said} (in {frames[-1].name}, {Path(frames[-1].filename).name} line {frames[-1].lineno})" if frames else said
    )


def _check_fit(policy: PolicyConfig, env: gymnasium.Env) -> None:
    """Refuse a policy that was made for another environment."""
    spaces: Any = env.observation_space
    offered = (spaces["image"].shape, spaces["sensors"].shape[0], action_count(env.action_space))
    wanted = (policy.image_shape, policy.sensors, policy.actions)
    if wanted != offered:
        raise ValueError(f"policy is for (image, sensors, actions) {wanted}, but the environment has {offered}")
