"""Episodes in processes of this computer, one core each. Workers may crash, hang or be killed."""

import math
import os
import time
from collections.abc import Sequence
from multiprocessing.connection import wait
from typing import Self

import cloudpickle
import numpy as np
from jaxtyping import Float

from iap._validation import require_count
from iap.policies import Normaliser
from iap.rollouts.episode import Episode
from iap.rollouts.job import Job
from iap.rollouts.pool import START_TIMEOUT_S, Failure, PoolError, TaskQueue, require_timeout, start_error
from iap.rollouts.worker import Ready, SetNormaliser
from iap.rollouts.worker_process import WorkerProcess

MOST_DEATHS = 24  # of workers in a row, without a finished episode between them


class LocalPool:
    """Worker processes that run one episode at a time, and are replaced when they fail.

    Args:
        job: what the episodes have in common.
        workers: number of processes; by default the number of cores that this process may use.
        timeout_s: time limit of an episode.
        retries: how often an episode that failed is run again.
        cores: the core of each worker in turn, for measurements; by default chosen from those this process may use.
    """

    def __init__(
        self,
        job: Job,
        workers: int | None = None,
        *,
        timeout_s: float = 600.0,
        retries: int = 2,
        cores: Sequence[int] | None = None,
    ) -> None:
        self.job = job
        self.timeout_s = require_timeout("timeout_s", timeout_s)
        self.retries = require_count("retries", retries, least=0)
        self._cores = _assign_cores(None if workers is None else require_count("workers", workers), cores)
        self._pickled_job = cloudpickle.dumps(job)  # also pickles functions that are defined in a script
        self._failed_starts = [0] * len(self._cores)
        self._env_was_built = False
        self._deaths = 0
        self._workers = [self._start(index) for index in range(len(self._cores))]

    def evaluate(
        self,
        thetas: Float[np.ndarray, "n p"],
        seeds: Sequence[Sequence[int]],
        normaliser: Normaliser | None = None,
    ) -> list[list[Episode]]:
        """Run the episodes of each θ with each of its seeds, and return them in that order.

        An interrupt closes the pool.
        """
        if not self._workers:
            raise PoolError("the pool is closed")
        queue = TaskQueue(self.job, thetas, seeds, self.retries)
        for worker in self._workers:
            worker.has_normaliser = False
        try:
            while not queue.is_done:
                self._assign_tasks(queue, normaliser)
                self._collect(queue)
        except BaseException:
            self.close()
            raise
        return queue.episodes()

    def for_job(self, job: Job) -> "LocalPool":
        """A pool of the same kind and size for another job."""
        chosen = [core for core in self._cores if core is not None]
        return LocalPool(
            job, len(self._cores), timeout_s=self.timeout_s, retries=self.retries, cores=chosen if chosen else None
        )

    def close(self) -> None:
        """Stop all workers: ask idle ones to exit, kill the others."""
        for worker in self._workers:
            worker.request_exit()
        for worker in self._workers:
            worker.close()
        self._workers = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _assign_tasks(self, queue: TaskQueue, normaliser: Normaliser | None) -> None:
        """Send a task to each idle worker."""
        for index, worker in enumerate(self._workers):
            if not worker.is_idle or (number := queue.take()) is None:
                continue
            task = queue.tasks[number]
            messages = [task] if worker.has_normaliser else [SetNormaliser(normaliser), task]
            try:
                worker.send_task(number, messages, self.timeout_s)
                worker.has_normaliser = True
            except ConnectionError:  # it died while it was idle: not a failure of the task
                queue.put_back(number)
                self._replace(index)

    def _collect(self, queue: TaskQueue) -> None:
        """Wait until a worker sends a message, dies, or exceeds its time limit."""
        left_s = min(worker.deadline_s for worker in self._workers) - time.monotonic()
        timeout_s = None if left_s == math.inf else max(0.0, left_s)
        readable = wait([worker.connection for worker in self._workers], timeout_s)
        for index, worker in enumerate(self._workers):
            if worker.connection in readable:
                self._handle_message(index, queue)
            elif worker.is_overdue:
                limit_s = self.timeout_s if worker.is_ready else START_TIMEOUT_S
                self._handle_failure(index, f"the worker exceeded its time limit of {limit_s:g} s", queue)

    def _handle_message(self, index: int, queue: TaskQueue) -> None:
        worker = self._workers[index]
        match worker.receive():
            case Ready():
                worker.set_idle()
                self._failed_starts[index] = 0
                self._env_was_built = True
            case Episode() as episode:
                assert worker.task is not None
                queue.finish(worker.task, episode)
                worker.set_idle()
                self._deaths = 0
            case Failure(reason, trace, is_alive=True):
                assert worker.task is not None
                queue.fail(worker.task, reason, trace)
                worker.set_idle()
                self._deaths = 0
            case Failure(reason, trace):
                self._handle_failure(index, reason, queue, trace, can_retry_start=self._env_was_built)
            case None:
                self._handle_failure(index, worker.describe_exit(), queue)

    def _handle_failure(
        self, index: int, reason: str, queue: TaskQueue, trace: str = "", *, can_retry_start: bool = True
    ) -> None:
        """Replace a worker that failed, and queue its task again.

        Raise if no worker can be started, or if many have died in a row: each new process takes seconds.
        """
        worker = self._workers[index]
        if not worker.is_ready:
            self._failed_starts[index] += 1
            if not can_retry_start or self._failed_starts[index] > self.retries:
                raise start_error(self.job, reason)
        elif worker.task is not None:
            queue.fail(worker.task, reason, trace)
            self._deaths += 1
            if self._deaths >= MOST_DEATHS:
                raise PoolError(f"{self._deaths} episodes of {self.job.env.id} in a row ended their worker: {reason}")
        self._replace(index)

    def _replace(self, index: int) -> None:
        self._workers[index].close()
        self._workers[index] = self._start(index)

    def _start(self, index: int) -> WorkerProcess:
        return WorkerProcess(self._pickled_job, self._cores[index], START_TIMEOUT_S)


def _assign_cores(workers: int | None, chosen: Sequence[int] | None) -> list[int | None]:
    """Return a core for each worker: of those chosen, or of those that this process may use.

    By default, fewer workers than cores are left to the scheduler, because other pools would choose the same cores.
    """
    can_choose = hasattr(os, "sched_setaffinity")
    usable = sorted(os.sched_getaffinity(0)) if can_choose else list(range(os.cpu_count() or 1))
    cores = usable if chosen is None else [require_count("cores", core, least=0) for core in chosen]
    if not cores:
        raise ValueError("cores must name at least one core, not none")
    count = workers or len(cores)
    is_pinned = can_choose and (chosen is not None or count >= len(cores))
    return [cores[i % len(cores)] if is_pinned else None for i in range(count)]
