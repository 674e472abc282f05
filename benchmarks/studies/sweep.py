"""How large patches are, how many dimensions they are compared in, how many are kept: ball_in_cup-catch, medium.

Each point has a small share of the preset's budget; evolution is separable, as d = 64 makes thousands of parameters.
"""

from dataclasses import replace
from itertools import product

from iap.evolution import SNES
from iap.training.config import TrainConfig
from iap.training.presets.control_suite import SUITE_PRESETS
from iap.policies import Rank

EVALUATE_WITH = {"split": "held-out", "difficulty": "medium"}
PATCHES, DIMENSIONS, KEPT = (2, 4, 8), (4, 16, 64), (10, 50, 100)
SEEDS = (0,)


def point(patch: int, d: int, top_k: int) -> TrainConfig:
    """The preset with other patches and a short search."""
    config = SUITE_PRESETS["ball_in_cup-catch-distracted"]
    assert isinstance(config.policy.encoder, Rank)
    return replace(
        config,
        policy=replace(config.policy, encoder=replace(config.policy.encoder, patch=patch, stride=patch, d=d, top_k=top_k)),
        strategy=SNES(population=16, sigma=0.3),
        random_search=24,
        iterations=5,
        episodes=4,
        max_steps=60,  # a ball that is caught by then stays caught
        evaluate_every=5,
    )


ARMS = {f"patch{p}-d{d}-keep{keep}": point(p, d, top_k) for d, p, keep in product(DIMENSIONS, PATCHES, KEPT)}
