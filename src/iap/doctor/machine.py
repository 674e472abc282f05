"""What the doctor finds out about the computer itself: its Python, its cores, its memory, its disk."""

import os
import platform
import shutil
import sys
import tempfile
from pathlib import Path

OLDEST_PYTHON = (3, 11)
TRAINER_GB, WORKER_GB, RUN_GB = 1.0, 0.5, 1.0  # memory of the training process and of each worker; disk of a run
CGROUP = Path("/sys/fs/cgroup")


class UnfitError(Exception):
    """A part does not work, though nothing of it is missing or broken in this Python; with what mends it, if known."""

    def __init__(self, reason: str, fix: str | None = None) -> None:
        super().__init__(reason)
        self.fix = fix


def try_python() -> str:
    """The version of Python."""
    if sys.version_info < OLDEST_PYTHON:
        raise UnfitError(f"{platform.python_version()}, but at least {'.'.join(map(str, OLDEST_PYTHON))} is needed")
    return f"{platform.python_version()} on {platform.system()} {platform.machine()}"


def try_machine(cgroup: str | Path = CGROUP, memory: str | Path = "/proc/meminfo") -> str:
    """How many workers the cores and the memory are enough for."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    match _numbers(Path(cgroup, "cpu.max")):
        case [quota, period]:
            cores = max(1, min(cores, quota // period))
    lines = Path(memory).read_text().splitlines() if Path(memory).exists() else []
    free = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    free += [
        limit - used
        for limit in _numbers(Path(cgroup, "memory.max"))
        for used in _numbers(Path(cgroup, "memory.current"))
    ]
    counted = f"{cores} usable core{'s' * (cores > 1)}"
    if not free:
        return f"{counted}, memory unknown"
    free_gb = min(free) / 1e9
    workers = min(cores, int((free_gb - TRAINER_GB) / WORKER_GB))
    if workers < 1:
        raise UnfitError(f"{counted}, but {free_gb:.1f} GB of free memory; {TRAINER_GB + WORKER_GB} GB are needed")
    return f"{counted}, {free_gb:.1f} GB of free memory: room for {workers} worker{'s' * (workers > 1)}"


def try_disk(runs: str) -> str:
    """The folder that runs go to, or the nearest above it, can be written to and has room."""
    wanted = Path(runs).absolute()
    folder = next(folder for folder in (wanted, *wanted.parents) if folder.exists())
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(4096))
    except OSError as error:
        raise UnfitError(f"{folder} cannot be written to ({error.strerror})") from error
    free_gb = shutil.disk_usage(folder).free / 1e9
    if free_gb < RUN_GB:
        raise UnfitError(f"{free_gb:.1f} GB free in {folder}, but {RUN_GB} GB are needed")
    return f"{free_gb:,.1f} GB free in {folder}"


def _numbers(path: Path) -> list[int]:
    """The whole numbers in a file that may not be there."""
    return [int(word) for word in path.read_text().split() if word.isdigit()] if path.exists() else []
