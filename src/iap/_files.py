"""Files that are there in whole or not at all, whatever happens while they are written."""

import os
from pathlib import Path


def write_whole(path: str | Path, content: bytes) -> None:
    """Write a file beside, then put it in the place of `path` in one go."""
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
