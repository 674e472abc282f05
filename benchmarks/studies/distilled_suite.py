"""The Distracting Control Suite, static and medium, distilled from teachers on the simulator's state.

An arm is a preset, or a preset with a CNN of twice the encoder's size, or without an encoder. All have the same
teacher, dataset and number of updates; a CNN has no heads, so that keypoints do not supervise it.
"""

from dataclasses import replace

import iap
from iap.distillation import DAgger
from iap.policies import CNN, GRU, Blind
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


ARMS = {
    **{task: iap.presets[f"{task}-distilled"] for task in TASKS},
    **{f"{task}-cnn": with_cnn(iap.presets[f"{task}-distilled"]) for task in TASKS},
    **{f"{task}-blind": blind(iap.presets[f"{task}-distilled"]) for task in TASKS},
}
