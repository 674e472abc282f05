"""Files: written whole or not at all, read only if they are regular files of a reasonable size."""

import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

# Files of writers that were killed: of this version, and of those before it, which named them after the process.
LEFTOVER = re.compile(r"\.[0-9a-f]{16}\.part(\.\w+)?|\..+\.\d+\.part(\.\w+)?")
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def write_whole(path: str | Path, *content: bytes | memoryview) -> None:
    """Write to a temporary file in the same folder, then replace `path` by it; on the disk before this returns.

    The temporary file has a random name and must be a new one, so that a link that somebody put there is not followed.
    """
    path = Path(path)
    partial = partial_file(path)
    try:
        with os.fdopen(os.open(partial, NEW_FILE, 0o666), "wb") as file:
            file.writelines(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)
    sync_folder(path.parent)


def partial_file(path: Path, suffix: str = "") -> Path:
    """A new name in the folder of `path` for a file that is being written."""
    return path.with_name(f".{secrets.token_hex(8)}.part{suffix}")


def append_text(path: Path, text: str) -> None:
    """Append to a file, on the disk before this returns; a link is not followed."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    with os.fdopen(os.open(path, flags, 0o666), "ab") as file:
        file.write(text.encode())
        file.flush()
        os.fsync(file.fileno())


def sync_folder(folder: Path) -> None:
    """Bring the names of a folder's files to the disk, on file systems that can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


def remove_leftovers(folder: Path) -> None:
    """Remove the temporary files of writers that were killed. Nobody else may write into the folder meanwhile."""
    if folder.is_dir():
        for path in folder.iterdir():
            if LEFTOVER.fullmatch(path.name):
                path.unlink(missing_ok=True)


@contextmanager
def open_regular(path: Path, most_bytes: int) -> Iterator[tuple[BinaryIO, int]]:
    """A file to read and its size; a ValueError if it is not a regular file, is too large or cannot be read.

    A pipe or a device, which may never end, is not waited for.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        raise ValueError(f"cannot be read: {error.strerror}") from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode) or status.st_size > most_bytes:
        os.close(descriptor)
        if stat.S_ISDIR(status.st_mode):
            raise ValueError("is a folder, not a file")
        too_large = stat.S_ISREG(status.st_mode)
        raise ValueError(f"is larger than {most_bytes >> 20} MB" if too_large else "is not a regular file")
    with os.fdopen(descriptor, "rb") as file:
        try:
            yield file, status.st_size
        except OSError as error:
            raise ValueError(f"cannot be read: {error.strerror}") from None


def read_text(path: Path, most_bytes: int) -> str:
    """The text of a regular file; a ValueError if there is none."""
    with open_regular(path, most_bytes) as (file, _):
        return file.read(most_bytes).decode("utf-8")
