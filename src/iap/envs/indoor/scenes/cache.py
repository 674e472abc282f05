"""A cache of scenes on disk: generated folders and compiled models, of which the longest unused are deleted."""

import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from iap._compile_cache import CACHE_VARIABLE, user_cache

LIMIT_VARIABLE = "IAP_SCENE_CACHE_MB"
LIMIT_MB = 4_000
GENERATED, COMPILED = "generated", "compiled"


def cache_folder(kind: str) -> Path:
    """The folder of a kind of entries: below $IAP_CACHE_DIR if that is set, else below the user's cache folder."""
    base = Path(os.environ.get(CACHE_VARIABLE) or user_cache() / "iap")
    folder = base / "scenes" / kind
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def cached_folder(kind: str, name: str, make: Callable[[Path], object]) -> Path:
    """The folder of an entry; `make` fills it if it is not there yet. Several processes may ask for the same."""
    folder = cache_folder(kind) / name
    if folder.is_dir():
        with contextlib.suppress(OSError):
            os.utime(folder)
        return folder
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".") as part:
        content = Path(part) / "content"
        content.mkdir()
        make(content)
        with contextlib.suppress(OSError):  # another process was faster
            content.rename(folder)
    _trim(folder.parent, keep=folder)
    return folder


def _trim(parent: Path, keep: Path) -> None:
    """Delete the longest unused entries until the others fit into the limit."""
    most = float(os.environ.get(LIMIT_VARIABLE, LIMIT_MB)) * 1e6
    ages: list[tuple[float, int, Path]] = []
    for folder in parent.iterdir():
        with contextlib.suppress(OSError):
            if folder.is_dir() and not folder.name.startswith("."):
                size = sum(path.stat().st_size for path in folder.iterdir())
                ages.append((folder.stat().st_mtime, size, folder))
    total = sum(size for _, size, _ in ages)
    for _, size, folder in sorted(ages, key=lambda age: age[0]):
        if total <= most:
            return
        if folder != keep:
            shutil.rmtree(folder, ignore_errors=True)
            total -= size
