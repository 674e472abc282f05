"""Episodes in processes of this computer, one core each. Workers may crash, hang or be killed.

Evaluations go on as long as any worker can be started. A worker that was killed by a signal from outside, for example
by the system when memory is short, does not count as a failure of the episode it ran.
"""

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
from iap.rollouts.worker_slot import Report, WorkerSlot

MAX_FAILED_STARTS = 10  # of each worker in turn, with growing delays; about two minutes
MOST_DEATHS = 24  # of workers that crashed in a row, without a finished episode between them


class LocalPool:
    """Worker processes that run one episode at a time, and are replaced when they fail.

    Args:
        job: what the episodes have in common.
        workers: number of processes; by default the number of cores that this process may use.
        timeout_s: time limit of an episode.
        retries: how often an episode that failed, or that crashed its worker, is run again.
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
        self._env_was_built = False
        self._deaths = 0
        self._report = Report()
        self._slots = [WorkerSlot(self._pickled_job, core) for core in self._cores]

    def evaluate(
        self,
        thetas: Float[np.ndarray, "n p"],
        seeds: Sequence[Sequence[int]],
        normaliser: Normaliser | None = None,
    ) -> list[list[Episode]]:
        """Run the episodes of each θ with each of its seeds, and return them in that order.

        An interrupt closes the pool.
        """
        if not self._slots:
            raise PoolError("the pool is closed")
        queue = TaskQueue(self.job, thetas, seeds, self.retries)
        for worker in self.workers:
            worker.has_normaliser = False
        try:
            while not queue.is_done:
                for slot in self._slots:
                    slot.start_if_due()
                self._assign_tasks(queue, normaliser)
                self._collect(queue)
        except BaseException:
            self.close()
            raise
        return queue.episodes()

    @property
    def workers(self) -> list[WorkerProcess]:
        """The workers that run; others may wait for their start."""
        return [slot.worker for slot in self._slots if slot.worker is not None]

    def for_job(self, job: Job) -> "LocalPool":
        """A pool of the same kind and size for another job."""
        chosen = [core for core in self._cores if core is not None]
        return LocalPool(
            job, len(self._cores), timeout_s=self.timeout_s, retries=self.retries, cores=chosen if chosen else None
        )

    def close(self) -> None:
        """Stop all workers: ask idle ones to exit, kill the others."""
        for worker in self.workers:
            worker.request_exit()
        for slot in self._slots:
            slot.close()
        self._slots = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _assign_tasks(self, queue: TaskQueue, normaliser: Normaliser | None) -> None:
        """Send a task to each idle worker."""
        for slot in self._slots:
            worker = slot.worker
            if worker is None or not worker.is_idle or (number := queue.take()) is None:
                continue
            task = queue.tasks[number]
            messages = [task] if worker.has_normaliser else [SetNormaliser(normaliser), task]
            try:
                worker.send_task(number, messages, self.timeout_s)
                worker.has_normaliser = True
            except ConnectionError:  # it died while it was idle: not a failure of the task
                queue.put_back(number)
                self._report.add(worker.describe_exit())
                slot.replace()

    def _collect(self, queue: TaskQueue) -> None:
        """Wait until a worker sends a message, dies, exceeds its time limit, or can be started."""
        left_s = min(slot.deadline_s for slot in self._slots) - time.monotonic()
        timeout_s = None if left_s == math.inf else max(0.0, left_s)
        readable = wait([worker.connection for worker in self.workers], timeout_s)
        for slot in self._slots:
            if slot.worker is None:
                continue
            if slot.worker.connection in readable:
                self._handle_message(slot, slot.worker, queue)
            elif slot.worker.is_overdue:
                limit_s = self.timeout_s if slot.worker.is_ready else START_TIMEOUT_S
                failure = Failure(f"the worker exceeded its time limit of {limit_s:g} s")
                self._handle_failure(slot, slot.worker, failure, queue)

    def _handle_message(self, slot: WorkerSlot, worker: WorkerProcess, queue: TaskQueue) -> None:
        match worker.receive():
            case Ready():
                slot.set_ready()
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
            case Failure() as failure:
                if not self._env_was_built:
                    raise start_error(self.job, failure.reason)
                self._handle_failure(slot, worker, failure, queue)
            case None:
                failure = Failure(worker.describe_exit())
                self._handle_failure(slot, worker, failure, queue, was_killed=worker.was_killed)

    def _handle_failure(
        self, slot: WorkerSlot, worker: WorkerProcess, failure: Failure, queue: TaskQueue, *, was_killed: bool = False
    ) -> None:
        """Replace a worker that failed, and queue its task again.

        Raise if no worker can be started, or if many have died in a row: each new process takes seconds.
        """
        if not worker.is_ready:
            slot.fail_start(failure.reason)
            self._report.add(f"{failure.reason}, {slot.failed_starts} times while it started")
            self._require_start(slot, can_wait=was_killed or self._env_was_built)
            return
        self._report.add(failure.reason)
        if worker.task is not None and was_killed:
            queue.lose(worker.task, failure.reason)
        elif worker.task is not None:
            queue.fail(worker.task, failure.reason, failure.trace)
            self._deaths += 1
            if self._deaths >= MOST_DEATHS:
                dead = f"{self._deaths} episodes of {self.job.env.id} in a row ended their worker"
                raise PoolError(f"{dead}: {failure.reason}")
        slot.replace()

    def _require_start(self, slot: WorkerSlot, *, can_wait: bool) -> None:
        """Raise if the environment seems not to start at all, or if no worker has started for a long time."""
        is_hopeless = all(other.failed_starts > MAX_FAILED_STARTS for other in self._slots)
        if is_hopeless or (not can_wait and slot.failed_starts > self.retries):
            raise start_error(self.job, slot.last_reason)


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
