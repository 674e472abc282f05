"""A local worker from the side of its parent: start, send, receive, stop.

A worker is started by its own command and not through `multiprocessing`, which would import the main module of the
parent, and with it modules that a worker does not need.
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

EXIT_TIMEOUT_S = 1.0  # for a worker that was asked to exit, or is about to
MAX_REPORTED_OUTPUT = 1500  # characters of a worker's output in an error message
KILLS = {-signal.SIGKILL, -signal.SIGTERM, -signal.SIGHUP, -signal.SIGINT}  # exit statuses
COMMAND = "import sys; sys.path[:] = {path!r}; from iap.rollouts.worker import main; main({descriptor}, {core})"


class WorkerProcess:
    """A process in its own process group, with one thread and optionally one core. It exits with its parent.

    Args:
        pickled_job: the job.
        core: the core to run on; None leaves it to the scheduler.
        timeout_s: time limit for the start.
    """

    def __init__(self, pickled_job: bytes, core: int | None, timeout_s: float) -> None:
        self.is_ready = False
        self.has_normaliser = False  # whether it has the normaliser of the current evaluation
        self.task: int | None = None  # number of the task that it runs
        self._was_ended = False  # by this process
        self.deadline_s = time.monotonic() + timeout_s
        with contextlib.ExitStack() as stack:
            self.connection, theirs = (stack.enter_context(end) for end in Pipe())
            self._output = stack.enter_context(tempfile.TemporaryFile())
            command = COMMAND.format(path=sys.path, descriptor=theirs.fileno(), core=core)
            self._process = subprocess.Popen(
                [sys.executable, "-u", "-X", "faulthandler", "-c", command],
                stdin=subprocess.PIPE,  # never written to: the worker is killed when it closes
                stdout=self._output,
                stderr=self._output,
                pass_fds=[theirs.fileno()],
                process_group=0,  # Ctrl-C reaches the parent only, and a kill reaches the worker's children too
                env={**os.environ, **ONE_CORE},
            )
            stack.pop_all()  # closed in `close`
        theirs.close()
        with contextlib.suppress(ConnectionError):  # if it is dead already, `receive` returns None
            self.connection.send_bytes(pickled_job)

    @property
    def pid(self) -> int:
        """The process id."""
        return self._process.pid

    @property
    def is_idle(self) -> bool:
        """Whether it waits for a task."""
        return self.is_ready and self.task is None

    @property
    def is_overdue(self) -> bool:
        """Whether its time limit has passed without a message."""
        return time.monotonic() > self.deadline_s and not self.connection.poll()

    def send_task(self, number: int, messages: list[Any], timeout_s: float) -> None:
        """Send the messages of a task; raises ConnectionError if the worker is dead."""
        for message in messages:
            self.connection.send(message)
        self.task, self.deadline_s = number, time.monotonic() + timeout_s

    def receive(self) -> Any:
        """Return the next message; None if the worker is dead."""
        try:
            return self.connection.recv()
        except (EOFError, OSError):
            return None

    def set_idle(self) -> None:
        """Mark the worker as waiting for a task."""
        self.is_ready, self.task, self.deadline_s = True, None, math.inf

    @property
    def was_killed(self) -> bool:
        """Whether a signal from outside ended it, after its exit was described."""
        return not self._was_ended and self._process.returncode in KILLS

    def describe_exit(self) -> str:
        """Return how a dead worker ended, and the end of its output."""
        code = self._reap(EXIT_TIMEOUT_S)
        how = f"exited with status {code}" if code >= 0 else f"was killed by signal {-code} ({signal.strsignal(-code)})"
        self._output.seek(0)
        output = self._output.read().decode(errors="replace").partition("\nExtension modules:")[0].strip()
        return f"the worker {how}" + (f": {output[-MAX_REPORTED_OUTPUT:]}" if output else "")

    def request_exit(self) -> None:
        """Ask an idle worker to close its environment and exit."""
        if self.is_idle:
            with contextlib.suppress(OSError):
                self.connection.send(None)

    def close(self) -> None:
        """Wait shortly for an idle worker to exit; kill a busy one."""
        self._reap(EXIT_TIMEOUT_S if self.is_idle else 0)
        self.connection.close()
        self._output.close()
        assert self._process.stdin is not None
        self._process.stdin.close()

    def _reap(self, timeout_s: float) -> int:
        """Return the exit status; kill the worker after the timeout, and its children in any case."""
        if self._process.returncode is None:
            try:
                self._process.wait(timeout_s)
            except subprocess.TimeoutExpired:
                self._was_ended = True
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.pid, signal.SIGKILL)
        return self._process.wait()
