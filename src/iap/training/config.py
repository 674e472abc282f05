"""The config of a training run: everything that decides its numbers, in one frozen object and one JSON file."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import gymnasium

from iap._observations import sensor_count
from iap._validation import require_count
from iap.distillation.config import Distillation, ESPretraining
from iap.distillation.dagger.config import DAgger
from iap.distillation.dagger.encoder_config import EncoderPretraining
from iap.envs.core import EnvConfig, action_count
from iap.envs.first_step import check_first_step
from iap.envs.protocols import Keypoints, env_name, find_protocol, keypoint_size
from iap.envs.protocols import Symmetry as HasSymmetry
from iap.evolution import STRATEGIES, OpenES, Strategy
from iap.policies import PolicyConfig, Symmetry
from iap.policies.format.codec import Codec
from iap.policies.format.kinds import policy_kinds
from iap.rollouts import Job
from iap.rollouts.job import image_format_of
from iap.training.sac.config import SAC
from iap.training.upgrades import VERSION, upgrade_config

C = TypeVar("C")  # the config of a run


@dataclass(frozen=True)
class SigmaMultipliers:
    """Multipliers of σ for the parts of a policy: one σ for all of θ is wrong. A part at 0 is not changed."""

    encoder: float = 0.25
    controller: float = 1.0
    low_level: float = 0.1

    def __post_init__(self) -> None:
        for part in ("encoder", "controller", "low_level"):
            if not getattr(self, part) >= 0:
                raise ValueError(f"sigma_multipliers.{part} must be 0 or more, not {getattr(self, part)}")


@dataclass(frozen=True)
class TrainConfig:
    """The config of a training run.

    Attributes:
        env: the environment and its options.
        policy: the policy; its image_shape, sensors and actions are taken from the environment.
        strategy: the evolution strategy.
        sigma_multipliers: of each part of the policy.
        iterations: number of generations; 0 leaves a policy as it was pretrained.
        episodes: episodes of each candidate in a generation, on seeds that all candidates share.
        max_steps: at which an episode is cut; None for the environment's own limit.
        random_search: number of random policies that are tried first; training starts from the best. 0 for none.
        pretraining: how the policy is pretrained from privileged information; None for not at all.
        warm_start: a policy of the same shapes that training starts from: a file, a run's folder, or zoo:NAME.
        freeze_normaliser: whether the normaliser stays that of the policy that training starts from; else its
            statistics are updated at every iteration.
        evaluate_every: iterations between two evaluations on validation seeds.
        evaluate_episodes: episodes of each of them.
        seed: of everything random.
    """

    env: EnvConfig
    policy: PolicyConfig
    strategy: Strategy = OpenES()  # noqa: RUF009
    sigma_multipliers: SigmaMultipliers = SigmaMultipliers()
    iterations: int = 100
    episodes: int = 2
    max_steps: int | None = None
    random_search: int = 0
    pretraining: ESPretraining | Distillation | DAgger | None = None
    warm_start: str | None = None
    freeze_normaliser: bool = False
    evaluate_every: int = 10
    evaluate_episodes: int = 16
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("episodes", "evaluate_every", "evaluate_episodes"):
            require_count(name, getattr(self, name))
        for name in ("iterations", "random_search", "seed"):
            require_count(name, getattr(self, name), least=0)
        if self.max_steps is not None:
            require_count("max_steps", self.max_steps)
        starts = [self.random_search > 0, self.pretraining is not None, self.warm_start is not None]
        if sum(starts) > 1:
            raise ValueError("random_search, pretraining and warm_start exclude each other: give at most one")
        if self.iterations == 0 and self.pretraining is None:
            raise ValueError("iterations must be at least 1 without pretraining, not 0")
        if self.freeze_normaliser and not any(starts):
            raise ValueError("freeze_normaliser must be False without random_search, pretraining or warm_start")
        if self.pretraining is not None:
            self.pretraining.check(self.policy)

    @property
    def job(self) -> Job:
        """What a pool of workers needs to know."""
        return Job(self.env, self.policy, self.max_steps)


def config_kinds() -> dict[str, type]:
    """All dataclasses of a config by name, with what is registered by now."""
    return {
        **policy_kinds(),
        **STRATEGIES,
        "env": EnvConfig,
        "sigma-multipliers": SigmaMultipliers,
        "es-pretraining": ESPretraining,
        "distillation": Distillation,
        "dagger": DAgger,
        "encoder-pretraining": EncoderPretraining,
        "train": TrainConfig,
        "sac": SAC,
    }


CODEC = Codec(config_kinds)


def config_to_json(config: TrainConfig | SAC) -> dict[str, Any]:
    """The config as JSON, with the version of the format."""
    return {"version": VERSION} | CODEC.write(config)


def config_from_json(data: Any, kind: type[C] = TrainConfig) -> C:
    """The inverse, for any version so far; any defect is a ValueError that names it."""
    if not isinstance(data, Mapping):
        raise ValueError(f"config must be a JSON object, not {type(data).__name__}")
    upgraded = upgrade_config(dict(data))
    del upgraded["version"]
    return CODEC.read("config", upgraded, (kind,))


def fit_to_env(config: TrainConfig, make: Callable[[], gymnasium.Env] | None = None) -> TrainConfig:
    """The config with the policy's shapes, format of images and symmetry as the environment has them.

    An environment that is not of this package makes one step, so that errors in it come before anything is written.
    """
    env = (make or config.env.make)()
    try:
        check_first_step(env)
        spaces: Any = env.observation_space
        policy = replace(
            config.policy,
            image_shape=tuple(map(int, spaces["image"].shape)),
            sensors=sensor_count(spaces),
            actions=action_count(env.action_space),
            symmetry=None if config.policy.symmetry is None else _symmetry_of(env, config.policy.symmetry),
            image_format=image_format_of(env),
        )
        if isinstance(config.pretraining, Distillation):
            _check_keypoints(env, policy, config.pretraining)
    finally:
        env.close()
    return replace(config, policy=policy)


def _symmetry_of(env: gymnasium.Env, wanted: Symmetry) -> Symmetry:
    """The environment's symmetry, unless the config has its own."""
    if wanted != Symmetry():
        return wanted
    offered = find_protocol(env, HasSymmetry)
    reflection = None if offered is None else offered.symmetry
    if reflection is None:
        raise ValueError(f"{env_name(env)} does not define a symmetry: give policy.symmetry")
    parts: dict[str, Any] = {name: tuple(values) for name, values in reflection.items()}
    return Symmetry(**parts)


def _check_keypoints(env: gymnasium.Env, policy: PolicyConfig, pretraining: Distillation) -> None:
    """Refuse a command that cannot hold the coordinates of all keypoints."""
    assert policy.hierarchy is not None
    if find_protocol(env, Keypoints) is None:
        raise ValueError(f"{env_name(env)} offers no keypoints, which distillation needs (see iap.envs.protocols)")
    env.reset(seed=0)
    size = keypoint_size(env, pretraining.keypoints)
    if policy.hierarchy.latent_size != size:
        raise ValueError(
            f"hierarchy.latent_size must be {size}, the coordinates of {', '.join(pretraining.keypoints)}, not "
            f"{policy.hierarchy.latent_size}"
        )
