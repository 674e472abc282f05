"""Episodes in processes of this computer, one core each, which may crash, hang or be killed."""

import math
import os
import pickle
import time
from collections.abc import Sequence
from multiprocessing.connection import wait
from typing import Self

import numpy as np
from jaxtyping import Float

from iap.attention.arrays import require_count
from iap.policies import Normaliser
from iap.rollouts.episode import Episode
from iap.rollouts.job import Job
from iap.rollouts.pool import START_TIMEOUT_S, Failure, PoolError, TaskQueue, require_seconds, unbuildable
from iap.rollouts.worker import Begin, Ready
from iap.rollouts.worker_process import WorkerProcess


class LocalPool:
    """Processes that are given one episode at a time, and are replaced when they fail.

    Args:
        job: what the episodes have in common.
        workers: how many processes; as many as this process may use cores if not given.
        timeout_s: how long an episode may take.
        retries: how often an episode that failed is run again.
        cores: the core of each worker in turn, for measurements; else chosen from those that this process may use.
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
        self.timeout_s = require_seconds("timeout_s", timeout_s)
        self.retries = require_count("retries", retries, least=0)
        self._cores = _share_out(None if workers is None else require_count("workers", workers), cores)
        self._pickled_job = pickle.dumps(job)
        self._failed_starts = [0] * len(self._cores)
        self._proven = False  # whether the environment was ever built
        self._workers = [self._start(place) for place in range(len(self._cores))]

    def evaluate(
        self,
        thetas: Float[np.ndarray, "n p"],
        seeds: Sequence[Sequence[int]],
        normaliser: Normaliser | None = None,
    ) -> list[list[Episode]]:
        """The episodes of each θ with each of its seeds, in that order; if it is interrupted, the pool closes."""
        if not self._workers:
            raise PoolError("the pool is closed")
        queue = TaskQueue(self.job, thetas, seeds, self.retries)
        for worker in self._workers:
            worker.begun = False
        try:
            while not queue.done:
                self._hand_out(queue, normaliser)
                self._take_in(queue)
        except BaseException:
            self.close()
            raise
        return queue.episodes()

    def close(self) -> None:
        """End all workers: idle ones are asked to, the others are killed."""
        for worker in self._workers:
            worker.ask_to_end()
        for worker in self._workers:
            worker.end()
        self._workers = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _hand_out(self, queue: TaskQueue, normaliser: Normaliser | None) -> None:
        """Give each idle worker a task."""
        for place, worker in enumerate(self._workers):
            if not worker.idle or (number := queue.take()) is None:
                continue
            task = queue.tasks[number]
            try:
                worker.give(number, [task] if worker.begun else [Begin(normaliser), task], self.timeout_s)
                worker.begun = True
            except ConnectionError:  # it ended while it was idle, which is not the task's fault
                queue.put_back(number)
                self._replace(place)

    def _take_in(self, queue: TaskQueue) -> None:
        """Wait until a worker says something, ends, or takes too long."""
        left_s = min(worker.deadline_s for worker in self._workers) - time.monotonic()
        heard = wait([worker.connection for worker in self._workers], None if left_s == math.inf else max(0.0, left_s))
        for place, worker in enumerate(self._workers):
            if worker.connection in heard:
                self._hear(place, queue)
            elif worker.overdue:
                limit_s = self.timeout_s if worker.ready else START_TIMEOUT_S
                self._lose(place, f"the worker took longer than {limit_s:g} s", queue)

    def _hear(self, place: int, queue: TaskQueue) -> None:
        worker = self._workers[place]
        match worker.hear():
            case Ready():
                worker.rest()
                self._failed_starts[place] = 0
                self._proven = True
            case Episode() as episode:
                assert worker.task is not None
                queue.finish(worker.task, episode)
                worker.rest()
            case Failure(reason):
                self._lose(place, reason, queue, final=not self._proven)
            case None:
                self._lose(place, worker.last_words(), queue)

    def _lose(self, place: int, reason: str, queue: TaskQueue, *, final: bool = False) -> None:
        """Replace a worker that failed, and have its task run again; if none can be started, give up."""
        worker = self._workers[place]
        if not worker.ready:
            self._failed_starts[place] += 1
            if final or self._failed_starts[place] > self.retries:
                raise unbuildable(self.job, reason)
        elif worker.task is not None:
            queue.fail(worker.task, reason)
        self._replace(place)

    def _replace(self, place: int) -> None:
        self._workers[place].end()
        self._workers[place] = self._start(place)

    def _start(self, place: int) -> WorkerProcess:
        return WorkerProcess(self._pickled_job, self._cores[place], START_TIMEOUT_S)


def _share_out(workers: int | None, wanted: Sequence[int] | None) -> list[int | None]:
    """A core for each worker: of those wanted, or of those that this process may use.

    Unless told, fewer workers than cores are left to the scheduler: pools beside this one would choose the same cores.
    """
    can_choose = hasattr(os, "sched_setaffinity")
    usable = sorted(os.sched_getaffinity(0)) if can_choose else list(range(os.cpu_count() or 1))
    cores = usable if wanted is None else [require_count("cores", core, least=0) for core in wanted]
    if not cores:
        raise ValueError("cores must name at least one core, not none")
    count = workers or len(cores)
    choose = can_choose and (wanted is not None or count >= len(cores))
    return [cores[i % len(cores)] if choose else None for i in range(count)]
