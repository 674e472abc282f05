"""Indoor navigation by proximity images: IAP-rank with patches of 4 and 1, IAP-trans, CNN and blind, distilled alike.

All arms of a task have the same teacher, dataset sizes and numbers of updates.
"""

from dataclasses import replace

import iap
from iap.distillation import DAgger
from iap.policies import CNN, Blind, Encoder, Trans
from iap.training.config import TrainConfig
from iap.training.presets.indoor import RANK

EVALUATE_WITH = {"split": "held-out", "scenes": 20}
SMALL_CNN = CNN(((8, 5, 2), (12, 3, 2), (12, 3, 2), (12, 2, 1)))
TRANS = Trans(patch=4, stride=4, d=8, rows=8, value_size=3, kernel=RANK.kernel, positions=RANK.positions, bias=True)
ENCODERS: dict[str, Encoder] = {
    "patch-4": RANK,
    "patch-1": replace(RANK, patch=1, stride=1, top_k=RANK.top_k * RANK.patch**2),
    "trans": TRANS,
    "cnn": SMALL_CNN,
    "blind": Blind(),
}


def config_with(name: str, encoder: Encoder) -> TrainConfig:
    """A preset with another encoder."""
    config = iap.presets[name]
    assert isinstance(config.pretraining, DAgger)
    pretraining = config.pretraining if encoder.uses_image else replace(config.pretraining, encoder=None)
    return replace(config, policy=replace(config.policy, encoder=encoder), pretraining=pretraining)


ARMS = {
    f"{name}-{arm}": config_with(name, encoder)
    for name in ("point-nav", "indoor-course")
    for arm, encoder in ENCODERS.items()
}
