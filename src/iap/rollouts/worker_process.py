"""A local worker seen from outside: how it is started, spoken to, waited for and ended.

It is started by a command of its own rather than through `multiprocessing`, which would import the parent's main module
in it, and with that all that a worker does not need.
"""

import contextlib
import math
import os
import signal
import subprocess
import sys
import tempfile
import time
from multiprocessing.connection import Pipe
from typing import Any

from iap.rollouts.pool import ONE_CORE

PATIENCE_S = 1.0  # with a worker that was asked to end, or is about to
LAST_WORDS = 1500  # characters of what a worker printed before it ended
STARTED_BY = "import sys; sys.path[:] = {path!r}; from iap.rollouts.worker import main; main({descriptor}, {core})"


class WorkerProcess:
    """A process of its own group, one thread and, if given, one core; it lives no longer than this process does."""

    def __init__(self, pickled_job: bytes, core: int | None, timeout_s: float) -> None:
        self.ready = False
        self.begun = False  # whether it has the normaliser of the present evaluation
        self.task: int | None = None  # the number of what it is busy with
        self.deadline_s = time.monotonic() + timeout_s
        self.connection, theirs = Pipe()
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed in `end`
        with theirs:
            command = STARTED_BY.format(path=sys.path, descriptor=theirs.fileno(), core=core)
            self._process = subprocess.Popen(
                [sys.executable, "-u", "-X", "faulthandler", "-c", command],
                stdin=subprocess.PIPE,  # never written to: the worker ends when it closes
                stdout=self._output,
                stderr=self._output,
                pass_fds=[theirs.fileno()],
                process_group=0,  # Ctrl-C is for the parent alone, and a kill reaches a worker's children too
                env={**os.environ, **ONE_CORE},
            )
        with contextlib.suppress(ConnectionError):  # if it is dead already, `hear` will tell
            self.connection.send_bytes(pickled_job)

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self._process.pid

    @property
    def idle(self) -> bool:
        """Whether it waits for a task."""
        return self.ready and self.task is None

    @property
    def overdue(self) -> bool:
        """Whether it should have said something by now, and has not."""
        return time.monotonic() > self.deadline_s and not self.connection.poll()

    def give(self, number: int, messages: list[Any], timeout_s: float) -> None:
        """Have it work on the task of that number; a ConnectionError if it is dead."""
        for message in messages:
            self.connection.send(message)
        self.task, self.deadline_s = number, time.monotonic() + timeout_s

    def hear(self) -> Any:
        """What it says; None if it is dead."""
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            return None

    def rest(self) -> None:
        """It has nothing to do from now on."""
        self.ready, self.task, self.deadline_s = True, None, math.inf

    def last_words(self) -> str:
        """How it ended, and what it printed before."""
        code = self._reap(PATIENCE_S)
        how = f"ended with status {code}" if code >= 0 else f"was ended by signal {-code} ({signal.strsignal(-code)})"
        self._output.seek(0)
        printed = self._output.read().decode(errors="replace").partition("\nExtension modules:")[0].strip()
        return f"the worker {how}" + (f": {printed[-LAST_WORDS:]}" if printed else "")

    def ask_to_end(self) -> None:
        """Have it close its environment and end, if it listens."""
        if self.idle:
            with contextlib.suppress(OSError):
                self.connection.send(None)

    def end(self) -> None:
        """Wait until it is gone, for a moment if it was asked to end; else kill it."""
        self._reap(PATIENCE_S if self.idle else 0)
        self.connection.close()
        self._output.close()
        assert self._process.stdin is not None
        self._process.stdin.close()

    def _reap(self, patience_s: float) -> int:
        """Its exit status; if it does not end in time it is killed, and what it started is in any case."""
        if self._process.returncode is None:
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(patience_s)
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        return self._process.wait()
