"""`cheetah-run`: distracted with a pretrained encoder, without distractions, and distracted from returns alone."""

from typing import Any

from iap.distillation.config import ESPretraining
from iap.envs.core import EnvConfig
from iap.evolution import CMAES
from iap.policies import PolicyConfig, Rank
from iap.training.config import SigmaMultipliers, TrainConfig
from iap.training.presets.control_suite import ALL_BACKGROUNDS, PRETRAINED, limb_policy, pooling_encoder


def _relative(encoder: Rank, **options: Any) -> TrainConfig:
    """A config whose features are relative to the first frame, with their differences to the last one."""
    policy = PolicyConfig((100, 100, 3), sensors=0, actions=6, encoder=encoder, frames=2, relative_to_first_frame=True)
    return TrainConfig(policy=policy, **options)


# Limbs move less in the image than another camera moves all of it: hence features relative to the first frame.
CHEETAH = TrainConfig(
    env=EnvConfig.of("iap/cheetah-run-v0", difficulty=ALL_BACKGROUNDS),
    policy=limb_policy(actions=6, top_k=120, latent_size=10, command_gain=0.1, relative_to_first_frame=True),
    strategy=CMAES(population=20, sigma=0.8),
    iterations=80,
    episodes=2,
    max_steps=125,
    pretraining=ESPretraining(iterations=40),
    **PRETRAINED,
)

PLAIN = _relative(
    pooling_encoder(patch=2, top_k=60, heads=4, score_weighted=False),
    env=EnvConfig.of("iap/cheetah-run-v0"),
    strategy=CMAES(population=20, sigma=0.3),
    sigma_multipliers=SigmaMultipliers(encoder=0.3),
    iterations=22,
    episodes=1,
    max_steps=125,
    random_search=60,
    evaluate_every=5,
    evaluate_episodes=4,
)

# Camera and colours cost the plain policy nothing, the background two thirds of its return: so attention is trained.
NO_PRETRAINING = _relative(
    pooling_encoder(patch=2, top_k=110, heads=4),
    env=EnvConfig.of("iap/cheetah-run-v0", difficulty="medium"),
    strategy=CMAES(population=20, sigma=0.1),
    sigma_multipliers=SigmaMultipliers(encoder=1.0, controller=0.1),
    iterations=24,
    episodes=4,
    max_steps=100,
    warm_start="zoo:cheetah-run-plain",
    evaluate_every=4,
    evaluate_episodes=12,
)
