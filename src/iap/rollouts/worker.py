"""Main function of a local worker: a process that runs one episode after another for its parent."""

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
from iap.rollouts.job import describe_error, format_error
from iap.rollouts.pool import Failure, Task

INPUT, OUTPUT = 0, 1  # file descriptors


class Ready(NamedTuple):
    """Message to the parent: the environment is built."""


class SetNormaliser(NamedTuple):
    """Message from the parent: the normaliser of all following tasks."""

    normaliser: Normaliser | None


def main(descriptor: int, core: int | None) -> None:
    """Serve the parent at the other end of the socket until it sends None or closes the socket."""
    _exit_with_parent()
    if core is not None:
        os.sched_setaffinity(0, {core})
    with Connection(descriptor) as parent, contextlib.suppress(ConnectionError):
        try:
            _serve(parent)
        except Exception as error:
            traceback.print_exc()
            parent.send(Failure(describe_error(error), format_error(error)))


def _serve(parent: Connection) -> None:
    job = pickle.loads(parent.recv_bytes())
    runner = job.make_runner()
    gc.freeze()  # objects that exist now live until the end: exclude them from garbage collection
    parent.send(Ready())
    normaliser = None
    while (message := parent.recv()) is not None:
        if isinstance(message, SetNormaliser):
            normaliser = message.normaliser
        elif isinstance(message, Task):
            _truncate_output()
            try:
                answer = runner.run(*message, normaliser)
            except Exception as error:  # the environment may be in any state, so the retry builds a new one
                answer = Failure(describe_error(error), format_error(error), is_alive=True)
                runner.close()
                runner = job.make_runner()
            parent.send(answer)
    runner.close()


def _exit_with_parent() -> None:
    """Have the kernel kill this process and its children when the parent exits and thereby closes our input.

    This also ends a worker that hangs in compiled code. On systems without F_SETSIG a worker ends after its episode.
    """
    if hasattr(fcntl, "F_SETSIG"):
        fcntl.fcntl(INPUT, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(INPUT, fcntl.F_SETSIG, signal.SIGKILL)
        fcntl.fcntl(INPUT, fcntl.F_SETFL, os.O_ASYNC)
    if select.select([INPUT], [], [], 0)[0]:  # nothing is ever written to it, so the parent has exited already
        os._exit(1)


def _truncate_output() -> None:
    """Empty the file that receives all output: only the output of the last episode is reported after a crash."""
    os.lseek(OUTPUT, 0, os.SEEK_SET)
    os.ftruncate(OUTPUT, 0)
