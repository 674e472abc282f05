"""The lock of a run's folder: one process writes, others are refused with its process id and host."""

import fcntl
import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

FILE = "run.lock"
MOST_BYTES = 4096

_held: dict[Path, int] = {}  # folders that this process has locked, and how often


class LockedError(ValueError):
    """Another process uses the folder; the message says which."""


@contextmanager
def lock_folder(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder, which is made if there is none; the process that holds it may take it again.

    The operating system releases the lock of a process that ends, however it ends, so a file that is left is only
    recognised as stale. If the file is of another host, whose processes cannot be checked from here, it is refused.
    """
    path = folder.resolve()
    if path in _held:
        _held[path] += 1
        try:
            yield
        finally:
            _held[path] -= 1
        return
    path.mkdir(parents=True, exist_ok=True)
    descriptor = _acquire(path / FILE)
    _held[path] = 1
    try:
        yield
    finally:
        del _held[path]
        with suppress(OSError):
            (path / FILE).unlink()
        os.close(descriptor)
        with suppress(OSError):
            path.rmdir()  # if nothing was written


def _acquire(file: Path) -> int:
    """The descriptor of the locked file, which holds this process's id and host."""
    while True:
        descriptor = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o644)
        try:
            _lock(descriptor, file)
            if _is_current(descriptor, file):  # not one that was removed by its holder meanwhile
                content = json.dumps({"pid": os.getpid(), "host": socket.gethostname()}).encode()
                os.ftruncate(descriptor, 0)
                os.pwrite(descriptor, content, 0)
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)


def _lock(descriptor: int, file: Path) -> None:
    holder = _holder(descriptor)
    pid, host = holder.get("pid"), holder.get("host")
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise LockedError(
            f"{file.parent} is in use by process {pid} on {host}: wait until it ends, or choose another folder"
        ) from None
    if holder and host != socket.gethostname():
        raise LockedError(
            f"{file.parent} was locked by process {pid} on the host {host}, which cannot be checked from here: if that "
            f"process has ended, delete {file}"
        )


def _holder(descriptor: int) -> dict[str, Any]:
    """What the file says about the process that wrote it; nothing if it is new or damaged."""
    try:
        holder = json.loads(os.pread(descriptor, MOST_BYTES, 0))
    except (ValueError, RecursionError):
        return {}
    return holder if isinstance(holder, dict) else {}


def _is_current(descriptor: int, file: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), file.lstat())
    except FileNotFoundError:
        return False
