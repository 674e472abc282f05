import json

import numpy as np
import pytest

from iap.attention import Softmax
from iap.bench.database import bench_database, ranking_methods, sampling_methods


def test_each_method_has_a_row_that_is_compared_with_recomputing():
    rows = bench_database(patches=(50,), projections=(3,), bits=(16,), repeats=2)
    assert [row["method"] for row in rows] == ["recompute", "exact", "hash", "recompute", "exact", "tree"]
    assert [row["bits"] for row in rows] == [None, None, 16, None, None, None]
    assert all(row["over_recompute"] == 1 and row["refresh_ms"] is None for row in rows if row["method"] == "recompute")
    assert all(row["step_ms"] > 0 for row in rows)
    assert all(row["overlap"] == 1 for row in rows if row["method"] in ("recompute", "exact"))
    json.dumps(rows, allow_nan=False)


@pytest.mark.parametrize("features", ["trigonometric", "positive"])
def test_recomputing_and_exact_lookup_select_the_same_patches(features):
    queries, keys = np.random.default_rng(1).standard_normal((2, 300, 4), dtype=np.float32)
    kernel = Softmax(features, 20, normalised=features == "trigonometric")
    if kernel.signed:
        recompute, exact, *_ = ranking_methods(kernel, queries, keys, 10, bits=(8,))
    else:
        recompute, exact, *_ = sampling_methods(kernel, queries, keys, 10, np.zeros(10))
    assert recompute.step().tolist() == exact.step().tolist()


def test_zero_repeats_are_refused():
    with pytest.raises(ValueError, match="repeats must be at least 1, not 0"):
        bench_database(repeats=0)
