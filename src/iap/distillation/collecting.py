"""Labelled episodes that run on a pool and are added to a dataset."""

from collections.abc import Callable, Sequence

import numpy as np

from iap.distillation.bank import Bank
from iap.distillation.labelling import LabelledEpisode
from iap.policies import Normaliser
from iap.rollouts import Pool

BLOCK = 8  # episodes that are collected before they are written


def collect(
    bank: Bank,
    number: int,
    steps: int,
    pool: Pool,
    theta: np.ndarray,
    normaliser: Normaliser,
    seeds: Callable[[int], Sequence[int]],
    report: Callable[[int], None],
) -> None:
    """Add blocks of episodes until a round has its steps.

    Args:
        bank: the dataset.
        number: of the round.
        steps: labelled steps of the round, at least.
        pool: of a `LabellingJob`.
        theta: of the student.
        normaliser: of the student.
        seeds: the seeds of `BLOCK` episodes, by the number of the block in the dataset.
        report: called with the steps so far.
    """
    while (done := bank.steps_of(number)) < steps:
        report(done)
        [episodes] = pool.evaluate(theta[None], [seeds(bank.blocks)], normaliser)
        finished = [episode for episode in episodes if isinstance(episode, LabelledEpisode) and episode.arrays]
        if not finished:
            raise RuntimeError(f"every episode of a block failed, the last one with: {episodes[-1].error}")
        bank.append(finished, number)
