"""The obstacle course: the preset; and at a smaller budget the paper's sizes of patches, a CNN, no eyes, no mirror."""

from dataclasses import replace

from iap.training.config import TrainConfig
from iap.training.presets.registry import preset
from iap.policies import CNN, Blind, Rank, Encoder

BASE = replace(preset("obstacle-course"), random_search=200, iterations=16, episodes=4, evaluate_every=4)
SIZES = ((1, 1), (4, 2), (4, 4), (8, 4), (8, 8), (16, 8), (16, 16))  # (patch, stride), as the paper has them
PAPER = {"1/1": 8.0, "4/2": 6.9, "4/4": 7.5, "8/4": 6.3, "8/8": 7.5, "16/8": 6.6, "16/16": 7.6}  # its best returns
SIDE = 32
SEEDS, PRESET_SEEDS = (0, 1, 2), (3, 4, 5)  # the preset was chosen while looking at seeds 0 to 2: these are new to it


def seen_by(encoder: Encoder) -> TrainConfig:
    """The preset with other eyes, and all else as it is."""
    return replace(BASE, policy=replace(BASE.policy, encoder=encoder))


def rank(patch: int, stride: int) -> Rank:
    """The preset's attention on other patches; it keeps as many, or half where there are not twice as many."""
    assert isinstance(BASE.policy.encoder, Rank)
    patches = ((SIDE - patch) // stride + 1) ** 2
    return replace(BASE.policy.encoder, patch=patch, stride=stride, top_k=min(BASE.policy.encoder.top_k, patches // 2))


ARMS = {
    "iap": preset("obstacle-course"),
    **{f"patch-{patch}-{stride}": seen_by(rank(patch, stride)) for patch, stride in SIZES},
    "cnn": seen_by(CNN(((8, 8, 4), (8, 3, 2)))),
    "blind": seen_by(Blind()),
    "unmirrored": replace(BASE, policy=replace(BASE.policy, symmetry=None)),
}
