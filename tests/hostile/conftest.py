"""Tests of hostile input can import their modules of cases."""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


import mutations


@pytest.fixture(autouse=True)
def _number_of_cases(request) -> None:
    """The option --fuzz."""
    mutations.factor = request.config.getoption("--fuzz")


@pytest.fixture
def tmp_path(tmp_path) -> Iterator[Path]:
    """A folder in memory, where the system has such: thousands of files are written."""
    memory = Path("/dev/shm")
    with tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else tmp_path) as folder:
        yield Path(folder)
