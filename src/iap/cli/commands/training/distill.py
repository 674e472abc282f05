"""`iap distill`: training by distillation alone."""

from dataclasses import dataclass
from typing import ClassVar

from iap.cli.commands.training.train import Choices, Train
from iap.training.config import TrainConfig
from iap.training.parts import distillation_only


@dataclass(frozen=True)
class Distill(Train):
    """Distil a privileged teacher into a policy: iap distill PRESET, or iap distill --env ID.

    The teacher is that of the preset, the environment's own expert, or --pretraining.teacher POLICY, a policy on other
    sensors of the same environment. The options are those of iap train, without evolution. An interrupted run is
    continued by --resume. Needs PyTorch.
    Example: iap distill step-stones --out runs/step-stones
    """

    example: ClassVar[str] = "step-stones"

    @classmethod
    def default_config(cls, choices: Choices, name: str | None) -> TrainConfig:
        """Distillation without evolution."""
        return distillation_only(choices.config(name))
