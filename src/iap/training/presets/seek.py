"""`seek`: follow a target among distractors, a small task that trains in a minute."""

from iap.envs.core import EnvConfig
from iap.evolution import CMAES
from iap.policies import PolicyConfig, PooledMoments, Rank
from iap.training.config import SigmaMultipliers, TrainConfig

SEEK = TrainConfig(
    env=EnvConfig.of("iap/Seek-v0"),
    policy=PolicyConfig(
        image_shape=(32, 32, 3),
        sensors=0,
        actions=2,
        encoder=Rank(patch=2, stride=2, top_k=16, features=PooledMoments()),
    ),
    strategy=CMAES(population=32, sigma=0.3),
    sigma_multipliers=SigmaMultipliers(encoder=1.0),
    iterations=80,
    episodes=4,
)
