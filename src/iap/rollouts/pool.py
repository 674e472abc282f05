"""What every pool promises, and the book-keeping that they share."""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, Protocol, Self

import numpy as np
from jaxtyping import Float

from iap.attention.arrays import require_count, require_floats
from iap.policies import Normaliser, blocks
from iap.rollouts.episode import Episode
from iap.rollouts.job import Job, failed_episode

# A worker has one core: more threads would only get in each other's way. Set before NumPy is loaded.
ONE_CORE = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "BLIS_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "LP_NUM_THREADS": "0",  # Mesa's: 0 draws in the calling thread
}
LONGEST_S = 1e6
START_TIMEOUT_S = 120.0  # to import everything and build the environment


class PoolError(RuntimeError):
    """No worker can be had, for example because the environment cannot be built."""


def unbuildable(job: Job, reason: str) -> PoolError:
    """The error of a pool without a single worker."""
    return PoolError(f"no worker can be started for {job.env.id}: {reason}")


class Task(NamedTuple):
    """One episode to be run."""

    theta: Float[np.ndarray, " p"]
    seed: int


class Failure(NamedTuple):
    """Why a worker has no result."""

    reason: str


class Pool(Protocol):
    """Somewhere to run episodes; what comes out does not depend on where."""

    def evaluate(
        self,
        thetas: Float[np.ndarray, "n p"],
        seeds: Sequence[Sequence[int]],
        normaliser: Normaliser | None = None,
    ) -> list[list[Episode]]:
        """The episodes of each θ with each of its seeds, in that order.

        An episode that fails is run again, and at last reported with its error and a total of NaN.
        """
        ...

    def close(self) -> None:
        """End all workers."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


def require_seconds(name: str, value: float) -> float:
    """`value` as a length of time that a clock can measure."""
    if not 0 < value <= LONGEST_S:
        raise ValueError(f"{name} must be more than 0 and at most {LONGEST_S:g} seconds, not {value}")
    return float(value)


class TaskQueue:
    """The episodes of one evaluation: which still wait, how often each has failed, and what came of them."""

    def __init__(
        self, job: Job, thetas: Float[np.ndarray, "n p"], seeds: Sequence[Sequence[int]], retries: int
    ) -> None:
        require_floats("thetas", thetas, rank=2)
        count = blocks(job.policy)[-1].stop
        if thetas.shape[1] != count:
            raise ValueError(f"thetas must be (n, {count}) for this policy, not of shape {thetas.shape}")
        if len(seeds) != len(thetas):
            raise ValueError(f"seeds must be a list for each of {len(thetas)} thetas, not {len(seeds)} lists")
        self.tasks = [
            Task(theta, require_count("seed", seed, least=0))
            for theta, own in zip(np.asarray(thetas, np.float32), seeds, strict=True)
            for seed in own
        ]
        self._job, self._seeds, self._retries = job, seeds, retries
        self._waiting = deque(range(len(self.tasks)))
        self._failures = [0] * len(self.tasks)
        self._episodes: dict[int, Episode] = {}

    @property
    def done(self) -> bool:
        """Whether every episode is there."""
        return len(self._episodes) == len(self.tasks)

    def take(self) -> int | None:
        """The number of a task that waits, which now does no more."""
        return self._waiting.popleft() if self._waiting else None

    def put_back(self, number: int) -> None:
        """Let a task wait again, before all others, through no fault of its own."""
        self._waiting.appendleft(number)

    def finish(self, number: int, episode: Episode) -> None:
        """Note a result."""
        self._episodes[number] = episode

    def fail(self, number: int, reason: str) -> None:
        """Note a failure: the task waits for another try, unless it had them all."""
        self._failures[number] += 1
        if self._failures[number] <= self._retries:
            self.put_back(number)
        else:
            tries = self._failures[number]
            error = f"failed {tries} times, at last: {reason}" if tries > 1 else reason
            self.finish(number, failed_episode(self._job, self.tasks[number].seed, error))

    def episodes(self) -> list[list[Episode]]:
        """All results, in the order asked for."""
        ordered = (self._episodes[number] for number in range(len(self.tasks)))
        return [[next(ordered) for _ in own] for own in self._seeds]
