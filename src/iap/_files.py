"""Atomic writing of files."""

import os
from pathlib import Path


def write_whole(path: str | Path, content: bytes) -> None:
    """Write to a temporary file in the same folder, then replace `path` by it."""
    path = Path(path)
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with beside.open("wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    finally:
        beside.unlink(missing_ok=True)
