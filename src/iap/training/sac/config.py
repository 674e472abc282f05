"""The config of soft actor-critic (SAC): the environment, the networks and the optimisation."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import gymnasium
from gymnasium import spaces

from iap._observations import sensor_count
from iap._validation import require_count, require_flags, require_positive
from iap.envs.core import EnvConfig, action_count
from iap.envs.protocols import env_name
from iap.policies import MLP, Blind, PolicyConfig
from iap.rollouts import Job


@dataclass(frozen=True)
class SAC:
    """Soft actor-critic (Haarnoja et al. 2018) with layer-normalised critics and automatic entropy.

    The actor is a blind policy: tanh units on the sensors. Decisions are steps of the environment, which may repeat an
    action for several steps of the simulator.

    Attributes:
        env: the environment; its sensors should determine its state.
        hidden: the units of each hidden layer, of the actor and of both critics.
        iterations: number of iterations, each of whole episodes.
        decisions: decisions of an iteration, rounded up to whole episodes.
        random_decisions: decisions with uniformly random actions before the first update.
        batch: transitions of an update; there is one update per decision.
        learning_rate: Adam's step size.
        discount: of the rewards per decision.
        target_rate: the share by which the target critics follow the critics at each update.
        reward_scale: factor of the rewards in training.
        normalise: whether sensors are normalised by running statistics, which the policy then contains.
        evaluate_every: iterations between two evaluations on validation seeds, and between two checkpoints.
        evaluate_episodes: episodes of each of them.
        seed: of everything random.
    """

    env: EnvConfig
    hidden: tuple[int, ...] = (128, 128)
    iterations: int = 60
    decisions: int = 1_000
    random_decisions: int = 2_000
    batch: int = 128
    learning_rate: float = 5e-4
    discount: float = 0.99
    target_rate: float = 0.01
    reward_scale: float = 1.0
    normalise: bool = False
    evaluate_every: int = 10
    evaluate_episodes: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        MLP(self.hidden)
        for name in ("iterations", "decisions", "random_decisions", "batch", "evaluate_every", "evaluate_episodes"):
            require_count(name, getattr(self, name))
        require_count("seed", self.seed, least=0)
        for name in ("learning_rate", "reward_scale"):
            require_positive(name, getattr(self, name))
        require_flags(self, "normalise")
        if not 0 <= self.discount < 1:
            raise ValueError(f"discount must be at least 0 and below 1, not {self.discount!r}")
        if not 0 < self.target_rate <= 1:
            raise ValueError(f"target_rate must be above 0 and at most 1, not {self.target_rate!r}")

    def job(self, policy: PolicyConfig) -> Job:
        """What evaluation runs: the actor in the environment."""
        return Job(self.env, policy)


def actor_config(config: SAC, make: Callable[[], gymnasium.Env] | None = None) -> PolicyConfig:
    """The actor as a policy for the environment, which must have sensors and continuous actions."""
    env = (make or config.env.make)()
    try:
        observed: Any = env.observation_space
        if not isinstance(env.action_space, spaces.Box):
            raise ValueError(f"SAC needs continuous actions (Box), but {env_name(env)} has {env.action_space}")
        sensors = sensor_count(observed)
        if sensors == 0:
            raise ValueError(f"SAC needs sensors, but {env_name(env)} has none: give an option such as proprioception")
        image: Any = tuple(map(int, observed["image"].shape))
        actor = PolicyConfig(
            image, sensors, action_count(env.action_space), encoder=Blind(), normalise=config.normalise
        )
    finally:
        env.close()
    return replace(actor, controller=MLP(config.hidden))
