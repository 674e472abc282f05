"""Training runs of the Distracting Control Suite: pixels only; background, camera and colours static and medium.

A distracted run starts from a plain one. Camera and colours hardly matter to readouts that are counted from the first
look of an episode; that leaves the background, which attention has to learn to tell from the robot.
"""

from typing import Any

from iap.attention import ReLU
from iap.attention.positions import Positions
from iap.evolution import CMAES
from iap.experiments.config import Scales, TrainConfig
from iap.policies.specs import PolicySpec, Rank
from iap.rollouts import EnvSpec


def eyes(patch: int, keep: int, heads: int, soft: bool = True) -> Rank:
    """Heads with a place of their own pool the robot's parts.

    Patches are as small as limbs are thin, and about as many are kept as the robot has: with fewer the heads see one
    bright spot, with more the background. Keys know colours only: backgrounds lie everywhere.
    """
    return Rank(
        patch=patch,
        stride=patch,
        keep=keep,
        d=4,
        bias=True,
        kernel=ReLU(),
        positions=Positions("none"),
        order="pooled",
        heads=heads,
        placed=True,
        soft=soft,
    )


def _cheetah(vision: Rank, **options: Any) -> TrainConfig:
    """A run whose policy sees what has changed since its first look, and since the last."""
    policy = PolicySpec((100, 100, 3), sensors=0, actions=6, vision=vision, frames=2, anchored=True)
    return TrainConfig(policy=policy, **options)


SUITE_PRESETS = {
    # Six actions are too many to learn together with attention: a gait comes first, without distractions.
    "cheetah-run": _cheetah(
        eyes(patch=2, keep=60, heads=4, soft=False),
        env=EnvSpec.of("iap/cheetah-run-v0"),
        strategy=CMAES(population=20, sigma=0.3),
        scales=Scales(vision=0.3),
        iterations=22,
        episodes=1,
        max_steps=125,
        screen=60,
        evaluate_every=5,
        evaluate_episodes=4,
    ),
    # Camera and colours cost that policy nothing, the background two thirds: so evolution moves its attention.
    "cheetah-run-distracted": _cheetah(
        eyes(patch=2, keep=110, heads=4),
        env=EnvSpec.of("iap/cheetah-run-v0", difficulty="medium"),
        strategy=CMAES(population=20, sigma=0.1),
        scales=Scales(vision=1.0, controller=0.1),
        iterations=24,
        episodes=4,
        max_steps=100,
        evaluate_every=4,
        evaluate_episodes=12,
    ),
}
