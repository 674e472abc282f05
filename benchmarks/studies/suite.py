"""The Distracting Control Suite, static and medium, evaluated before backgrounds that training never saw."""

from dataclasses import replace

from iap.experiments.config import TrainConfig
from iap.experiments.suite_presets import SUITE_PRESETS
from iap.policies import CNN, Blind, Vision

EVALUATE_WITH = {"split": "held-out"}


def seen_by(name: str, vision: Vision) -> TrainConfig:
    """A preset with other eyes, and all else as it is."""
    config = SUITE_PRESETS[name]
    return replace(config, policy=replace(config.policy, vision=vision))


NET = CNN(((6, 4, 4), (6, 3, 2), (6, 3, 2), (4, 3, 2)))  # few enough parameters for the same search
ARMS = {
    "cheetah-run-plain": SUITE_PRESETS["cheetah-run"],
    "cheetah-run": SUITE_PRESETS["cheetah-run-distracted"],
    "cheetah-run-plain-cnn": seen_by("cheetah-run", NET),
    "cheetah-run-cnn": seen_by("cheetah-run-distracted", NET),
    "cheetah-run-plain-blind": seen_by("cheetah-run", Blind()),
    "cheetah-run-blind": seen_by("cheetah-run-distracted", Blind()),
}
STARTS_FROM = {"cheetah-run": "cheetah-run-plain", "cheetah-run-cnn": "cheetah-run-plain-cnn"}
STARTS_FROM |= {"cheetah-run-blind": "cheetah-run-plain-blind"}
