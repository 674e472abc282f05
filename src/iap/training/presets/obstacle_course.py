"""`obstacle-course`: a Unitree A1 walks through the gaps of walls by 32×32 pixels."""

from iap.attention.positions import Positions
from iap.envs.core import EnvConfig
from iap.evolution import SNES
from iap.policies import Hierarchy, PolicyConfig, PooledMoments, Rank, Symmetry
from iap.training.config import SigmaMultipliers, TrainConfig

OBSTACLE_COURSE = TrainConfig(
    env=EnvConfig.of("iap/ObstacleCourse-v0", residuals=False),
    policy=PolicyConfig(
        image_shape=(32, 32, 3),
        sensors=19,
        actions=5,
        encoder=Rank(
            patch=1,
            stride=1,
            top_k=16,
            d=4,
            bias=True,
            positions=Positions("concat", scale=0.3),
            features=PooledMoments(),
        ),
        hierarchy=Hierarchy(high_level_sensors=False),
        symmetry=Symmetry(),
    ),
    strategy=SNES(population=20, sigma=0.04),
    sigma_multipliers=SigmaMultipliers(encoder=0.5, controller=1.0, low_level=1.0),
    iterations=40,
    episodes=6,
    random_search=500,
    evaluate_every=5,
    evaluate_episodes=24,
)
