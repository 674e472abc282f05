"""`point-nav`, `indoor-course`: navigation in apartments by proximity images, distilled from the shortest path.

The teacher's state has the distances to obstacles, so that they supervise the encoder of the recurrent policy.
"""

from iap.attention.features import Softmax
from iap.attention.positions import Positions
from iap.distillation.dagger.config import DAgger
from iap.distillation.dagger.encoder_config import EncoderPretraining
from iap.envs.core import EnvConfig
from iap.policies import GRU, MLP, PolicyConfig, Rank, SeparableFilters
from iap.training.config import TrainConfig

SIZE = (32, 48)
SCENES = 30
RANK = Rank(
    patch=4,
    stride=4,
    d=8,
    top_k=32,
    kernel=Softmax("positive", projections=15),
    positions=Positions("concat", scale=1.0, channels=8),
    features=SeparableFilters(24),
    bias=True,
)
VIEW = {"image": "proximity", "size": SIZE, "scenes": SCENES}

POINT_NAV = TrainConfig(
    env=EnvConfig.of("iap/PointNav-v0", **VIEW),
    policy=PolicyConfig((*SIZE, 1), sensors=6, actions=2, encoder=RANK, controller=GRU(32)),
    pretraining=DAgger(
        steps=(5_000, 4_000, 4_000, 4_000),
        teacher_share=(1.0, 0.5, 0.0, 0.0),
        updates=(400, 300, 300, 1_000),
        noise=(0.0, 0.25, 0.5),
        batch=32,
        learning_rate=5e-3,
        encoder=EncoderPretraining(
            samples=5_000, samples_per_episode=50, episode_steps=100, random_share=0, updates=3_000, state_weight=3.0
        ),
    ),
    iterations=0,
    evaluate_episodes=10,
)

INDOOR_COURSE = TrainConfig(
    env=EnvConfig.of("iap/IndoorCourse-v0", **VIEW),
    policy=PolicyConfig((*SIZE, 1), sensors=10, actions=5, encoder=RANK, controller=MLP((24,))),
    pretraining=DAgger(
        steps=(8_000, *(4_000,) * 5),
        teacher_share=(1.0, 0.7, 0.3, *(0.0,) * 3),
        updates=(600, *(300,) * 4, 1_200),
        noise=(0.0, 0.4, 0.8),  # actions are smoothed, so that less of it would not move the robot
        batch=128,
    ),
    iterations=0,
    evaluate_episodes=10,
)
