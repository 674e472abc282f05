"""Patch size, query and key dimension and number of selected patches: ball_in_cup-catch, medium.

Each point has a small share of the preset's budget. The strategy is separable, because d = 64 has thousands of
parameters.
"""

from dataclasses import replace
from itertools import product

import iap
from iap.evolution import SNES
from iap.policies import Rank
from iap.training.config import TrainConfig

EVALUATE_WITH = {"split": "held-out", "difficulty": "medium"}
PATCHES, DIMENSIONS, TOP_KS = (2, 4, 8), (4, 16, 64), (10, 50, 100)
SEEDS = (0,)


def point(patch: int, d: int, top_k: int) -> TrainConfig:
    """The preset with another encoder and a short search."""
    config = iap.presets["ball_in_cup-catch"]
    assert isinstance(config.policy.encoder, Rank)
    encoder = replace(config.policy.encoder, patch=patch, stride=patch, d=d, top_k=top_k)
    return replace(
        config,
        policy=replace(config.policy, encoder=encoder),
        strategy=SNES(population=16, sigma=0.3),
        random_search=24,
        iterations=5,
        episodes=4,
        max_steps=60,  # a ball that was caught by then stays in the cup
        evaluate_every=5,
    )


ARMS = {f"patch{p}-d{d}-top{top_k}": point(p, d, top_k) for d, p, top_k in product(DIMENSIONS, PATCHES, TOP_KS)}
