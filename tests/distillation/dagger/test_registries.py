"""Every registered encoder and every registered controller can be distilled, on `iap/Seek-v0` with its own expert."""

from dataclasses import replace

import numpy as np
import pytest

from iap.distillation import DAgger
from iap.distillation.dagger.encoder_config import EncoderPretraining
from iap.distillation.dagger.loop import distil_by_dagger
from iap.envs.core import EnvConfig
from iap.policies import CNN, CONTROLLERS, ENCODERS, Blind, PolicyConfig, flatten, init
from iap.rollouts import InlinePool
from iap.training.config import TrainConfig, fit_to_env

TINY = DAgger(steps=(30, 20), teacher_share=(1.0, 0.0), updates=(3, 2), batch=8, sequence=6, burn_in=1)
IMAGES = EncoderPretraining(samples=20, samples_per_episode=10, episode_steps=10, random_share=0, updates=3, batch=4)
SMALL_CNN = CNN(((2, 5, 4), (2, 3, 2)))


def config_of(policy: PolicyConfig) -> TrainConfig:
    dagger = replace(TINY, encoder=IMAGES) if TINY.trains_memory(policy) and policy.encoder.uses_image else TINY
    env = EnvConfig.of("iap/Seek-v0")
    return fit_to_env(TrainConfig(env=env, policy=policy, pretraining=dagger, iterations=0, max_steps=20))


def check_distils(policy: PolicyConfig, tmp_path) -> None:
    config = config_of(policy)
    assert isinstance(config.pretraining, DAgger)
    with InlinePool(config.job) as pool:
        result = distil_by_dagger(config.pretraining, config.job, 0, pool, tmp_path)
    before = flatten(init(config.policy, 0))
    assert np.isfinite(result.theta).all()
    assert (result.theta != before).mean() > 0.5  # encoder and controller were trained


@pytest.mark.parametrize("name", list(ENCODERS))
def test_every_encoder_can_be_distilled(name, tmp_path):
    check_distils(PolicyConfig((32, 32, 3), 0, 2, encoder=ENCODERS[name]()), tmp_path)


@pytest.mark.parametrize("name", list(CONTROLLERS))
def test_every_controller_can_be_distilled(name, tmp_path):
    check_distils(PolicyConfig((32, 32, 3), 0, 2, encoder=SMALL_CNN, controller=CONTROLLERS[name]()), tmp_path)


def test_a_recurrent_student_without_images_can_be_distilled(tmp_path):
    check_distils(PolicyConfig((32, 32, 3), 0, 2, encoder=Blind(), controller=CONTROLLERS["gru"]()), tmp_path)
