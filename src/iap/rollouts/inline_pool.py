"""Episodes in the calling process, one after the other: for debugging, and as the reference for other pools."""

from collections.abc import Sequence
from typing import Self

import numpy as np
from jaxtyping import Float

from iap._validation import require_count
from iap.policies import Normaliser
from iap.rollouts.episode import Episode
from iap.rollouts.job import Job, Runner, describe_error, format_error
from iap.rollouts.pool import TaskQueue, start_error


class InlinePool:
    """A pool without workers. It has no time limit, and a crash of the environment ends the process.

    Args:
        job: what the episodes have in common.
        retries: how often an episode that raises is run again.
    """

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
        """Run the episodes of each θ with each of its seeds, and return them in that order."""
        queue = TaskQueue(self.job, thetas, seeds, self.retries)
        while (number := queue.take()) is not None:
            runner = self._runner = self._runner or self._build()
            try:
                queue.finish(number, runner.run(*queue.tasks[number], normaliser))
            except Exception as error:
                queue.fail(number, describe_error(error), format_error(error))
                self.close()  # the environment may be in any state, so the retry builds a new one
        return queue.episodes()

    def for_job(self, job: Job) -> "InlinePool":
        """A pool of the same kind for another job."""
        return InlinePool(job, retries=self.retries)

    def _build(self) -> Runner:
        try:
            return self.job.make_runner()
        except Exception as error:
            raise start_error(self.job, describe_error(error)) from error

    def close(self) -> None:
        """Close the environment."""
        if self._runner is not None:
            self._runner.close()
            self._runner = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
