"""`obstacle-course`: a Unitree A1 walks through the gaps of walls by 32×32 pixels."""

from iap.attention.positions import Positions
from iap.distillation.dagger.config import DAgger
from iap.envs.core import EnvConfig
from iap.evolution import SNES
from iap.policies import MLP, Hierarchy, PolicyConfig, PooledMoments, Rank, Symmetry
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
OBSTACLE_COURSE_DISTILLED = TrainConfig(
    env=OBSTACLE_COURSE.env,
    policy=PolicyConfig(
        image_shape=(32, 32, 3),
        sensors=19,
        actions=5,
        encoder=Rank(
            patch=1,
            stride=1,
            top_k=64,
            d=4,
            bias=True,
            positions=Positions("concat", scale=0.3),
            features=PooledMoments(heads=6, position_weighted=True),
        ),
        controller=MLP((16,)),
    ),
    pretraining=DAgger(
        steps=(6_000, *(4_000,) * 7),
        teacher_share=(1.0, 0.5, *(0.0,) * 6),
        updates=(600, *(300,) * 6, 1_000),
        noise=(0.0, 0.4, 0.8),  # actions are smoothed, so that less of it would not move the robot
        batch=128,
    ),
    iterations=0,
    evaluate_episodes=40,
)
