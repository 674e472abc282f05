"""Episodes on a Ray cluster, whose nodes may join and leave as they like."""

import contextlib
import logging
import signal
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Self

import numpy as np
import ray
import ray._private.worker as ray_driver
import ray.exceptions
import ray.util
from jaxtyping import Float

from iap.attention.arrays import require_count
from iap.policies import Normaliser
from iap.rollouts.episode import Episode
from iap.rollouts.job import Job, Runner, explain
from iap.rollouts.pool import ONE_CORE, START_TIMEOUT_S, Failure, Task, TaskQueue, require_seconds, unbuildable

MOST_WAITING = 1000  # tasks handed to Ray at a time
MOST_UNBUILT = 100  # environments in a row that cannot be built, now that one could: some node is out of order

_runner: Runner | None = None  # of a Ray worker process, which like any other has one environment at a time


class Unbuilt(NamedTuple):
    """Why a worker could not even begin with an episode, which is no fault of the episode."""

    reason: str


class RayPool:
    """Tasks of one episode and one core each, wherever Ray finds that core.

    Args:
        job: what the episodes have in common; its environment and `iap` must be installed on every node.
        address: of a cluster ("auto", "host:port"); a cluster of this computer alone if not given. If this process is
            connected to one already, that is used.
        workers: how many cores a cluster of this computer has; all if not given.
        timeout_s: how long an episode may take.
        retries: how often an episode that failed is run again; those lost with their node do not count.
    """

    def __init__(
        self,
        job: Job,
        address: str | None = None,
        *,
        workers: int | None = None,
        timeout_s: float = 600.0,
        retries: int = 2,
    ) -> None:
        self.job = job
        self.timeout_s = require_seconds("timeout_s", timeout_s)
        self.retries = require_count("retries", retries, least=0)
        self._proven = False  # whether the environment was ever built
        self._unbuilt = 0  # how often it was not since the last episode
        self._owned = not ray.is_initialized()
        if self._owned:
            _connect(address, workers)

    def evaluate(
        self,
        thetas: Float[np.ndarray, "n p"],
        seeds: Sequence[Sequence[int]],
        normaliser: Normaliser | None = None,
    ) -> list[list[Episode]]:
        """The episodes of each θ with each of its seeds, in that order."""
        queue = TaskQueue(self.job, thetas, seeds, self.retries)
        self._prove()
        running: dict[Any, int] = {}
        job, shared = ray.put(self.job), ray.put(normaliser)
        try:
            while not queue.done:
                while len(running) < MOST_WAITING and (number := queue.take()) is not None:
                    running[_run.remote(job, queue.tasks[number], shared, self.timeout_s)] = number
                for reference in ray.wait(list(running))[0]:
                    self._take_in(reference, running.pop(reference), queue)
        finally:
            for reference in running:
                ray.cancel(reference, force=True)
        return queue.episodes()

    def close(self) -> None:
        """Leave the cluster, if this pool has joined it; one of this computer alone ends."""
        if self._owned and ray.is_initialized():
            ray.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _prove(self) -> None:
        """Build the environment once, somewhere, before every task tries to and fails."""
        if not self._proven:
            answer = _get(_build.options(max_retries=self.retries).remote(self.job))
            if isinstance(answer, Failure | Unbuilt):
                raise unbuildable(self.job, answer.reason)
            self._proven = True

    def _take_in(self, reference: Any, number: int, queue: TaskQueue) -> None:
        match _get(reference):
            case Episode() as episode:
                queue.finish(number, episode)
                self._unbuilt = 0
            case Failure(reason):
                queue.fail(number, reason)
            case Unbuilt(reason):
                queue.put_back(number)
                self._unbuilt += 1
                if self._unbuilt > MOST_UNBUILT:
                    raise unbuildable(self.job, reason)
            case None:
                queue.put_back(number)


def _get(reference: Any) -> Any:
    """What a task has returned, or why it has not; None if it was lost with its node."""
    try:
        return ray.get(reference)
    except (ray.exceptions.NodeDiedError, ray.exceptions.ObjectLostError):
        return None
    except ray.exceptions.WorkerCrashedError:
        return Failure("the worker crashed, was killed, or took too long")
    except ray.exceptions.OutOfMemoryError:
        return Failure("the worker was killed because its node ran out of memory")
    except ray.exceptions.RayError as error:  # the task has not even begun
        return Unbuilt(f"{type(error).__name__}: {error}")


@ray.remote(num_cpus=1, max_retries=0, runtime_env={"env_vars": ONE_CORE})
def _build(job: Job) -> Unbuilt | None:
    """In a Ray worker: build the environment, or tell why not."""
    runner = _runner_of(job)
    return runner if isinstance(runner, Unbuilt) else None


@ray.remote(num_cpus=1, max_retries=0, runtime_env={"env_vars": ONE_CORE})
def _run(job: Job, task: Task, normaliser: Normaliser | None, timeout_s: float) -> Episode | Failure | Unbuilt:
    """In a Ray worker: run an episode, or tell why not."""
    runner = _runner_of(job)
    if isinstance(runner, Unbuilt):
        return runner
    try:
        with _alarm(timeout_s):
            return runner.run(*task, normaliser)
    except Exception as error:
        _forget_runner()  # it may be in any state: the next try gets a new one
        return Failure(explain(error))


def _runner_of(job: Job) -> Runner | Unbuilt:
    global _runner  # noqa: PLW0603
    if _runner is None or _runner.job != job:
        _forget_runner()
        try:
            with _alarm(START_TIMEOUT_S):
                _runner = Runner(job)
        except Exception as error:
            return Unbuilt(f"{explain(error)} on {ray.util.get_node_ip_address()}")
    return _runner


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """End this process if it takes longer, even in compiled code: nobody handles the signal."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _forget_runner() -> None:
    global _runner
    if _runner is not None:
        runner, _runner = _runner, None
        runner.close()


def _connect(address: str | None, workers: int | None) -> None:
    """Join a cluster, or start one, without a word on standard output."""
    here: dict[str, Any] = {"num_cpus": workers, "include_dashboard": False} if address is None else {}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)  # JAX's: what is forked here is replaced at once
        # Without an address Ray would join any cluster that runs on this computer, and refuse a number of workers.
        ray.init(address=address or "local", log_to_driver=False, logging_level=logging.ERROR, **here)
    ray_driver._worker_logs_enabled = False  # it would print failures, which are reported with their episodes
