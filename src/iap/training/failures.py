"""Episodes that fail: the first error of a run is reported and kept; a generation without a return ends the run."""

from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from jaxtyping import Float

from iap.policies import Normaliser
from iap.rollouts import Episode, Job, Pool, PoolError
from iap.training.run_directory import RunDirectory


class EpisodesFailedError(RuntimeError):
    """All episodes of a generation failed, so there is nothing to learn from."""


class FailureLog:
    """A pool that writes the first error of an episode to the folder of the run, and reports it in one line.

    Args:
        pool: what runs the episodes.
        run: where the error is written.
        report: called with the line.
    """

    def __init__(self, pool: Pool, run: RunDirectory, report: Callable[[str], None]) -> None:
        self._pool, self._run, self._report = pool, run, report
        self._is_silent = False

    def evaluate(
        self,
        thetas: Float[np.ndarray, "n p"],
        seeds: Sequence[Sequence[int]],
        normaliser: Normaliser | None = None,
    ) -> list[list[Episode]]:
        """Run the episodes of each θ with each of its seeds."""
        try:
            results = self._pool.evaluate(thetas, seeds, normaliser)
        except PoolError as error:
            self._run.save_error(f"{error}\n")
            raise
        failed = [episode for own in results for episode in own if episode.error is not None]
        if failed and not self._is_silent:
            self._is_silent = True
            first = failed[0]
            self._run.save_error(f"episode of seed {first.seed}: {first.error}\n\n{first.trace}".rstrip() + "\n")
            count = sum(map(len, results))
            self._report(f"{len(failed)} of {count} episodes failed: {first.error} (see {self._run.error_file})")
        return results

    def for_job(self, job: Job) -> Pool:
        """A pool of the same kind for another job, whose errors its user reports."""
        return self._pool.for_job(job)

    def close(self) -> None:
        """Stop all workers."""
        self._pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __getattr__(self, name: str) -> Any:
        """What a kind of pool has besides."""
        return getattr(self._pool, name)


def require_a_return(episodes: Sequence[Episode], iteration: int) -> None:
    """Raise if all episodes failed."""
    if episodes and all(episode.error is not None for episode in episodes):
        what = "of the random search" if iteration == 0 else f"of iteration {iteration}"
        raise EpisodesFailedError(f"all {len(episodes)} episodes {what} failed: {episodes[0].error}")
