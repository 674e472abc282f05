"""The Distracting Control Suite, static and medium, evaluated on held-out backgrounds.

An arm is a preset, or a preset with another encoder: a small CNN, or none (blind).
"""

from dataclasses import replace

import iap
from iap.distillation.config import Distillation
from iap.envs.core import EnvConfig
from iap.policies import CNN, LSTM, Blind, Encoder, Rank
from iap.training.config import TrainConfig

EVALUATE_WITH = {"split": "held-out", "difficulty": "medium"}
SEEDS = (0, 1, 2)
TASKS = ("ball_in_cup-catch", "cartpole-swingup", "cheetah-run", "finger-spin", "reacher-easy", "walker-walk")
OTHER_PRESETS = ("cartpole-swingup-es-pretraining", "cheetah-run-plain", "cheetah-run-no-pretraining")
TEACHERS = ("cartpole-swingup-teacher", "cartpole-swingup-noisy-teacher", "reacher-easy-teacher")
SMALL_CNN = CNN(((6, 4, 4), (6, 3, 2), (6, 3, 2), (4, 3, 2)))  # few enough parameters for the same search
SMALL_CNN_HALF_SIZE = CNN(((6, 4, 2), (6, 3, 2), (6, 3, 2), (4, 3, 2)))  # for images below 100 pixels in height
FULL_HEIGHT = 100


def distils_controller(config: TrainConfig) -> bool:
    """Whether pretraining also distils the low-level controller: a blind policy can then be distilled as well."""
    hierarchy = config.policy.hierarchy
    return (
        isinstance(config.pretraining, Distillation) and hierarchy is not None and isinstance(hierarchy.low_level, LSTM)
    )


def config_with(name: str, encoder: Encoder) -> TrainConfig:
    """A preset with another encoder."""
    config = iap.presets[name]
    if isinstance(encoder, Blind) and config.pretraining is not None and not distils_controller(config):
        config = replace(config, pretraining=None, freeze_normaliser=False)
    return replace(config, warm_start=None, policy=replace(config.policy, encoder=encoder))


def cnn_for(name: str) -> CNN:
    """The CNN baseline for the image size of a preset."""
    return SMALL_CNN if iap.presets[name].policy.image_shape[0] >= FULL_HEIGHT else SMALL_CNN_HALF_SIZE


def native(name: str) -> TrainConfig:
    """A preset at the suite's own 240 × 320, with the 10 best of 19,200 patches of 2 × 2 pixels."""
    config = iap.presets[name]
    assert isinstance(config.policy.encoder, Rank)
    encoder = replace(config.policy.encoder, patch=2, stride=2, top_k=10)
    env = EnvConfig.of(config.env.id, **dict(config.env.kwargs), size=(240, 320))
    policy = replace(config.policy, encoder=encoder, image_shape=(240, 320, config.policy.image_shape[2]))
    return replace(config, env=env, policy=policy)


PRESETS = (*TASKS, *OTHER_PRESETS)
ARMS = {
    **{name: iap.presets[name] for name in (*TEACHERS, *PRESETS)},
    **{f"{name}-cnn": config_with(name, cnn_for(name)) for name in PRESETS},
    **{f"{name}-blind": config_with(name, Blind()) for name in PRESETS},
    **{f"{name}-native": native(name) for name in ("ball_in_cup-catch", "cartpole-swingup-es-pretraining")},
}
# The preset cheetah-run-no-pretraining has its warm start in the zoo; its baselines start from runs of this study.
WARM_STARTS = {f"cheetah-run-no-pretraining-{encoder}": f"cheetah-run-plain-{encoder}" for encoder in ("cnn", "blind")}
# The run whose episodes count towards an arm's budget: its warm start, or its teacher.
EARLIER_RUN = {
    **WARM_STARTS,
    "cheetah-run-no-pretraining": "cheetah-run-plain",
    "reacher-easy": "reacher-easy-teacher",
    "reacher-easy-cnn": "reacher-easy-teacher",
    "cartpole-swingup-noisy-teacher": "cartpole-swingup-teacher",
    "cartpole-swingup": "cartpole-swingup-noisy-teacher",
    "cartpole-swingup-cnn": "cartpole-swingup-noisy-teacher",
    "cartpole-swingup-blind": "cartpole-swingup-noisy-teacher",
}
