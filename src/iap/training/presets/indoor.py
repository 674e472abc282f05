"""`point-nav`, `indoor-course`: navigation in apartments by proximity images, distilled from the shortest path.

The teacher's state has the distances to obstacles: they supervise the encoder, before the controller is trained.
"""

from iap.attention.features import Softmax
from iap.attention.positions import Positions
from iap.distillation.dagger.config import DAgger
from iap.distillation.dagger.encoder_config import EncoderPretraining
from iap.envs.core import EnvConfig
from iap.policies import GRU, PolicyConfig, Rank, SeparableFilters
from iap.training.config import TrainConfig

SIZE = (32, 48)
SCENES = 60
RANK = Rank(
    patch=4,
    stride=4,
    d=8,
    top_k=48,
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
        steps=(10_000, *(8_000,) * 4),
        teacher_share=(1.0, 0.5, 0.0, 0.0, 0.0),
        updates=(600, 400, 400, 400, 2_500),
        noise=(0.0, 0.25, 0.5),
        batch=32,
        learning_rate=5e-3,
        encoder=EncoderPretraining(
            samples=10_000, samples_per_episode=50, episode_steps=100, random_share=0, updates=6_000, state_weight=3.0
        ),
        sequence=150,
    ),
    iterations=0,
    evaluate_episodes=10,
)

INDOOR_COURSE = TrainConfig(
    env=EnvConfig.of("iap/IndoorCourse-v0", **VIEW),
    policy=PolicyConfig((*SIZE, 1), sensors=10, actions=5, encoder=RANK, controller=GRU(24)),
    pretraining=DAgger(
        steps=(6_000, *(5_000,) * 3),
        teacher_share=(1.0, 0.5, 0.0, 0.0),
        updates=(400, 300, 300, 1_200),
        noise=(0.0, 0.4, 0.8),  # actions are smoothed, so that less of it would not move the robot
        batch=32,
        learning_rate=5e-3,
        encoder=EncoderPretraining(
            samples=5_000,
            samples_per_episode=50,
            episode_steps=250,
            random_share=0,
            noise=(0.0, 0.4, 0.8),
            updates=3_000,
            state_weight=3.0,
        ),
    ),
    iterations=0,
    evaluate_episodes=10,
)
