"""`reacher-easy`: distilled from a teacher on keypoints; the action is a product of the arm's pose and the target."""

from iap.distillation.config import Distillation
from iap.envs.core import EnvConfig
from iap.evolution import CMAES
from iap.policies import MLP, Blind, Hierarchy, MultiHeadRank, PolicyConfig, Quadratic
from iap.training.config import TrainConfig
from iap.training.presets.control_suite import ALL_BACKGROUNDS, PRETRAINED

KEYPOINTS = ("target from finger", "finger from hand", "finger")

TEACHER = TrainConfig(
    env=EnvConfig.of(
        "iap/reacher-easy-v0",
        difficulty="medium",
        distractions=("camera",),
        size=(50, 50),
        keypoints=KEYPOINTS,
        keypoint_noise=0.05,
    ),
    policy=PolicyConfig((50, 50, 3), sensors=6, actions=2, encoder=Blind(), controller=Quadratic()),
    strategy=CMAES(population=24, sigma=0.3),
    iterations=200,
    episodes=6,
    max_steps=100,
    evaluate_every=10,
    evaluate_episodes=24,
)

REACHER = TrainConfig(
    env=EnvConfig.of("iap/reacher-easy-v0", difficulty=ALL_BACKGROUNDS),
    policy=PolicyConfig(
        (100, 100, 3),
        sensors=0,
        actions=2,
        encoder=MultiHeadRank(patch=3, stride=1, d=8, heads=8, top_k=20, stem=((8, 5, 2), (12, 5, 2))),
        controller=MLP((24,)),
        preprocessing=("local_contrast_coarse",),
        hierarchy=Hierarchy(6, max_command_steps=1, low_level=Quadratic(), high_level_sensors=False),
    ),
    strategy=CMAES(population=24, sigma=0.2),
    iterations=12,
    episodes=6,
    max_steps=125,
    pretraining=Distillation(
        KEYPOINTS,
        samples=24_000,
        samples_per_episode=8,
        student_rounds=1,
        steps=6_000,
        teacher="zoo:reacher-easy-teacher",
    ),
    **PRETRAINED,
)
