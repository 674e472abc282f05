"""Fixtures shared by the tests: array libraries and kernels as parameters; Hypothesis without deadlines."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from iap.attention import KERNELS as REGISTERED
from iap.attention import Kernel, ReLU, Scaled, Softmax

# No test is timed, and the same examples are tried in every run.
settings.register_profile("iap", deadline=None, derandomize=True, max_examples=20)
settings.load_profile("iap")


FIRST = (  # what takes longest: workers take whole files, and the last one should not be long
    "rollouts/test_ray_pool.py",
    "integration/test_pools.py",
    "integration/test_training.py",
    "integration/test_learning.py",
    "integration/test_examples.py",
    "distillation",
    "doctor",
    "interop",
    "test_compile.py",
    "integration",
    "envs",
    "cli",
    "policies",
    "evolution",
)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Start what takes longest first."""
    tests = Path(__file__).parent

    def place(item: pytest.Item) -> int:
        path = item.path.relative_to(tests)
        starts = [i for i, name in enumerate(FIRST) if path.is_relative_to(name)]
        return starts[0] if starts else len(FIRST)

    items.sort(key=place)


@dataclass(frozen=True)
class Library:
    """An array library, with conversions from and to NumPy.

    Attributes:
        name: the name of its module.
        array: converts a NumPy array to one of the library, of the same dtype.
    """

    name: str
    array: Callable[[np.ndarray], Any]

    def __repr__(self) -> str:
        return self.name

    def cases(self, any_case: SearchStrategy, *few: Any) -> SearchStrategy:
        """Any case, or one of a few for JAX, which compiles every operation for every new shape."""
        return st.sampled_from(few) if self.name == "jax" else any_case

    def numpy(self, x: Any) -> np.ndarray:
        """An array of the library as a NumPy array of the same dtype."""
        return np.asarray(x.detach() if self.name == "torch" else x)

    def true(self, scaled: Scaled) -> np.ndarray:
        """`values · exp(log_scale)` in float64, which rarely overflows."""
        values, log_scale = (self.numpy(part).astype(np.float64) for part in scaled)
        return values * np.exp(log_scale)


LIBRARIES = ("numpy", "jax", "torch")
KERNELS = [
    variant
    for kernel in REGISTERED.values()
    for variant in ([kernel] if isinstance(kernel, ReLU) else [kernel, replace(kernel, normalised=True)])
]
TWO_KERNELS = [ReLU(), Softmax("favor++", normalised=True)]


@pytest.fixture(scope="session")
def open_library() -> Callable[[str], Library]:
    """Name → library. PyTorch is an extra: its tests are skipped if it is not installed."""

    def open_one(name: str) -> Library:
        if name == "numpy":
            return Library("numpy", np.asarray)
        module = pytest.importorskip(name)
        if name == "jax":
            return Library("jax", module.numpy.asarray)
        return Library("torch", module.tensor)

    return open_one


@pytest.fixture(scope="session", params=LIBRARIES)
def library(request, open_library) -> Library:
    """Each array library in turn."""
    return open_library(request.param)


def _kernel_name(kernel: Kernel) -> str:
    if isinstance(kernel, ReLU):
        return "relu"
    return f"{kernel.features}-normalised" if kernel.normalised else kernel.features


@pytest.fixture(scope="session", params=KERNELS, ids=_kernel_name)
def kernel(request) -> Kernel:
    """Each kernel and feature map in turn, softmax normalised or not."""
    return request.param


def _pair_name(pair: tuple[str, Kernel]) -> str:
    return f"{pair[0]}-{_kernel_name(pair[1])}"


@pytest.fixture(
    scope="session",
    params=[("numpy", kernel) for kernel in KERNELS]
    + [(name, kernel) for name in LIBRARIES[1:] for kernel in TWO_KERNELS],
    ids=_pair_name,
)
def library_and_kernel(request, open_library) -> tuple[Library, Kernel]:
    """Each kernel on NumPy, and two kernels on the other libraries.

    One test, of the scores, runs each kernel on each library.
    """
    name, kernel = request.param
    return open_library(name), kernel


def pytest_addoption(parser: pytest.Parser) -> None:
    """How many random cases the tests of hostile input and of kills try."""
    parser.addoption("--fuzz", type=float, default=1.0, help="times as many cases of hostile input")
    parser.addoption("--chaos", type=int, default=0, help="number of runs that are killed again and again")
