import json

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from iap.attention.bounds import projections_for_ranking
from iap.bench.fidelity import Case, allowed_error, fidelity, spearman

KEYS = {"source", "kind", "map", "normalised", "m", "bits", "overlap", "spearman", "max_error", "epsilon", "draws"} | {
    "total_variation",
    "total_variation_direct",
}


@pytest.fixture(scope="module")
def rows() -> list[dict]:
    return fidelity(
        sources=("synthetic",), maps=("positive", "trigonometric"), projections=(15, 256), bits=(64, 1024), draws=6
    )


def pick(rows: list[dict], **wanted: object) -> dict:
    (row,) = [row for row in rows if wanted.items() <= row.items()]
    return row


@given(st.lists(st.tuples(st.integers(-5, 5), st.integers(-5, 5)), min_size=3, max_size=40))
def test_spearman_equals_scipy_also_with_ties(pairs):
    x, y = np.array(pairs, np.float32).T
    assume(x.std() > 0 and y.std() > 0)
    assert spearman(x, y) == pytest.approx(spearmanr(x, y)[0], abs=1e-9)


def test_the_correlation_with_constant_scores_is_zero():
    assert spearman(np.zeros(5, np.float32), np.arange(5, dtype=np.float32)) == 0


@given(st.integers(1, 10**6), st.integers(1, 16), st.floats(0.1, 10), st.floats(0.01, 0.5))
def test_the_allowed_error_is_the_smallest_for_which_m_projections_suffice(m, d, radius, p):
    epsilon = allowed_error(m, d, radius, p)
    assert epsilon is not None
    assert projections_for_ranking(d, radius, epsilon, p) <= m
    assert projections_for_ranking(d, radius, 0.99 * epsilon, p) >= m


def test_an_allowed_error_beyond_the_range_of_floats_is_none():
    assert allowed_error(15, 4, 1000, 0.1) is None


def test_all_rows_have_the_same_keys_and_are_json(rows):
    assert {frozenset(row) for row in rows} == {frozenset(KEYS)}
    assert json.loads(json.dumps(rows, allow_nan=False)) == rows
    assert len(rows) == 2 * 2 * 2 + 2 + 2


def test_with_few_projections_trigonometric_features_rank_like_exact_softmax_and_positive_ones_do_not(rows):
    best = pick(rows, kind="features", map="trigonometric", normalised=True, m=15)
    worst = pick(rows, kind="features", map="positive", normalised=True, m=15)
    assert best["overlap"] > 0.6
    assert worst["overlap"] < 0.3


@pytest.mark.parametrize("normalised", [False, True])
@pytest.mark.parametrize("name", ["positive", "trigonometric"])
def test_more_projections_improve_the_ranking(rows, name, normalised):
    few, many = (pick(rows, kind="features", map=name, normalised=normalised, m=m) for m in (15, 256))
    assert many["spearman"] > few["spearman"]
    assert many["overlap"] > few["overlap"]


def test_more_bits_improve_the_ranking(rows):
    few, many = (pick(rows, kind="hash", bits=bits) for bits in (64, 1024))
    assert many["spearman"] > few["spearman"]
    assert many["max_error"] < few["max_error"]


def test_errors_are_below_the_bounds_of_the_theorems(rows):
    bounded = [row for row in rows if row["epsilon"] is not None]
    assert [(row["kind"], row["m"], row["bits"]) for row in bounded] == [
        ("features", 15, None),
        ("features", 256, None),
        ("hash", 64, 64),
        ("hash", 64, 1024),
    ]
    assert all(0 < row["max_error"] < row["epsilon"] for row in bounded)


@pytest.mark.parametrize("normalised", [False, True])
def test_samples_of_the_tree_are_as_close_to_the_scores_as_direct_samples(rows, normalised):
    row = pick(rows, kind="tree", normalised=normalised)
    assert 0.05 < row["total_variation_direct"] < 0.3
    assert row["total_variation"] == pytest.approx(row["total_variation_direct"], rel=0.05)


def test_rows_of_frames_are_reproducible_and_progress_iterates_over_all_cases():
    seen: list[Case] = []

    def progress(cases):
        for case in cases:
            seen.append(case)
            yield case

    options = {"maps": ("trigonometric",), "projections": (64,), "bits": (256,), "draws": 2}
    rows = fidelity(sources=("frames",), progress=progress, **options)
    assert [(case.kind, case.normalised) for case in seen] == [(row["kind"], row["normalised"]) for row in rows]
    assert pick(rows, kind="features", normalised=True)["overlap"] > 0.5
    assert rows == fidelity(sources=("frames",), **options)


def test_an_unknown_source_is_refused():
    with pytest.raises(ValueError, match="not 'video'"):
        fidelity(sources=("video",))  # pyright: ignore[reportArgumentType]
