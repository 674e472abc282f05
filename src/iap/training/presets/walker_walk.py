"""`walker-walk`: walking takes both legs and the trunk, hence a longer command than the finger's."""

from iap.distillation.config import ESPretraining
from iap.envs.core import EnvConfig
from iap.evolution import CMAES
from iap.training.config import TrainConfig
from iap.training.presets.control_suite import ALL_BACKGROUNDS, PRETRAINED, limb_policy

WALKER = TrainConfig(
    env=EnvConfig.of("iap/walker-walk-v0", difficulty=ALL_BACKGROUNDS, action_repeat=4),
    policy=limb_policy(actions=6, top_k=120, latent_size=12, command_gain=0.1),
    strategy=CMAES(population=20, sigma=0.8),
    iterations=100,
    episodes=2,
    max_steps=125,
    pretraining=ESPretraining(iterations=40),
    **PRETRAINED,
)
