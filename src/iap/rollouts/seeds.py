"""Three disjoint ranges of environment seeds: evaluation, validation during training, and training itself."""

import numpy as np

RANGE_SIZE = 1 << 29
EVALUATION_SEEDS = 0  # first seed of each range
VALIDATION_SEEDS = EVALUATION_SEEDS + RANGE_SIZE
TRAINING_SEEDS = VALIDATION_SEEDS + RANGE_SIZE


def draw_seeds(seed: int, stream: int, count: int, first: int = EVALUATION_SEEDS) -> list[int]:
    """Draw `count` seeds that depend only on the arguments.

    Args:
        seed: seed of the run.
        stream: number of the stream, such as the iteration; different streams are independent.
        count: how many seeds.
        first: first seed of the range to draw from, for example `TRAINING_SEEDS`.
    """
    words = np.random.SeedSequence([seed, stream]).generate_state(count)
    return [first + int(word) % RANGE_SIZE for word in words]
