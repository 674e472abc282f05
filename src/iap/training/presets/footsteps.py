"""`step-stones-single-foot` and so on: one small policy places the feet one at a time, by depth around the landing."""

from dataclasses import replace

from iap.attention.positions import Positions
from iap.envs.core import EnvConfig
from iap.evolution import SNES
from iap.policies import Hierarchy, PolicyConfig, Rank, SelectedPatches
from iap.training.config import SigmaMultipliers, TrainConfig

BEST_PIXEL = Rank(
    patch=1,
    stride=1,
    top_k=1,
    d=4,
    bias=True,
    positions=Positions("none"),
    features=SelectedPatches(values=("centres", "pixels")),
)


def _on(terrain: str, axes: str, random_search: int, iterations: int) -> TrainConfig:
    """A config on one terrain, where actions choose these axes of footholds.

    The normaliser is frozen: the statistics of policies that soon fall differ from those of one that walks. Steps need
    small corrections, hence the low command gain; sensors help little, hence the low level's small multiplier.
    """
    return TrainConfig(
        env=EnvConfig.of(f"iap/{terrain}SingleFoot-v0", footholds=axes),
        policy=PolicyConfig(
            image_shape=(16, 16, 2),
            sensors=9,
            actions=len(axes),
            encoder=BEST_PIXEL,
            hierarchy=Hierarchy(len(axes), max_command_steps=1, high_level_sensors=False, command_gain=0.5),
        ),
        strategy=SNES(population=16, sigma=0.05),
        sigma_multipliers=SigmaMultipliers(encoder=0.5, controller=1.0, low_level=0.1),
        iterations=iterations,
        episodes=3,
        random_search=random_search,
        freeze_normaliser=True,
        evaluate_every=2,
        evaluate_episodes=16,
    )


def _with_saturated_commands(config: TrainConfig, sigma: float) -> TrainConfig:
    """The same from policies whose commands saturate the actions, which suffices on level ground; all parts evolve."""
    hierarchy = Hierarchy(config.policy.actions, max_command_steps=1, high_level_sensors=False, command_gain=2.0)
    return replace(
        config,
        policy=replace(config.policy, hierarchy=hierarchy),
        strategy=SNES(population=16, sigma=sigma),
        sigma_multipliers=SigmaMultipliers(encoder=0.5, controller=1.0, low_level=1.0),
        evaluate_every=3,
    )


STEP_STONES = _with_saturated_commands(_on("StepStones", "x", random_search=100, iterations=6), sigma=0.05)
STONE_GRID = _with_saturated_commands(_on("StoneGrid", "xy", random_search=100, iterations=12), sigma=0.1)
STAIRS = _on("Stairs", "xz", random_search=300, iterations=6)
