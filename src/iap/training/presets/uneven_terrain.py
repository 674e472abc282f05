"""`step-stones`, `stone-grid`, `stairs`: whole depth images and all 22 actions, distilled from the env's teacher."""

from typing import Any

from iap.attention.features import Softmax
from iap.attention.positions import Positions
from iap.distillation.dagger.config import DAgger
from iap.envs.core import EnvConfig
from iap.policies import MLP, Encoder, PolicyConfig, Rank, SeparableFilters, Trans
from iap.training.config import TrainConfig

# Depths in metres, brought to about ±1: the ground is about 0.4 m below the cameras.
DEPTHS: dict[str, Any] = {"pixel_offset": 0.4, "pixel_scale": 4.0}
CODES = Positions("concat", scale=1.0, channels=8)
KERNEL = Softmax("positive", projections=15)

RANK = Rank(
    patch=4, stride=4, d=8, top_k=48, kernel=KERNEL, positions=CODES, features=SeparableFilters(32), bias=True, **DEPTHS
)
TRANS = Trans(patch=4, stride=4, d=8, rows=16, value_size=6, kernel=KERNEL, positions=CODES, bias=True, **DEPTHS)


def _on(terrain: str, encoder: Encoder) -> TrainConfig:
    """A config on one terrain. The last action is left out of the sensors: a student would copy it."""
    return TrainConfig(
        env=EnvConfig.of(f"iap/{terrain}-v0", last_action=False),
        policy=PolicyConfig((48, 32, 1), sensors=34, actions=22, encoder=encoder, controller=MLP((24,))),
        pretraining=DAgger(),
        iterations=0,
        evaluate_episodes=40,
    )


STEP_STONES, STONE_GRID, STAIRS = (_on(terrain, RANK) for terrain in ("StepStones", "StoneGrid", "Stairs"))
STEP_STONES_TRANS, STONE_GRID_TRANS, STAIRS_TRANS = (
    _on(terrain, TRANS) for terrain in ("StepStones", "StoneGrid", "Stairs")
)
