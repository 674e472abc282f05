"""`obstacle-course`: a Unitree A1 walks through the gaps of walls by 32×32 pixels."""

from dataclasses import replace

from iap.attention.features import Softmax
from iap.attention.positions import Positions
from iap.distillation.dagger.config import DAgger
from iap.envs.core import EnvConfig
from iap.evolution import SNES
from iap.policies import MLP, Hierarchy, PolicyConfig, PooledMoments, Rank, SeparableFilters, Symmetry, Trans
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

# Imitates a teacher that knows the walls; see docs/distillation.md. The dataset is mirrored instead of the policy.
CODES = Positions("concat", scale=1.0, channels=8)
KERNEL = Softmax("positive", projections=15)
DISTILLED = TrainConfig(
    env=OBSTACLE_COURSE.env,
    policy=PolicyConfig(
        image_shape=(32, 32, 3),
        sensors=19,
        actions=5,
        encoder=Rank(
            patch=2,
            stride=2,
            top_k=128,
            d=8,
            bias=True,
            kernel=KERNEL,
            positions=CODES,
            features=SeparableFilters(32),
        ),
        controller=MLP((24,)),
    ),
    pretraining=DAgger(
        steps=(6_000, *(4_000,) * 7),
        teacher_share=(1.0, 0.7, 0.4, 0.2, *(0.0,) * 4),
        updates=(800, *(400,) * 6, 1_500),
        noise=(0.0, 0.4, 0.8),  # actions are smoothed, so that less of it would not move the robot
        batch=128,
    ),
    iterations=0,
    evaluate_episodes=40,
)
DISTILLED_TRANS = replace(
    DISTILLED,
    policy=replace(
        DISTILLED.policy,
        encoder=Trans(patch=4, stride=4, d=8, rows=16, value_size=6, kernel=KERNEL, positions=CODES, bias=True),
    ),
)
