"""Checks of the computer: Python, cores, memory and disk."""

import os
import platform
import shutil
import sys
import tempfile
from pathlib import Path

OLDEST_PYTHON = (3, 11)
TRAINER_GB, WORKER_GB = 1.0, 0.5  # memory of the training process and of each worker
RUN_GB = 1.0  # disk space of a run
CGROUP = Path("/sys/fs/cgroup")
MEMORY = Path("/proc/meminfo")


class CheckError(Exception):
    """A check failed although nothing is missing or broken in the Python packages.

    Attributes:
        fix: the command that repairs it, if one is known.
    """

    def __init__(self, reason: str, fix: str | None = None) -> None:
        super().__init__(reason)
        self.fix = fix


def check_python() -> str:
    """The version of Python."""
    if sys.version_info < OLDEST_PYTHON:
        raise CheckError(f"{platform.python_version()}, but at least {'.'.join(map(str, OLDEST_PYTHON))} is needed")
    return f"{platform.python_version()} on {platform.system()} {platform.machine()}"


def check_machine(cgroup: str | Path = CGROUP, memory: str | Path = MEMORY) -> str:
    """The number of workers for which cores and memory suffice, within the limits of a container."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    match _integers(Path(cgroup, "cpu.max")):
        case [quota, period]:
            cores = max(1, min(cores, quota // period))
    lines = Path(memory).read_text().splitlines() if Path(memory).exists() else []
    free = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    free += [
        limit - used
        for limit in _integers(Path(cgroup, "memory.max"))
        for used in _integers(Path(cgroup, "memory.current"))
    ]
    usable = f"{cores} usable core{'s' * (cores > 1)}"
    if not free:
        return f"{usable}, memory unknown"
    free_gb = min(free) / 1e9
    workers = min(cores, int((free_gb - TRAINER_GB) / WORKER_GB))
    if workers < 1:
        raise CheckError(f"{usable}, but {free_gb:.1f} GB of free memory; {TRAINER_GB + WORKER_GB} GB are needed")
    return f"{usable}, {free_gb:.1f} GB of free memory: enough for {workers} worker{'s' * (workers > 1)}"


def check_disk(runs: str) -> str:
    """The folder of runs, or its nearest parent that exists, is writable and has enough free space."""
    wanted = Path(runs).absolute()
    folder = next(folder for folder in (wanted, *wanted.parents) if folder.exists())
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(4096))
    except OSError as error:
        raise CheckError(f"{folder} cannot be written to ({error.strerror})") from error
    free_gb = shutil.disk_usage(folder).free / 1e9
    if free_gb < RUN_GB:
        raise CheckError(f"{free_gb:.1f} GB free in {folder}, but {RUN_GB} GB are needed")
    return f"{free_gb:,.1f} GB free in {folder}"


def _integers(path: Path) -> list[int]:
    """The integers in a file; none if the file does not exist."""
    return [int(word) for word in path.read_text().split() if word.isdigit()] if path.exists() else []
