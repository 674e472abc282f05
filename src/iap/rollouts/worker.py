"""The inside of a local worker: a process that runs one episode after another for the process that started it."""

import contextlib
import fcntl
import gc
import os
import pickle
import select
import signal
import traceback
from multiprocessing.connection import Connection
from typing import NamedTuple

from iap.policies import Normaliser
from iap.rollouts.job import Runner, explain
from iap.rollouts.pool import Failure, Task

INPUT, OUTPUT = 0, 1  # file descriptors


class Ready(NamedTuple):
    """The environment is built."""


class Begin(NamedTuple):
    """All tasks from now on are to be normalised by this."""

    normaliser: Normaliser | None


def main(descriptor: int, core: int | None) -> None:
    """Serve whoever holds the other end of the socket, until it says None or is gone."""
    _end_with_parent()
    if core is not None:
        os.sched_setaffinity(0, {core})
    with Connection(descriptor) as parent, contextlib.suppress(ConnectionError):
        try:
            _serve(parent)
        except Exception as error:
            traceback.print_exc()
            parent.send(Failure(explain(error)))


def _serve(parent: Connection) -> None:
    runner = Runner(pickle.loads(parent.recv_bytes()))
    gc.freeze()  # what is there now stays, and need not be gone through again and again
    parent.send(Ready())
    normaliser = None
    while (message := parent.recv()) is not None:
        if isinstance(message, Begin):
            normaliser = message.normaliser
        elif isinstance(message, Task):
            _forget_output()
            parent.send(runner.run(*message, normaliser))
    runner.close()


def _end_with_parent() -> None:
    """Have the kernel kill this process and its children when the parent, however it ends, lets go of our input.

    Even a worker that hangs in compiled code ends so; where the system cannot, it ends after its episode.
    """
    if hasattr(fcntl, "F_SETSIG"):
        fcntl.fcntl(INPUT, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(INPUT, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(INPUT, fcntl.F_SETFL, os.O_ASYNC)
    if select.select([INPUT], [], [], 0)[0]:  # nothing is ever written to it: it has ended already
        os._exit(1)


def _forget_output() -> None:
    """Empty the file that all output goes to: only the last episode's is of interest, should it be the last."""
    os.lseek(OUTPUT, 0, os.SEEK_SET)
    os.ftruncate(OUTPUT, 0)
