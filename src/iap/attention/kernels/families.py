"""The contract of a feature family in compiled code: four functions, chosen at compile time by the features' class.

Queries or keys are arrays (D, L) with half their squared norms (L,). Exponents are base 2, so queries and keys of the
softmax kernel carry a factor √(log₂ e), and `half_norms` is log₂(e)·‖x‖²/2. Numbers that could overflow are pairs
(values, exponents), which stand for values·2^exponents, with one exponent for all values or one for each.
"""

import math
from typing import Any

import numpy as np

from iap._compile import compiled, dispatched
from iap.attention.kernels.elementary import exp2
from iap.attention.kernels.projection import FAST

LOG2E = math.log2(math.e)
ROOT = math.sqrt(LOG2E)
HALF = np.float32(0.5)


@dispatched
def measure(features, x, half_norms):
    """Prepare projected queries or keys: compute `half_norms`, and rescale x if the kernel is normalised."""


@dispatched
def measure_stored(features, x, half_norms):
    """Compute `half_norms` of keys that `measure` has prepared before."""


@dispatched
def adapt(features, queries, query_norms, keys, key_norms) -> Any:
    """The features for this image: most families return `features` unchanged."""


@dispatched
def pool(features, x, half_norms, weights, exponents) -> Any:
    """(values, exponents) of Σ weight·2^exponent·φ(x), one sum a feature; empty `weights` stand for ones."""


@dispatched
def score(features, x, half_norms, pooled, exponents, each, scores) -> Any:
    """Write φ(x)·pooled of each patch to `scores` and return its exponents.

    With `each` even the smallest score keeps its precision; without, only those near the largest one.
    """


@compiled(fastmath=FAST)
def halve_norms(x, half_norms):
    """½‖x‖² of each patch."""
    half_norms[:] = 0
    for e in range(len(x)):
        row = x[e]
        for j in range(len(row)):
            half_norms[j] += HALF * row[j] * row[j]


@compiled(fastmath=FAST)
def put_on_sphere(x, half_norms, radius):
    """Scale each patch's x to the norm `radius`; 0 stays 0."""
    for j in range(len(half_norms)):
        squared = 2 * half_norms[j]
        half_norms[j] = radius / math.sqrt(squared) if squared > 0 else np.float32(0)
    for e in range(len(x)):
        row = x[e]
        for j in range(len(row)):
            row[j] *= half_norms[j]
    halve_norms(x, half_norms)


@compiled
def measure_softmax(features, x, half_norms):
    """`measure` for the softmax kernel; `features.radius` is 0 if the kernel is not normalised."""
    halve_norms(x, half_norms)
    if features.radius > 0:
        put_on_sphere(x, half_norms, features.radius)


@compiled
def measure_stored_softmax(features, x, half_norms):
    """`measure_stored` for the softmax kernel."""
    halve_norms(x, half_norms)


@compiled
def unchanged(features, queries, query_norms, keys, key_norms):
    """`adapt` for features that do not depend on the image."""
    return features


@compiled(fastmath=FAST)
def extreme_sizes(values):
    """The smallest and the largest of |values|."""
    smallest, largest = abs(values[0]), abs(values[0])
    for j in range(len(values)):
        smallest = min(smallest, abs(values[j]))
        largest = max(largest, abs(values[j]))
    return smallest, largest


@compiled(fastmath=FAST)
def times_powers_of_two(values, exponents):
    """values·2^exponents, in place; exponents are at most 127."""
    for j in range(len(values)):
        values[j] *= exp2(exponents[j])
