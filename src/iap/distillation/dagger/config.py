"""The config of distillation by DAgger: imitation of a teacher, on the states that the student itself reaches."""

from dataclasses import dataclass

from iap._validation import require_count, require_number, require_positive
from iap.distillation.dagger.encoder_config import EncoderPretraining
from iap.policies import PolicyConfig


@dataclass(frozen=True)
class DAgger:
    """Distillation of a teacher into a policy. Needs PyTorch.

    Each round adds labelled steps to the dataset, then trains on all of it. In the first round the teacher acts, with
    noise; in the others mostly the student, so that it learns what to do where it leads itself.

    Attributes:
        teacher: a blind policy on privileged sensors (a file, a run's folder, or zoo:NAME); None for the environment's
            own expert.
        steps: labelled steps that each round adds, at least; their number is that of the rounds.
        teacher_share: of the steps in which the teacher acts, for each round.
        updates: steps of gradient descent of each round.
        noise: standard deviations of the noise on the teacher's actions; each episode draws one of them.
        batch: labelled steps of an update.
        learning_rate: the largest of the first round.
        later_learning_rate: of the other rounds, as a factor.
        mirror: whether half of each batch is mirrored, if the environment has a symmetry.
        softness: of the selection at the start of training, see `Encoder.forward_soft`.
        final_softness: at its end; the policy that is saved selects hard.
        encoder: how the encoder is trained before the rounds; None if it is trained with the controller, end to end. A
            recurrent policy needs it: its controller is trained on what the encoder gives.
        sequence: steps of the windows of episodes that a recurrent controller is trained on, `batch` windows at a time.
        burn_in: steps of a window that only warm up the memory.
    """

    teacher: str | None = None
    steps: tuple[int, ...] = (6_000, 3_500, 3_500, 3_500)
    teacher_share: tuple[float, ...] = (1.0, 0.5, 0.0, 0.0)
    updates: tuple[int, ...] = (800, 400, 400, 600)
    noise: tuple[float, ...] = (0.0, 0.15, 0.3)
    batch: int = 256
    learning_rate: float = 3e-3
    later_learning_rate: float = 0.7
    mirror: bool = True
    softness: float = 0.25
    final_softness: float = 0.02
    encoder: EncoderPretraining | None = None
    sequence: int = 100
    burn_in: int = 10

    def __post_init__(self) -> None:
        rounds = len(self.steps)
        for name in ("steps", "teacher_share", "updates", "noise"):
            if not isinstance(getattr(self, name), tuple) or not getattr(self, name):
                raise ValueError(f"pretraining.{name} must be a tuple of numbers, not {getattr(self, name)!r}")
        for name in ("teacher_share", "updates"):
            if len(getattr(self, name)) != rounds:
                raise ValueError(f"pretraining.{name} must be {rounds} numbers, as pretraining.steps has")
        for value in (*self.steps, *self.updates):
            require_count("pretraining.steps and pretraining.updates", value)
        for share in self.teacher_share:
            require_number("pretraining.teacher_share", share, 0, 1)
        if self.teacher_share[0] != 1:
            raise ValueError("pretraining.teacher_share must start with 1: the student cannot act yet")
        for value in self.noise:
            require_number("pretraining.noise", value, 0, 2)
        require_count("pretraining.batch", self.batch, least=2)
        for name in ("learning_rate", "later_learning_rate", "softness", "final_softness"):
            require_positive(f"pretraining.{name}", getattr(self, name))
        require_count("pretraining.sequence", self.sequence, least=2)
        require_count("pretraining.burn_in", self.burn_in, least=0, most=self.sequence - 1, why=" (sequence)")

    def trains_memory(self, policy: PolicyConfig) -> bool:
        """Whether the controller, or the low level of a hierarchy, is recurrent."""
        controller = policy.controller if policy.hierarchy is None else policy.hierarchy.low_level
        return controller.state_size(1) > 0

    def check(self, policy: PolicyConfig) -> None:
        """Refuse a policy that cannot be distilled this way."""
        hierarchy = policy.hierarchy
        if policy.symmetry is not None or policy.image_every > 1 or (hierarchy and hierarchy.max_command_steps > 1):
            raise ValueError(
                "distillation by DAgger needs a policy that encodes an image at every step (image_every 1, "
                "hierarchy.max_command_steps 1), without symmetry (the dataset contains mirror images instead)"
            )
        if hierarchy is not None and (
            not self.trains_memory(policy) or policy.controller.state_size(policy.controller_inputs_size) > 0
        ):
            raise ValueError(
                "distillation by DAgger needs a hierarchy with a recurrent low level below a controller without memory"
            )
        if self.encoder is not None:
            self.encoder.check(policy)
        elif self.trains_memory(policy) and policy.encoder.uses_image:
            raise ValueError(
                "distillation of a recurrent policy needs pretraining.encoder: its encoder is trained first"
            )
        if policy.frames > 1 or policy.relative_to_first_frame or policy.first_frame_features:
            raise ValueError(
                "distillation by DAgger needs features of one frame: use the channels frame_difference and "
                "first_frame_difference of preprocessing instead of frames, relative_to_first_frame and "
                "first_frame_features"
            )
        if policy.encoder.samples:
            raise ValueError('distillation needs an encoder that selects the best patches, not select="sample"')
