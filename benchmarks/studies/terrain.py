"""Uneven terrain, one foot at a time: six encoders and a blind policy on step-stones, one and blind elsewhere."""

from dataclasses import replace

import iap
from iap.attention import Softmax
from iap.policies import CNN, Blind, Encoder, Rank, SelectedPatches, Trans
from iap.training.config import TrainConfig

EVALUATE_FROM = 1000  # the observation was designed on the first terrains
TERRAINS = ("step-stones-single-foot", "stone-grid-single-foot", "stairs-single-foot")
STEP_STONES = TERRAINS[0]
RANK = iap.presets[STEP_STONES].policy.encoder
assert isinstance(RANK, Rank)
MASKED = Rank(
    patch=4,
    stride=4,
    top_k=8,
    d=4,
    bias=True,
    kernel=Softmax(),
    features=SelectedPatches(values=("projection",), projection_size=1, masked=True),
)
TRANS = Trans(patch=4, stride=4, d=4, rows=2, value_size=2, kernel=Softmax(), layer_norm=False)
SMALL_CNN = CNN(((4, 4, 2), (4, 3, 2)))


def config_with(name: str, encoder: Encoder) -> TrainConfig:
    """A preset with another encoder."""
    config = iap.presets[name]
    return replace(config, policy=replace(config.policy, encoder=encoder))


ARMS = {
    **{name: iap.presets[name] for name in TERRAINS},
    f"{STEP_STONES}-positive": config_with(STEP_STONES, replace(RANK, kernel=Softmax("positive"))),
    f"{STEP_STONES}-trigonometric": config_with(STEP_STONES, replace(RANK, kernel=Softmax("trigonometric"))),
    f"{STEP_STONES}-masked": config_with(STEP_STONES, MASKED),
    f"{STEP_STONES}-trans": config_with(STEP_STONES, TRANS),
    f"{STEP_STONES}-cnn": config_with(STEP_STONES, SMALL_CNN),
    **{f"{name}-blind": config_with(name, Blind()) for name in TERRAINS},
}
