import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iap.policies import Moments, Normaliser


def rows_of(count: int, size: int = 3, seed: int = 0) -> np.ndarray:
    return (100 + np.random.default_rng(seed).standard_normal((count, size)) * [1, 10, 0.1]).astype(np.float32)


@given(st.lists(st.integers(0, 20), min_size=1, max_size=6), st.integers(0, 99))
def test_merged_moments_are_those_of_all_rows_together(counts, seed):
    rows = rows_of(sum(counts), seed=seed)
    merged = Moments.none(3)
    for part in np.split(rows, np.cumsum(counts)[:-1]):
        merged = merged.merge(Moments.of(part))
    assert merged.count == len(rows)
    if len(rows):
        np.testing.assert_allclose(merged.mean, rows.mean(axis=0, dtype=np.float64), rtol=1e-12)
        np.testing.assert_allclose(merged.m2 / len(rows), rows.var(axis=0, dtype=np.float64), rtol=1e-9, atol=1e-12)


def test_merging_nothing_changes_no_bit():
    moments = Moments.of(rows_of(7))
    for merged in (moments.merge(Moments.none(3)), Moments.none(3).merge(moments)):
        assert merged.count == moments.count
        assert np.array_equal(merged.mean, moments.mean)
        assert np.array_equal(merged.m2, moments.m2)


def test_a_normaliser_stays_one_when_moments_are_merged_into_it():
    normaliser = Normaliser.none(3).merge(Moments.of(rows_of(50)))
    assert isinstance(normaliser, Normaliser)
    normal = np.stack([normaliser.apply(row) for row in rows_of(50)])
    np.testing.assert_allclose(normal.mean(axis=0), 0, atol=1e-4)
    np.testing.assert_allclose(normal.std(axis=0), 1, atol=1e-4)


def test_what_was_never_gathered_changes_nothing():
    x = np.array([1e9, -7, 0], np.float32)
    assert np.array_equal(Normaliser.none(3).apply(x), x)


def test_normalised_numbers_are_float32_and_clipped_at_five():
    normaliser = Normaliser(10, np.zeros(3), np.full(3, 10.0))
    normal = normaliser.apply(np.array([100, -100, 2], np.float32))
    assert normal.dtype == np.float32
    assert normal.tolist() == [5, -5, 2]


def test_a_constant_is_centred_and_keeps_its_unit():
    normaliser = Normaliser.of(np.full((9, 1), 3.0))
    assert normaliser.apply(np.array([4], np.float32)).tolist() == [1]


def test_moments_come_back_from_json_and_from_arrays_to_the_last_bit():
    moments = Normaliser.of(rows_of(11))
    for back in (
        Normaliser.from_json(json.loads(json.dumps(moments.to_json()))),
        Normaliser.from_arrays(moments.to_arrays()),
    ):
        assert back.count == moments.count
        assert np.array_equal(back.mean, moments.mean)
        assert np.array_equal(back.m2, moments.m2)


def test_moments_do_not_change_with_the_array_they_came_from():
    mean = np.zeros(2)
    moments = Moments(1, mean, np.zeros(2))
    mean[:] = 9
    assert moments.mean.tolist() == [0, 0]
    with pytest.raises(ValueError, match="read-only"):
        moments.mean[0] = 1


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"count": -1, "mean": [0.0], "m2": [0.0]}, "count must be a whole number"),
        ({"count": 1.5, "mean": [0.0], "m2": [0.0]}, "count must be a whole number"),
        ({"count": 1, "mean": [0.0], "m2": [-1.0]}, "m2 must not be negative"),
        ({"count": 1, "mean": [float("nan")], "m2": [0.0]}, "mean must be a vector of finite numbers"),
        ({"count": 1, "mean": [0.0], "m2": [0.0, 1.0]}, "mean and m2 must be of one length"),
        ({"count": 1, "mean": ["0"], "m2": [0.0]}, "mean must be a list of numbers"),
        ({"count": 1, "mean": [[0.0]], "m2": [0.0]}, "mean must be a list of numbers"),
        ({"count": 1, "mean": [10**400], "m2": [0.0]}, "mean holds a number too large"),
        ({"count": 1, "mean": [0.0]}, "holds count, mean and m2"),
        ([1], "holds count, mean and m2"),
    ],
)
def test_a_normaliser_that_cannot_be_is_refused(data, message):
    with pytest.raises(ValueError, match=message):
        Normaliser.from_json(data)


def test_arrays_that_are_no_normaliser_are_refused():
    arrays = Normaliser.of(rows_of(3)).to_arrays()
    with pytest.raises(ValueError, match="m2 missing"):
        Normaliser.from_arrays({name: x for name, x in arrays.items() if name != "m2"})
    with pytest.raises(ValueError, match="count must be one whole number"):
        Normaliser.from_arrays(arrays | {"count": np.array([1.0])})


def test_moments_of_different_lengths_do_not_merge():
    with pytest.raises(ValueError, match="3 numbers cannot merge with moments of 2"):
        Moments.none(3).merge(Moments.none(2))
    with pytest.raises(ValueError, match="rows must be"):
        Moments.of(np.zeros(3))
