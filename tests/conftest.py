"""What several tests share: array libraries and kernels as parameters, and Hypothesis without a clock."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from iap.attention import Kernel, ReLU, Scaled, Softmax

# Nothing is timed in a test, and a build should not fail today on an example that it did not try yesterday.
settings.register_profile("iap", deadline=None, derandomize=True, max_examples=20)
settings.load_profile("iap")


@dataclass(frozen=True)
class Library:
    """An array library, and how to get into and out of it.

    Attributes:
        name: as it is imported.
        array: a NumPy array as one of the library's, of the same dtype.
    """

    name: str
    array: Callable[[np.ndarray], Any]

    def __repr__(self) -> str:
        return self.name

    def cases(self, any_case: SearchStrategy, *few: Any) -> SearchStrategy:
        """Any case, or one of a few for JAX, which compiles every operation anew for every new shape."""
        return st.sampled_from(few) if self.name == "jax" else any_case

    def numpy(self, x: Any) -> np.ndarray:
        """The library's array as NumPy's, of the same dtype."""
        return np.asarray(x.detach() if self.name == "torch" else x)

    def true(self, scaled: Scaled) -> np.ndarray:
        """`values · exp(log_scale)` in float64, where it rarely overflows."""
        values, log_scale = (self.numpy(part).astype(np.float64) for part in scaled)
        return values * np.exp(log_scale)


LIBRARIES = ("numpy", "jax", "torch")
KERNELS = [ReLU()] + [
    Softmax(features, normalised=normalised)
    for features in ("positive", "trigonometric", "hyperbolic", "favor++")
    for normalised in (False, True)
]


@pytest.fixture(scope="session")
def open_library() -> Callable[[str], Library]:
    """Name → library; PyTorch is an extra, so its tests are skipped where it is not installed."""

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
