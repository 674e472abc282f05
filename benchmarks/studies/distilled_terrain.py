"""Uneven terrain with whole depth images and all 22 actions: rank, trans, CNN, blind and noise, distilled alike."""

from dataclasses import replace

import iap
from iap.envs.core import EnvConfig
from iap.policies import CNN, Blind, Encoder
from iap.training.config import TrainConfig

TERRAINS = ("step-stones", "stone-grid", "stairs")
LARGE_CNN = CNN(((16, 5, 2), (24, 3, 2), (32, 3, 2)))  # 24,000 parameters with the layers behind it


def config_with(name: str, encoder: Encoder) -> TrainConfig:
    """A preset with another encoder."""
    config = iap.presets[name]
    return replace(config, policy=replace(config.policy, encoder=encoder))


def with_noise(name: str) -> TrainConfig:
    """A preset whose sensors have the noise of real ones, in training and evaluation."""
    config = iap.presets[name]
    return replace(config, env=EnvConfig.of(config.env.id, **dict(config.env.kwargs), noise=1.0))


ARMS = {
    **{name: iap.presets[name] for name in TERRAINS},
    **{f"{name}-trans": iap.presets[f"{name}-trans"] for name in TERRAINS},
    **{f"{name}-cnn": config_with(name, LARGE_CNN) for name in TERRAINS},
    **{f"{name}-blind": config_with(name, Blind()) for name in TERRAINS},
    **{f"{name}-noise": with_noise(name) for name in TERRAINS},
    **{f"{name}-trans-noise": with_noise(f"{name}-trans") for name in TERRAINS},
}
