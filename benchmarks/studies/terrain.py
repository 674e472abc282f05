"""Uneven terrain: IAP-rank, IAP-trans, a CNN and no eyes on step-stones; IAP-rank and no eyes on grid and stairs."""

from dataclasses import replace

from iap.experiments.config import TrainConfig
from iap.experiments.terrain_presets import MASKED, MIXED, TERRAIN_PRESETS
from iap.policies import CNN, Blind, Vision

EVALUATE_FROM = 1000  # what the policies see was chosen while looking at the first terrains
SMALL_CNN = CNN(((4, 4, 2), (4, 3, 2)))


def seen_by(name: str, vision: Vision) -> TrainConfig:
    """A terrain's preset with other eyes, and all else as it is."""
    config = TERRAIN_PRESETS[name]
    return replace(config, policy=replace(config.policy, vision=vision))


ARMS = {
    **TERRAIN_PRESETS,
    "step-stones-masked": seen_by("step-stones", MASKED),
    "step-stones-trans": seen_by("step-stones", MIXED),
    "step-stones-cnn": seen_by("step-stones", SMALL_CNN),
    **{f"{name}-blind": seen_by(name, Blind()) for name in TERRAIN_PRESETS},
}
