"""Configs of the two ways to pretrain a policy from privileged information."""

from dataclasses import dataclass

from iap._validation import require_count
from iap.policies import Blind, Linear, PolicyConfig, Quadratic, Rank, Trans

FEWEST_EPISODES = 4  # to train on and to validate with
MOST_SAMPLES_PER_EPISODE = 90  # samples come from about the first hundred steps


@dataclass(frozen=True)
class ESPretraining:
    """Pretraining of an encoder by an evolution strategy: linear regression from its features to the state.

    Attributes:
        samples: number of states.
        samples_per_episode: at most so many of them are of the same episode.
        random_encoders: number of random encoders that are tried first.
        iterations: for how many iterations the best of them evolves.
        population: candidates an iteration.
        sigma: standard deviation of the perturbations.
    """

    samples: int = 800
    samples_per_episode: int = 4
    random_encoders: int = 60
    iterations: int = 60
    population: int = 20
    sigma: float = 0.1

    def __post_init__(self) -> None:
        require_count("pretraining.samples", self.samples, least=100)
        require_count("pretraining.samples_per_episode", self.samples_per_episode, most=MOST_SAMPLES_PER_EPISODE)
        for name in ("random_encoders", "iterations", "population"):
            require_count(f"pretraining.{name}", getattr(self, name))

    def check(self, policy: PolicyConfig) -> None:
        """Refuse a policy that cannot be pretrained this way."""
        if isinstance(policy.encoder, Blind):
            raise ValueError("pretraining needs a policy with an encoder, not a blind one")
        hierarchy = policy.hierarchy
        if (
            hierarchy is None
            or hierarchy.max_command_steps > 1
            or not isinstance(policy.controller, Linear)
            or policy.symmetry is not None
        ):
            raise ValueError(
                "pretraining by an evolution strategy needs a hierarchy that encodes an image at every step "
                "(hierarchy.max_command_steps 1), with a linear controller and no symmetry: its command is the "
                "estimated state"
            )


@dataclass(frozen=True)
class Distillation:
    """Pretraining of an encoder and high level by gradients, and of a recurrent low level by DAgger. Needs PyTorch.

    Attributes:
        keypoints: names of the keypoints that the command is trained to estimate.
        samples: number of samples: an image each, or two successive ones if the low level uses changes. Samples with
            a keypoint out of view are left out.
        samples_per_episode: samples of the same episode, in states of their own.
        student_rounds: how often samples are added from episodes of the student itself, after equal shares of the
            steps. Needs `teacher`.
        steps: steps of gradient descent.
        batch: images of a step.
        learning_rate: of the first step; it falls to 0 along a cosine.
        teacher: a blind policy that was trained on these keypoints (a file, a run's folder, or zoo:NAME). Its
            controller becomes the low level, or supervises it if that is recurrent. None for a random low level.
        dagger_rounds: rounds of DAgger for a recurrent low level, each time the encoder was trained; the teacher acts
            in the first, the student in the others.
        dagger_episodes: episodes of a round.
        dagger_steps: steps of gradient descent of a round.
    """

    keypoints: tuple[str, ...]
    samples: int = 12_000
    samples_per_episode: int = 4
    student_rounds: int = 0
    steps: int = 1_000
    batch: int = 64
    learning_rate: float = 0.01
    teacher: str | None = None
    dagger_rounds: int = 6
    dagger_episodes: int = 100
    dagger_steps: int = 3_000

    def __post_init__(self) -> None:
        names = self.keypoints
        if not isinstance(names, tuple) or not names or not all(isinstance(x, str) for x in names):
            raise ValueError(f"pretraining.keypoints must be a tuple of names, not {names!r}")
        require_count("pretraining.samples", self.samples, least=100)
        require_count("pretraining.samples_per_episode", self.samples_per_episode, most=MOST_SAMPLES_PER_EPISODE)
        for name in ("steps", "batch", "dagger_rounds", "dagger_episodes", "dagger_steps"):
            require_count(f"pretraining.{name}", getattr(self, name))
        require_count("pretraining.student_rounds", self.student_rounds, least=0)
        if self.student_rounds and self.teacher is None:
            raise ValueError("pretraining.student_rounds must be 0 without pretraining.teacher: the student cannot act")
        if self.samples < FEWEST_EPISODES * (1 + self.student_rounds) * self.samples_per_episode:
            raise ValueError(
                f"pretraining.samples must be of at least {FEWEST_EPISODES} episodes a round, not {self.samples} with "
                f"pretraining.student_rounds {self.student_rounds} and "
                f"pretraining.samples_per_episode {self.samples_per_episode}"
            )
        if not 0 < self.learning_rate < 1:
            raise ValueError(f"pretraining.learning_rate must be between 0 and 1, not {self.learning_rate}")

    def trains_low_level(self, policy: PolicyConfig) -> bool:
        """Whether the low level is trained by DAgger: it is recurrent, and there is a teacher."""
        return self.teacher is not None and has_memory(policy)

    def check(self, policy: PolicyConfig) -> None:
        """Refuse a policy that cannot be pretrained this way."""
        hierarchy = policy.hierarchy
        if isinstance(policy.encoder, Blind) and not self.trains_low_level(policy):
            raise ValueError("distillation needs a policy with an encoder, not a blind one, or a recurrent low level")
        if isinstance(policy.encoder, Rank | Trans) and policy.encoder.kernel.signed:
            raise ValueError('distillation needs a kernel whose scores are not negative, not "trigonometric"')
        if policy.encoder.samples:
            raise ValueError('distillation needs an encoder that selects the best patches, not select="sample"')
        several = policy.frames > 1 or policy.relative_to_first_frame
        if hierarchy is None or hierarchy.max_command_steps > 1 or several or policy.symmetry is not None:
            raise ValueError(
                "distillation needs a hierarchy that encodes an image at every step (hierarchy.max_command_steps 1), "
                "one frame and no symmetry: its command is the estimated keypoints"
            )
        if policy.controller.state_size(policy.controller_inputs_size) > 0:
            raise ValueError("distillation needs a high-level controller without memory")
        if policy.sensors > 0:
            raise ValueError(f"distillation needs an environment without sensors, not one with {policy.sensors}")


def has_memory(policy: PolicyConfig) -> bool:
    """Whether the low level is recurrent: it has a state that is more than its last inputs."""
    hierarchy = policy.hierarchy
    if hierarchy is None:
        return False
    low_level = hierarchy.low_level
    return low_level.state_size(1) > 0 and not isinstance(low_level, Quadratic)
