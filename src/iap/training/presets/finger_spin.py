"""`finger-spin`: the finger's pose and motion are enough to strike the spinner and to come back."""

from iap.distillation.config import ESPretraining
from iap.envs.core import EnvConfig
from iap.evolution import CMAES
from iap.training.config import TrainConfig
from iap.training.presets.control_suite import ALL_BACKGROUNDS, PRETRAINED, limb_policy

FINGER = TrainConfig(
    env=EnvConfig.of("iap/finger-spin-v0", difficulty=ALL_BACKGROUNDS, action_repeat=4),
    policy=limb_policy(actions=2, top_k=80, latent_size=8, command_gain=0.5),
    strategy=CMAES(population=16, sigma=1.5),
    iterations=150,
    episodes=4,
    max_steps=100,
    pretraining=ESPretraining(samples_per_episode=1, iterations=30),
    **PRETRAINED,
)
