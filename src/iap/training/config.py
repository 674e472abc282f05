"""What a training run is: everything that decides its numbers, in one frozen object and one JSON file."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import gymnasium

from iap.attention.arrays import require_count
from iap.envs.control_suite.keypoints import count_told
from iap.envs.core import action_count, make_env
from iap.evolution import STRATEGIES, OpenES, Strategy
from iap.policies.codec import Codec
from iap.policies.specs import CNN, KINDS, LSTM, MLP, Blind, Linear, MultiHeadRank, PolicyConfig, Symmetry
from iap.rollouts import EnvConfig, Job

# Episodes of training, of held-out checks during it, and of `iap eval` never share a seed.
TRAINING_SEEDS = 1 << 30
HELD_OUT_SEEDS = 1 << 29


@dataclass(frozen=True)
class SigmaMultipliers:
    """How much of σ each part of a policy is perturbed with: one σ for all of θ is wrong. A part at 0 stays."""

    encoder: float = 0.25
    controller: float = 1.0
    low: float = 0.1

    def __post_init__(self) -> None:
        for part in ("encoder", "controller", "low"):
            if not getattr(self, part) >= 0:
                raise ValueError(f"scales.{part} must be 0 or more, not {getattr(self, part)}")


FEWEST_EPISODES = 4  # to learn from, and to be judged by
MOST_LESSONS = 90  # of an episode; it is looked at for hardly more steps


@dataclass(frozen=True)
class ESPretraining:
    """How eyes are taught where things are before evolution learns what to do about it (`experiments/teaching.py`).

    Attributes:
        lessons: how many states they look at.
        samples_per_episode: how many of them at most are of the same episode, which may all have much in common.
        draws: how many random eyes are tried.
        iterations: for how many generations the best of them evolve.
        population: how many there are in a generation.
        sigma: how much they differ.
    """

    lessons: int = 800
    samples_per_episode: int = 4
    draws: int = 60
    iterations: int = 60
    population: int = 20
    sigma: float = 0.1

    def __post_init__(self) -> None:
        require_count("teach.lessons", self.lessons, least=100)
        require_count("teach.samples_per_episode", self.samples_per_episode, most=MOST_LESSONS)
        for name in ("draws", "iterations", "population"):
            require_count(f"teach.{name}", getattr(self, name))


@dataclass(frozen=True)
class Distillation:
    """How the eyes of a MultiHeadRank or a CNN are taught by gradients (`experiments/gradient_teaching.py`).

    Attributes:
        parts: where what is, in the image or in the room, they are taught to tell: these are the command.
        lessons: how many there are: an image each, or two successive ones if the low level knows changes. Where not all
            of the parts are in view there is none.
        samples_per_episode: how many of them are of the same episode, in poses of their own.
        own: how often the policy that is being taught is looked at itself, after so many equal shares of the steps: of
            each time come as many lessons as of what is looked at in the beginning. Needs `teacher`.
        steps: of gradient descent.
        batch: how many images in each.
        rate: how far a step goes at first; it falls to 0.
        teacher: a blind policy that was trained on being `told` these parts (a file, a run's folder, or zoo:NAME): its
            controller becomes the low level, or teaches it if that is an LSTM, and the command is in its units. None
            for a low level as it is drawn.
        rounds: how often an LSTM is taught what to do, each time that the eyes were taught: by what `teacher` would
            have done in all episodes of that time so far, which it leads in the first round and the LSTM in the others.
        dagger_episodes: how many there are in a round.
        dagger_steps: of gradient descent in a round.
    """

    parts: tuple[str, ...]
    lessons: int = 12_000
    samples_per_episode: int = 4
    own: int = 0
    steps: int = 1_000
    batch: int = 64
    rate: float = 0.01
    teacher: str | None = None
    rounds: int = 6
    dagger_episodes: int = 100
    dagger_steps: int = 3_000

    def __post_init__(self) -> None:
        if not isinstance(self.parts, tuple) or not self.parts or not all(isinstance(x, str) for x in self.parts):
            raise ValueError(f"teach.parts must be a tuple of names, not {self.parts!r}")
        require_count("teach.lessons", self.lessons, least=100)
        require_count("teach.samples_per_episode", self.samples_per_episode, most=MOST_LESSONS)
        for name in ("steps", "batch", "rounds", "dagger_episodes", "dagger_steps"):
            require_count(f"teach.{name}", getattr(self, name))
        require_count("teach.own", self.own, least=0)
        if self.own and self.teacher is None:
            raise ValueError("teach.own must be 0 without teach.teacher: the policy does not know yet what to do")
        if self.lessons < FEWEST_EPISODES * (1 + self.own) * self.samples_per_episode:
            raise ValueError(
                f"teach.lessons must be of at least {FEWEST_EPISODES} episodes a time, not {self.lessons} with "
                f"teach.own {self.own} and teach.samples_per_episode {self.samples_per_episode}"
            )
        if not 0 < self.rate < 1:
            raise ValueError(f"teach.rate must be between 0 and 1, not {self.rate}")


@dataclass(frozen=True)
class TrainConfig:
    """A training run.

    Attributes:
        env: which environment, with its options.
        policy: which policy; its image_shape, sensors and actions are taken from the environment.
        strategy: which evolution strategy.
        scales: how much each part of the policy is perturbed.
        iterations: how many generations.
        episodes: of each candidate in a generation, on seeds that all candidates share.
        max_steps: at which an episode is cut; None for the environment's own limit.
        screen: how many random initialisations are tried before evolution starts from the best; 0 for none.
        teach: how the policy's eyes are taught first, by an environment that tells what it knows; None for not at all.
            The policy has two levels then, of which the high one says what the eyes know.
        warm_start: a policy of the same shapes that evolution starts from: a file, a run's folder, or zoo:NAME.
        freeze_normaliser: whether the statistics of what controllers receive stay those of the policy that evolution
            starts from; else they go on being gathered, and each policy acts a little differently with them.
        evaluate_every: iterations from one check on held-out seeds to the next.
        evaluate_episodes: of each check.
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
    pretraining: ESPretraining | Distillation | None = None
    warm_start: str | None = None
    freeze_normaliser: bool = False
    evaluate_every: int = 10
    evaluate_episodes: int = 16
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("iterations", "episodes", "evaluate_every", "evaluate_episodes"):
            require_count(name, getattr(self, name))
        for name in ("random_search", "seed"):
            require_count(name, getattr(self, name), least=0)
        if self.max_steps is not None:
            require_count("max_steps", self.max_steps)
        ways = [self.screen > 0, self.teach is not None, self.warm_start is not None]
        if sum(ways) > 1:
            raise ValueError("screen, teach and warm_start are three ways to begin: give one of them at most")
        if self.freeze_normaliser and not any(ways):
            raise ValueError("freeze_normaliser must be False without screen, teach or warm_start: there are none")
        if self.teach is not None:
            _require_teachable(self.policy, self.teach)

    @property
    def job(self) -> Job:
        """What a pool of workers needs to know."""
        return Job(self.env, self.policy, self.max_steps)


def practises(policy: PolicyConfig, pretraining: ESPretraining | Distillation) -> bool:
    """Whether the policy is taught what to do as well: a blind one can be taught nothing else."""
    low = None if policy.hierarchy is None else policy.hierarchy.low_level
    return isinstance(teach, Distillation) and isinstance(low, LSTM) and teach.teacher is not None


def _require_teachable(policy: PolicyConfig, pretraining: ESPretraining | Distillation) -> None:
    """Refuse a policy that has nothing to teach, or no high level that could say what was taught."""
    level = policy.hierarchy
    if isinstance(policy.encoder, Blind) and not practises(policy, teach):
        raise ValueError("teach needs a policy with a encoder, not a blind one, unless its low level is an LSTM")
    if isinstance(teach, Distillation):
        numbers = count_told(teach.parts)
        if not isinstance(policy.encoder, MultiHeadRank | CNN | Blind) or not isinstance(
            policy.controller, Linear | MLP
        ):
            raise ValueError(
                "teaching by gradients needs the encoder MultiHeadRank or CNN, and a linear or MLP controller"
            )
        if (
            level is None
            or level.max_command_steps > 1
            or level.latent != numbers
            or policy.frames > 1
            or policy.relative_to_first_frame
        ):
            raise ValueError(
                f"teaching by gradients needs a policy of two levels that looks at every step (level.max_command_steps 1) "
                f"and at one frame, whose command has the numbers of all parts (level.latent {numbers})"
            )
        return
    if (
        level is None
        or level.max_command_steps > 1
        or not isinstance(policy.controller, Linear)
        or policy.mirror is not None
    ):
        raise ValueError(
            "teach needs a policy of two levels that looks at every step (level.max_command_steps 1), with a linear "
            "controller and no mirror: its high level says what the eyes know"
        )


CODEC = Codec(
    {
        **KINDS,
        **STRATEGIES,
        "env": EnvConfig,
        "sigma_multipliers": SigmaMultipliers,
        "teach": ESPretraining,
        "teach-by-gradient": Distillation,
        "train": TrainConfig,
    }
)


def config_to_json(config: TrainConfig) -> dict[str, Any]:
    """The config as plain JSON."""
    return CODEC.write(config)


def config_from_json(data: Any) -> TrainConfig:
    """The inverse; whatever is wrong is a ValueError that names it."""
    return CODEC.read("config", data, (TrainConfig,))


def fitted_to_env(config: TrainConfig) -> TrainConfig:
    """The config with the policy's shapes as the environment has them."""
    env = make_env(config.env.id, **dict(config.env.kwargs))
    try:
        image, sensors = env.observation_space["image"], env.observation_space["sensors"]  # pyright: ignore
        policy = replace(
            config.policy,
            image_shape=tuple(map(int, image.shape)),
            sensors=int(sensors.shape[0]),
            actions=action_count(env.action_space),
            symmetry=None if config.policy.symmetry is None else _mirror_of(env, config.policy.symmetry),
        )
    finally:
        env.close()
    return replace(config, policy=policy)


def _mirror_of(env: gymnasium.Env, wanted: Symmetry) -> Symmetry:
    """What left and right are, as the environment has it unless the config says so itself."""
    if wanted != Symmetry():
        return wanted
    told: Mapping[str, Any] | None = getattr(env.unwrapped, "mirror", None)
    if told is None:
        raise ValueError(
            f"{env.spec.id if env.spec else env} does not tell its left from its right: give policy.mirror"
        )
    return Symmetry(**{name: tuple(values) for name, values in told.items()})
