"""The Distracting Control Suite, medium, distilled from teachers on the simulator's state.

An arm is a preset, or a preset with a CNN of twice the encoder's size, with a smaller policy, or without an encoder.
All have the same teacher, dataset and number of updates; a CNN has no heads, so that keypoints do not supervise it.
"""

from dataclasses import replace

import iap
from iap.distillation import DAgger
from iap.policies import CNN, GRU, Blind, ResidualRank
from iap.training.config import TrainConfig

EVALUATE_WITH = {"split": "held-out", "difficulty": "medium"}
TASKS = ("walker-walk", "cheetah-run", "cartpole-swingup", "reacher-easy", "ball_in_cup-catch", "finger-spin")
LARGE_CNN = CNN(((24, 5, 2), (32, 3, 2), (40, 3, 2), (48, 3, 1), (24, 3, 2)))


def with_cnn(config: TrainConfig) -> TrainConfig:
    """The config with a CNN, supervised by actions and state."""
    assert isinstance(config.pretraining, DAgger)
    assert config.pretraining.encoder is not None
    dagger = replace(config.pretraining, encoder=replace(config.pretraining.encoder, keypoints=()))
    return replace(config, policy=replace(config.policy, encoder=LARGE_CNN), pretraining=dagger)


def blind(config: TrainConfig) -> TrainConfig:
    """The config without an encoder."""
    assert isinstance(config.pretraining, DAgger)
    policy = replace(config.policy, encoder=Blind(), preprocessing=("image",), hierarchy=None, controller=GRU(48))
    return replace(config, policy=policy, pretraining=replace(config.pretraining, encoder=None))


def small(config: TrainConfig, filters: int, values: int, units: int) -> TrainConfig:
    """The config with fewer filters, values of each head, and units of the controller."""
    policy, first = config.policy, max(filters * 2 // 3, 1)
    assert isinstance(policy.encoder, ResidualRank)
    assert policy.hierarchy is not None
    encoder = replace(policy.encoder, stem=((first, 5, 2), (filters, 3, 2)), d=max(filters // 2, 4), values=values)
    hierarchy = replace(policy.hierarchy, latent_size=units, low_level=GRU(units))
    return replace(config, policy=replace(policy, encoder=encoder, hierarchy=hierarchy))


SIZES = {"medium": (16, 2, 32), "small": (10, 1, 20), "smallest": (6, 0, 16)}
SIZED_TASKS = ("walker-walk", "cheetah-run")  # of the curve of return against parameters
ARMS = {
    **{task: iap.presets[f"{task}-distilled"] for task in TASKS},
    **{f"{task}-cnn": with_cnn(iap.presets[f"{task}-distilled"]) for task in TASKS},
    **{f"{task}-blind": blind(iap.presets[f"{task}-distilled"]) for task in TASKS},
    **{f"{task}-dynamic": iap.presets[f"{task}-dynamic"] for task in TASKS},
    **{f"{t}-{size}": small(iap.presets[f"{t}-distilled"], *SIZES[size]) for t in SIZED_TASKS for size in SIZES},
}
