"""Uneven terrain: IAP-rank, IAP-trans, a CNN and no eyes on step-stones; IAP-rank and no eyes on grid and stairs."""

from dataclasses import replace

from iap.attention import Softmax
from iap.training.config import TrainConfig
from iap.training.presets.footsteps import NEAREST, TERRAIN_PRESETS
from iap.policies import CNN, Blind, Rank, Trans, Encoder

EVALUATE_FROM = 1000  # what the policies see was chosen while looking at the first terrains
MASKED = Rank(
    patch=4, stride=4, top_k=8, d=4, bias=True, kernel=Softmax(), values=("projection",), projection_size=1, masked=True
)
MIXED = Trans(patch=4, stride=4, d=4, rows=2, width=2, kernel=Softmax(), layer_norm=False)
SMALL_CNN = CNN(((4, 4, 2), (4, 3, 2)))


def seen_by(name: str, encoder: Encoder) -> TrainConfig:
    """A terrain's preset with other eyes, and all else as it is."""
    config = TERRAIN_PRESETS[name]
    return replace(config, policy=replace(config.policy, encoder=encoder))


ARMS = {
    **TERRAIN_PRESETS,
    "step-stones-positive": seen_by("step-stones", replace(NEAREST, kernel=Softmax("positive"))),
    "step-stones-trigonometric": seen_by("step-stones", replace(NEAREST, kernel=Softmax("trigonometric"))),
    "step-stones-masked": seen_by("step-stones", MASKED),
    "step-stones-trans": seen_by("step-stones", MIXED),
    "step-stones-cnn": seen_by("step-stones", SMALL_CNN),
    **{f"{name}-blind": seen_by(name, Blind()) for name in TERRAIN_PRESETS},
}
