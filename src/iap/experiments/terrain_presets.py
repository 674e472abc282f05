"""Training runs on uneven terrain: one small policy places all four feet, by what it sees where each would land."""

from iap.attention import ReLU
from iap.attention.positions import Positions
from iap.evolution import SNES
from iap.experiments.config import Scales, TrainConfig
from iap.policies.specs import PolicySpec, Rank, TwoLevel
from iap.rollouts import EnvSpec

POOLED = Rank(
    patch=1, stride=1, keep=4, d=4, bias=True, kernel=ReLU(), positions=Positions("none"), order="pooled", heads=1
)


def _on(terrain: str, axes: str) -> TrainConfig:
    """A run on one terrain, where these axes of footholds are chosen."""
    return TrainConfig(
        env=EnvSpec.of(f"iap/{terrain}-v0", footholds=axes, one_foot=True),
        policy=PolicySpec(
            image_shape=(16, 16, 2),
            sensors=9,
            actions=len(axes),
            vision=POOLED,
            level=TwoLevel(latent=len(axes), longest_hold=1, senses=False),
        ),
        strategy=SNES(population=16, sigma=0.05),
        scales=Scales(vision=1.0, controller=1.0, low=1.0),
        iterations=8,
        episodes=4,
        screen=150,
        evaluate_every=4,
        evaluate_episodes=16,
    )


TERRAIN_PRESETS = {
    "step-stones": _on("StepStones", "x"),
    "stone-grid": _on("StoneGrid", "xy"),
    "stairs": _on("Stairs", "xz"),
}
