"""`cartpole-swingup`: distilled from a teacher that was trained on noisy keypoints."""

from typing import Any

from iap.distillation.config import Distillation, ESPretraining
from iap.envs.core import EnvConfig
from iap.evolution import CMAES, SNES
from iap.policies import LSTM, MLP, Blind, Hierarchy, MultiHeadRank, PolicyConfig, Quadratic
from iap.training.config import TrainConfig
from iap.training.presets.control_suite import ALL_BACKGROUNDS, PRETRAINED, pooling_encoder

KEYPOINTS = ("x of cart", "x of pole_1 from cart", "z of pole_1 from cart")

# On keypoints instead of images, a strategy learns to swing up and to balance in a few minutes.
TEACHER = TrainConfig(
    env=EnvConfig.of("iap/cartpole-swingup-v0", size=(8, 8), keypoints=KEYPOINTS, keypoint_noise=0.005),
    policy=PolicyConfig((8, 8, 3), sensors=3, actions=1, encoder=Blind(), controller=Quadratic(deltas=True)),
    strategy=CMAES(population=16, sigma=0.3),
    iterations=200,
    episodes=2,
    evaluate_every=10,
    evaluate_episodes=12,
)

# Then it learns to cope with the larger errors of an encoder. From such errors alone it learns to spin the pole.
NOISY_TEACHER = TrainConfig(
    env=EnvConfig.of("iap/cartpole-swingup-v0", size=(8, 8), keypoints=KEYPOINTS, keypoint_noise=0.015),
    policy=TEACHER.policy,
    strategy=CMAES(population=16, sigma=0.1),
    iterations=120,
    episodes=4,
    warm_start="zoo:cartpole-swingup-teacher",
    freeze_normaliser=True,
    evaluate_every=10,
    evaluate_episodes=24,
)

# The encoder estimates the same keypoints. The LSTM averages out per-frame encoder noise; it is trained by DAgger on
# the teacher's actions. Wide images show the whole rail.
CARTPOLE = TrainConfig(
    env=EnvConfig.of("iap/cartpole-swingup-v0", size=(90, 120), difficulty=ALL_BACKGROUNDS),
    policy=PolicyConfig(
        (90, 120, 3),
        sensors=0,
        actions=1,
        encoder=MultiHeadRank(patch=5, stride=2, d=8, heads=8, top_k=30, stem=((8, 5, 2),)),
        controller=MLP((48, 24)),
        preprocessing=("first_frame_difference",),
        hierarchy=Hierarchy(3, max_command_steps=1, low_level=LSTM(16), high_level_sensors=False),
    ),
    strategy=SNES(population=24, sigma=0.03),
    iterations=20,
    episodes=4,
    pretraining=Distillation(
        KEYPOINTS,
        samples=16_000,
        samples_per_episode=8,
        student_rounds=1,
        steps=4_000,
        teacher="zoo:cartpole-swingup-noisy-teacher",
    ),
    **dict[str, Any](PRETRAINED, evaluate_episodes=40),
)

# Swinging up and balancing are two behaviours: hence the hidden layer, which only the short command makes small enough.
ES_PRETRAINING = TrainConfig(
    env=EnvConfig.of("iap/cartpole-swingup-v0", frame="grey", difficulty="medium"),
    policy=PolicyConfig(
        (100, 100, 1),
        sensors=0,
        actions=1,
        encoder=pooling_encoder(patch=4, top_k=24, heads=4),
        frames=2,
        preprocessing=("frame_difference",),
        hierarchy=Hierarchy(6, max_command_steps=1, low_level=MLP((6,)), high_level_sensors=False, command_gain=0.5),
    ),
    strategy=CMAES(population=24, sigma=0.5),
    iterations=150,
    episodes=1,
    pretraining=ESPretraining(),
    **PRETRAINED,
)
