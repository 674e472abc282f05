"""The interface of every pool, and the task queue that pools share."""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple, Protocol, Self

import numpy as np
from jaxtyping import Float

from iap._validation import require_count
from iap.attention.arrays import require_floats
from iap.policies import Normaliser, blocks
from iap.rollouts.episode import Episode
from iap.rollouts.job import Job, failed_episode

# Environment variables of a worker, which has one core: more threads would compete for it. Set before NumPy is loaded.
ONE_CORE = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "BLIS_NUM_THREADS": "1",
    "VECLIB_MAXIMUM_THREADS": "1",
    "NUMEXPR_NUM_THREADS": "1",
    "NUMBA_NUM_THREADS": "1",
    "LP_NUM_THREADS": "0",  # Mesa: 0 renders in the calling thread
}
MAX_TIMEOUT_S = 1e6
MAX_KILLS = 12  # of workers by signals from outside, during the same episode
START_TIMEOUT_S = 120.0  # to import all modules and build the environment


class PoolError(RuntimeError):
    """No worker can be started, for example because the environment cannot be built; or all of them die."""


def start_error(job: Job, reason: str) -> PoolError:
    """Return the error of a pool that cannot start a worker."""
    return PoolError(f"no worker can be started for {job.env.id}: {reason}")


class Task(NamedTuple):
    """One episode to run."""

    theta: Float[np.ndarray, " p"]
    seed: int


class Failure(NamedTuple):
    """Why a worker has no result, and the traceback, if an error was raised.

    Attributes:
        reason: one line.
        trace: the traceback.
        is_alive: whether the worker has a new environment and waits for the next task.
    """

    reason: str
    trace: str = ""
    is_alive: bool = False


class Pool(Protocol):
    """Runs episodes. Results do not depend on the kind of pool or its number of workers."""

    def evaluate(
        self,
        thetas: Float[np.ndarray, "n p"],
        seeds: Sequence[Sequence[int]],
        normaliser: Normaliser | None = None,
    ) -> list[list[Episode]]:
        """Run the episodes of each θ with each of its seeds, and return them in that order.

        An episode that fails is run again. After the last retry it is returned with its error and a return of NaN.
        """
        ...

    def for_job(self, job: Job) -> "Pool":
        """A pool of the same kind and size for another job, to be closed by the caller."""
        ...

    def close(self) -> None:
        """Stop all workers."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


def require_timeout(name: str, value: float) -> float:
    """Return `value` as a time limit in seconds."""
    if not 0 < value <= MAX_TIMEOUT_S:
        raise ValueError(f"{name} must be more than 0 and at most {MAX_TIMEOUT_S:g} seconds, not {value}")
    return float(value)


class TaskQueue:
    """The episodes of one evaluation: the tasks that wait, the failures of each, and the results."""

    def __init__(
        self, job: Job, thetas: Float[np.ndarray, "n p"], seeds: Sequence[Sequence[int]], retries: int
    ) -> None:
        require_floats("thetas", thetas, rank=2)
        count = blocks(job.policy)[-1].stop
        if thetas.shape[1] != count:
            raise ValueError(f"thetas must have shape (n, {count}) for this policy, not {thetas.shape}")
        if len(seeds) != len(thetas):
            raise ValueError(f"seeds must be one list per theta, {len(thetas)}, not {len(seeds)} lists")
        self.tasks = [
            Task(theta, require_count("seed", seed, least=0))
            for theta, own in zip(np.asarray(thetas, np.float32), seeds, strict=True)
            for seed in own
        ]
        self._job, self._seeds, self._retries = job, seeds, retries
        self._waiting = deque(range(len(self.tasks)))
        self._failures = [0] * len(self.tasks)
        self._kills = [0] * len(self.tasks)
        self._episodes: dict[int, Episode] = {}

    @property
    def is_done(self) -> bool:
        """Whether all episodes are finished."""
        return len(self._episodes) == len(self.tasks)

    def take(self) -> int | None:
        """Remove the next waiting task and return its number; None if none waits."""
        return self._waiting.popleft() if self._waiting else None

    def put_back(self, number: int) -> None:
        """Put a task at the front of the queue without counting a failure."""
        self._waiting.appendleft(number)

    def finish(self, number: int, episode: Episode) -> None:
        """Store a result."""
        self._episodes[number] = episode

    def fail(self, number: int, reason: str, trace: str = "") -> None:
        """Count a failure, and queue the task again or, after the last retry, store a failed episode."""
        self._failures[number] += 1
        failures = self._failures[number]
        if failures <= self._retries:
            self.put_back(number)
        else:
            error = f"failed {failures} times, the last time with: {reason}" if failures > 1 else reason
            self.finish(number, failed_episode(self._job, self.tasks[number].seed, error, trace))

    def lose(self, number: int, reason: str) -> None:
        """Queue a task again whose worker was killed. After many times, the episode itself is the likely cause."""
        self._kills[number] += 1
        if self._kills[number] < MAX_KILLS:
            self.put_back(number)
        else:
            error = f"its worker was killed in {MAX_KILLS} of {MAX_KILLS} attempts; does it need more memory? {reason}"
            self.finish(number, failed_episode(self._job, self.tasks[number].seed, error))

    def episodes(self) -> list[list[Episode]]:
        """Return all results in the order of the seeds."""
        ordered = (self._episodes[number] for number in range(len(self.tasks)))
        return [[next(ordered) for _ in own] for own in self._seeds]
