"""The Distracting Control Suite, static and medium, evaluated before backgrounds that training never saw."""

from dataclasses import replace

from iap.experiments.config import TrainConfig
from iap.experiments.suite_presets import SUITE_PRESETS
from iap.policies import CNN, Blind, Vision

EVALUATE_WITH = {"split": "held-out", "difficulty": "medium"}
SEEDS = (0, 1, 2)
TASKS = ("ball_in_cup-catch", "cartpole-swingup", "cheetah-run", "finger-spin", "reacher-easy", "walker-walk")
LEARNT = [task for task in TASKS if f"{task}-distracted" in SUITE_PRESETS]
NET = CNN(((6, 4, 4), (6, 3, 2), (6, 3, 2), (4, 3, 2)))  # few enough parameters for the same search


def seen_by(name: str, vision: Vision | None) -> TrainConfig:
    """A preset with other eyes, and all else as it is; a blind policy cannot be taught to see."""
    config = SUITE_PRESETS[name]
    if vision is None:
        return config
    if config.teach is not None and isinstance(vision, Blind):
        config = replace(config, teach=None, keep_statistics=False)
    return replace(config, policy=replace(config.policy, vision=vision))


EYES: dict[str, Vision | None] = {"": None, "-cnn": NET, "-blind": Blind()}
PAIRS = [(task, eyes) for task in LEARNT for eyes in EYES]
DISTRACTED = {f"{task}{eyes}": seen_by(f"{task}-distracted", EYES[eyes]) for task, eyes in PAIRS}
FIRST_PLAIN = [(task, eyes) for task, eyes in PAIRS if task in SUITE_PRESETS]
PLAIN = {f"{task}-plain{eyes}": seen_by(task, EYES[eyes]) for task, eyes in FIRST_PLAIN}
STARTS_FROM = {f"{task}{eyes}": f"{task}-plain{eyes}" for task, eyes in FIRST_PLAIN}
ARMS = PLAIN | DISTRACTED
