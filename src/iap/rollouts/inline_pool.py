"""Episodes in this very process, one after the other: for debugging, and the reference of the other pools."""

from collections.abc import Sequence
from typing import Self

import numpy as np
from jaxtyping import Float

from iap.attention.arrays import require_count
from iap.policies import Normaliser
from iap.rollouts.episode import Episode
from iap.rollouts.job import Job, Runner, explain
from iap.rollouts.pool import TaskQueue, unbuildable


class InlinePool:
    """A pool without workers: nothing protects it from an environment that hangs or crashes."""

    def __init__(self, job: Job, *, retries: int = 2) -> None:
        self.job = job
        self.retries = require_count("retries", retries, least=0)
        self._runner: Runner | None = None

    def evaluate(
        self,
        thetas: Float[np.ndarray, "n p"],
        seeds: Sequence[Sequence[int]],
        normaliser: Normaliser | None = None,
    ) -> list[list[Episode]]:
        """The episodes of each θ with each of its seeds, in that order."""
        queue = TaskQueue(self.job, thetas, seeds, self.retries)
        while (number := queue.take()) is not None:
            runner = self._runner = self._runner or self._build()
            try:
                queue.finish(number, runner.run(*queue.tasks[number], normaliser))
            except Exception as error:
                queue.fail(number, explain(error))
                self.close()  # it may be in any state: the next try gets a new one
        return queue.episodes()

    def _build(self) -> Runner:
        try:
            return Runner(self.job)
        except Exception as error:
            raise unbuildable(self.job, explain(error)) from error

    def close(self) -> None:
        """Let go of the environment."""
        if self._runner is not None:
            self._runner.close()
            self._runner = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
