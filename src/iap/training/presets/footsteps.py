"""Training runs on uneven terrain: one small policy places all four feet, by what it sees where each would land."""

from dataclasses import replace

from iap.attention import ReLU
from iap.attention.positions import Positions
from iap.evolution import SNES
from iap.policies.specs import Hierarchy, PolicyConfig, Rank
from iap.rollouts import EnvConfig
from iap.training.config import SigmaMultipliers, TrainConfig

NEAREST = Rank(
    patch=1, stride=1, top_k=1, d=4, bias=True, kernel=ReLU(), positions=Positions("none"), values=("centres", "pixels")
)


def _on(terrain: str, axes: str, random_search: int, iterations: int) -> TrainConfig:
    """A run on one terrain, where these axes of footholds are chosen.

    The statistics are kept: those of policies that soon fall are not those of one that walks, and a good draw that is
    given the latter is a good draw no more. Steps want measure, hence the low gain; and what sensors say is of little
    use, hence the low level's small scale.
    """
    return TrainConfig(
        env=EnvConfig.of(f"iap/{terrain}-v0", footholds=axes, one_foot=True),
        policy=PolicyConfig(
            image_shape=(16, 16, 2),
            sensors=9,
            actions=len(axes),
            encoder=NEAREST,
            hierarchy=Hierarchy(latent_size=len(axes), max_command_steps=1, high_level_sensors=False, gain=0.5),
        ),
        strategy=SNES(population=16, sigma=0.05),
        sigma_multipliers=SigmaMultipliers(encoder=0.5, controller=1.0, low_level=0.1),
        iterations=iterations,
        episodes=3,
        random_search=screen,
        freeze_normaliser=True,
        evaluate_every=2,
        evaluate_episodes=16,
    )


def _more_freely(config: TrainConfig, sigma: float) -> TrainConfig:
    """The same from policies that say all or nothing, as is good enough on the level, with all of them evolved."""
    level = Hierarchy(latent_size=config.policy.actions, max_command_steps=1, high_level_sensors=False, gain=2.0)
    return replace(
        config,
        policy=replace(config.policy, hierarchy=level),
        strategy=SNES(population=16, sigma=sigma),
        sigma_multipliers=SigmaMultipliers(encoder=0.5, controller=1.0, low_level=1.0),
        evaluate_every=3,
    )


TERRAIN_PRESETS = {
    "step-stones": _more_freely(_on("StepStones", "x", random_search=100, iterations=6), sigma=0.05),
    "stone-grid": _more_freely(_on("StoneGrid", "xy", random_search=100, iterations=12), sigma=0.1),
    "stairs": _on("Stairs", "xz", random_search=300, iterations=6),
}
