"""The Distracting Control Suite, static and medium, evaluated before backgrounds that training never saw."""

from dataclasses import replace

from iap.training.config import TrainConfig, practises
from iap.training.presets.control_suite import SUITE_PRESETS
from iap.policies import CNN, Blind, Rank, Encoder
from iap.rollouts import EnvConfig

EVALUATE_WITH = {"split": "held-out", "difficulty": "medium"}
SEEDS = (0, 1, 2)
TASKS = ("ball_in_cup-catch", "cartpole-swingup", "cheetah-run", "finger-spin", "reacher-easy", "walker-walk")
LEARNT = [task for task in TASKS if f"{task}-distracted" in SUITE_PRESETS]
NET = CNN(((6, 4, 4), (6, 3, 2), (6, 3, 2), (4, 3, 2)))  # few enough parameters for the same search
SMALL_NET = CNN(((6, 4, 2), (6, 3, 2), (6, 3, 2), (4, 3, 2)))  # the same for images half as large


def seen_by(name: str, encoder: Encoder | None) -> TrainConfig:
    """A preset with other eyes, and all else as it is; a blind policy can be taught what to do, but not to see."""
    config = SUITE_PRESETS[name]
    if encoder is None:
        return config
    if config.pretraining is not None and isinstance(encoder, Blind) and not practises(config.policy, config.pretraining):
        config = replace(config, pretraining=None, freeze_normaliser=False)
    if encoder is NET and config.policy.image_shape[0] < 100:
        encoder = SMALL_NET
    return replace(config, policy=replace(config.policy, encoder=encoder))


def native(name: str) -> TrainConfig:
    """A preset at the suite's own 240 × 320, with ten of 19,200 patches of 2 × 2 kept."""
    config = SUITE_PRESETS[name]
    assert isinstance(config.policy.encoder, Rank)
    encoder = replace(config.policy.encoder, patch=2, stride=2, top_k=10)
    env = EnvConfig.of(config.env.id, **dict(config.env.kwargs), size=(240, 320))
    policy = replace(config.policy, encoder=encoder, image_shape=(240, 320, config.policy.image_shape[2]))
    return replace(config, env=env, policy=policy)


EYES: dict[str, Encoder | None] = {"": None, "-cnn": NET, "-blind": Blind()}
PAIRS = [(task, eyes) for task in LEARNT for eyes in EYES]
DISTRACTED = {f"{task}{eyes}": seen_by(f"{task}-distracted", EYES[eyes]) for task, eyes in PAIRS}
FIRST_PLAIN = [(task, eyes) for task, eyes in PAIRS if task in SUITE_PRESETS]
PLAIN = {f"{task}-plain{eyes}": seen_by(task, EYES[eyes]) for task, eyes in FIRST_PLAIN}
STARTS_FROM = {f"{task}{eyes}": f"{task}-plain{eyes}" for task, eyes in FIRST_PLAIN}
NATIVE = {f"{task}-native": native(f"{task}-distracted") for task in ("ball_in_cup-catch", "cartpole-swingup")}
ALSO_TAUGHT = [f"{task}-taught" for task in TASKS if f"{task}-taught" in SUITE_PRESETS]
TAUGHT = {f"{name}{eyes}": seen_by(name, EYES[eyes]) for name in ALSO_TAUGHT for eyes in EYES}
TOLD = {name: config for name, config in SUITE_PRESETS.items() if "-told" in name}
# The run that comes before an arm's own: that it starts from, or that has learnt its low level.
BEFORE = STARTS_FROM | {f"reacher-easy{eyes}": "reacher-easy-told" for eyes in ("", "-cnn")}
BEFORE |= {"cartpole-swingup-told-roughly": "cartpole-swingup-told"}
BEFORE |= {f"cartpole-swingup-taught{eyes}": "cartpole-swingup-told-roughly" for eyes in EYES}
ARMS = TOLD | PLAIN | DISTRACTED | TAUGHT | NATIVE
# The arm that stands for a task.
CHOSEN = {task: f"{task}-taught" if f"{task}-taught" in ARMS else task for task in TASKS}
