"""The place of one local worker: starts it, and another one when it died, after a delay that grows if starts fail."""

import logging
import math
import time

from iap.rollouts.pool import START_TIMEOUT_S
from iap.rollouts.worker_process import WorkerProcess

LOG = logging.getLogger("iap.rollouts")  # on standard error, unless a program sets it otherwise
FIRST_DELAY_S, LONGEST_DELAY_S = 0.1, 30.0
REPORT_INTERVAL_S = 10.0


class WorkerSlot:
    """A worker, or the time at which the next one is started.

    Args:
        pickled_job: the job.
        core: the core to run on; None leaves it to the scheduler.
    """

    def __init__(self, pickled_job: bytes, core: int | None) -> None:
        self.worker: WorkerProcess | None = None
        self.failed_starts = 0  # since a worker was last ready
        self.last_reason = ""  # of a failed start
        self._pickled_job, self._core = pickled_job, core
        self._starts_at_s = -math.inf
        self.start_if_due()

    @property
    def deadline_s(self) -> float:
        """When something must be done: the time limit of the worker, or the start of the next one."""
        return self._starts_at_s if self.worker is None else self.worker.deadline_s

    @property
    def delay_s(self) -> float:
        """The wait before the next start."""
        return min(LONGEST_DELAY_S, FIRST_DELAY_S * 2.0 ** (self.failed_starts - 1)) if self.failed_starts else 0.0

    def start_if_due(self) -> None:
        """Start a worker if there is none and the delay has passed."""
        if self.worker is not None or time.monotonic() < self._starts_at_s:
            return
        try:
            self.worker = WorkerProcess(self._pickled_job, self._core, START_TIMEOUT_S)
        except OSError as error:  # the system has no process, file or memory left for it
            self.fail_start(str(error))

    def set_ready(self) -> None:
        """The worker has built its environment."""
        assert self.worker is not None
        self.worker.set_idle()
        self.failed_starts = 0

    def fail_start(self, reason: str) -> None:
        """Start another worker after a delay, twice as long as that before."""
        self.failed_starts += 1
        self.last_reason = reason
        self.close()
        self._starts_at_s = time.monotonic() + self.delay_s

    def replace(self) -> None:
        """Start another worker at once."""
        self.close()
        self._starts_at_s = -math.inf
        self.start_if_due()

    def close(self) -> None:
        """Stop the worker."""
        if self.worker is not None:
            self.worker.close()
            self.worker = None


class Report:
    """Warnings about workers that died: the first at once, then one every ten seconds with their number."""

    def __init__(self) -> None:
        self._count, self._last_s = 0, -math.inf

    def add(self, line: str) -> None:
        """Report a worker that died."""
        self._count += 1
        if time.monotonic() - self._last_s > REPORT_INTERVAL_S:
            count = f" ({self._count} in all)" if self._count > 1 else ""
            LOG.warning("%s: another one is started%s", line, count)
            self._last_s = time.monotonic()
