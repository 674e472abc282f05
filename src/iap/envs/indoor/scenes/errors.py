"""The error of a scene's files, and checks of their size."""

from pathlib import Path

LARGEST_BYTES = {".obj": 1 << 30, ".mtl": 1 << 24, ".txt": 1 << 20, ".png": 1 << 28, ".jpg": 1 << 28}
LARGEST_OTHER_BYTES = 1 << 30


class SceneError(ValueError):
    """A file of a scene is missing, truncated, too large or otherwise not as the format says."""

    def __init__(self, path: Path, problem: str) -> None:
        super().__init__(f"the scene cannot be loaded: {path} {problem}")


def read_bytes(path: Path) -> bytes:
    """The content of a file of a scene, which must not be empty or too large."""
    if not path.is_file():
        raise SceneError(path, "does not exist")
    most = LARGEST_BYTES.get(path.suffix.lower(), LARGEST_OTHER_BYTES)
    size = path.stat().st_size
    if size > most:
        raise SceneError(path, f"has {size:,} bytes, more than the {most:,} that are read")
    if size == 0:
        raise SceneError(path, "is empty")
    return path.read_bytes()


def read_text(path: Path) -> str:
    """The text of a file of a scene."""
    try:
        return read_bytes(path).decode("utf-8")
    except UnicodeDecodeError as error:
        raise SceneError(path, f"is not text: byte {error.start} is not UTF-8") from error
