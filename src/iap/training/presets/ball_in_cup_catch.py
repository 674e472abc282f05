"""`ball_in_cup-catch`: from returns alone, on frame differences; a ball that was caught stays caught."""

from iap.envs.core import EnvConfig
from iap.evolution import CMAES
from iap.policies import PolicyConfig
from iap.training.config import SigmaMultipliers, TrainConfig
from iap.training.presets.control_suite import pooling_encoder

BALL_IN_CUP = TrainConfig(
    env=EnvConfig.of("iap/ball_in_cup-catch-v0", frame="grey", difficulty="medium"),
    policy=PolicyConfig(
        (100, 100, 1),
        sensors=0,
        actions=2,
        encoder=pooling_encoder(patch=4, top_k=30, heads=3),
        frames=2,
        preprocessing=("frame_difference",),
    ),
    strategy=CMAES(population=20, sigma=0.3),
    sigma_multipliers=SigmaMultipliers(encoder=0.5),
    iterations=10,
    episodes=6,
    max_steps=120,
    random_search=60,
    evaluate_every=5,
    evaluate_episodes=8,
)
