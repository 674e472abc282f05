"""Selected patches, including ties, are the same in every library; drawn patches are distributed by their scores."""

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from iap.attention import KERNELS, ReLU, Softmax, gather, mask, sample, soft_top_k, top
from iap.attention.kernels.selection import select_top

# few different numbers, so that there are many ties; both zeros, and infinities
LEVELS = st.sampled_from([-np.inf, -1.5, -0.0, 0.0, 1e-30, 1.0, 2.0, np.inf])
SCORES = st.lists(LEVELS, min_size=1, max_size=30).map(lambda levels: np.array(levels, np.float32))
FEW_SCORES = tuple(np.random.default_rng(seed).choice([-np.inf, -0.0, 0.0, 1.0, np.inf], 12) for seed in range(8))


def best_by_hand(scores, top_k):
    """Largest first; among equal scores, the lower index first."""
    return sorted(range(len(scores)), key=lambda index: (-scores[index], index))[:top_k]


def uniforms_of(*shape, seed=0):
    return np.random.default_rng(seed).uniform(1e-6, 1, shape).astype(np.float32)


def test_the_largest_scores_come_first_and_ties_are_ordered_by_index(library):
    @given(library.cases(SCORES, *FEW_SCORES), st.data())
    def check(scores, data):
        scores = scores.astype(np.float32)
        top_k = data.draw(st.one_of(st.just(1), st.just(len(scores)), st.integers(1, len(scores))))
        expected = best_by_hand(scores, top_k)
        assert library.numpy(top(library.array(scores), top_k)).tolist() == expected
        batch = np.stack([scores, scores[::-1], np.zeros_like(scores)])
        several = library.numpy(top(library.array(batch), top_k)).tolist()
        assert several == [expected, best_by_hand(scores[::-1], top_k), list(range(top_k))]

    check()


@given(st.lists(LEVELS, min_size=1, max_size=90), st.booleans(), st.data())
def test_insertion_partition_and_sort_select_the_same_patches(levels, reverse, data):
    """For one image few patches are inserted into a sorted list and many are partitioned; batches are sorted."""
    scores = np.array(levels, np.float32)[:: -1 if reverse else 1]
    top_k = data.draw(st.integers(1, len(scores)))
    for selected in (top(scores, top_k), select_top(scores, top_k)):
        np.testing.assert_array_equal(selected, top(scores[None], top_k)[0])
        assert selected.dtype == np.int64


@pytest.mark.parametrize("top_k", [1, 16, 32])
@pytest.mark.parametrize("levels", [3, 40, 10_000])
@pytest.mark.parametrize("count", [127, 1024, 5000])
def test_compiled_and_generic_selection_agree_on_many_patches(top_k, levels, count):
    scores = np.random.default_rng(0).integers(-levels, levels, count).astype(np.float32)
    for ordered in (scores, np.sort(scores), np.sort(scores)[::-1].copy()):
        np.testing.assert_array_equal(select_top(ordered, top_k), top(ordered[None], top_k)[0])


@pytest.mark.parametrize("top_k", [1, 5, 40, 50])
@pytest.mark.parametrize("place", [0, 30, 49])
def test_nan_is_refused_at_any_index(top_k, place):
    scores = np.linspace(1, 0, 50, dtype=np.float32)
    scores[place] = np.nan
    for select in (top, select_top):
        with pytest.raises(ValueError, match="scores must not hold NaN"):
            select(scores, top_k)


def test_many_scores_are_sorted_the_same_way_in_every_library(library):
    scores = np.random.default_rng(0).normal(size=(2, 19_200)).astype(np.float32)
    np.testing.assert_array_equal(library.numpy(top(library.array(scores), 10)), np.argsort(-scores)[:, :10])
    np.testing.assert_array_equal(library.numpy(top(library.array(scores[0]), 10)), np.argsort(-scores[0])[:10])


def test_soft_shares_range_from_zero_to_one_over_the_selected_scores(library):
    scores = np.array([[5, 1, 3, 2, -4], [1, 1, 1, 1, 0], [0, 7, 7, 0, 6]], np.float32)
    shares = library.numpy(soft_top_k(library.array(scores), 3))
    assert shares.dtype == np.float32
    np.testing.assert_allclose(shares, [[1, 0, 1 / 3, 0, 0], [0, 0, 0, 0, 0], [0, 1, 1, 0, 0]], atol=1e-6)


@given(st.integers(1, 12), st.integers(0, 99))
def test_soft_shares_are_continuous_and_select_the_top(top_k, seed):
    scores = np.random.default_rng(seed).standard_normal(12)
    shares = soft_top_k(scores, top_k)
    assert set(np.flatnonzero(shares)) <= set(top(scores, top_k).tolist())
    assert np.count_nonzero(shares) == top_k - 1
    span = np.ptp(np.sort(scores)[-top_k:])
    moved = soft_top_k(scores + 1e-9 * np.random.default_rng(seed + 1).standard_normal(12), top_k)
    assert np.abs(moved - shares).max() <= 1e-7 / max(span, 1e-2) if top_k > 1 else not moved.any()


@pytest.mark.parametrize("name", ["jax", "torch"])
def test_the_gradient_of_soft_shares_equals_finite_differences(name, open_library):
    library = open_library(name)
    scores = np.array([5, 1, 3, 2.5, -4], np.float32)
    weights = np.array([1, -2, 3, 5, 7], np.float32)

    def loss(x):
        return (soft_top_k(x, 3) * library.array(weights)).sum()

    if name == "jax":
        import jax

        gradient = np.asarray(jax.grad(loss)(library.array(scores)))
    else:
        x = library.array(scores).requires_grad_()
        loss(x).backward()
        gradient = x.grad.numpy()
    precise, step = scores.astype(np.float64), 1e-6
    slopes = [
        ((soft_top_k(precise + d, 3) - soft_top_k(precise - d, 3)) @ weights) / (2 * step) for d in step * np.eye(5)
    ]
    # the smallest selected score has share 0: it has a gradient as the divisor's end, not as a patch
    np.testing.assert_allclose(gradient, slopes, atol=5 * 0.5 / 2.5)
    np.testing.assert_allclose(np.delete(gradient, 3), np.delete(slopes, 3), atol=1e-4)


def test_each_draw_is_in_proportion_to_the_remaining_scores(library):
    scores = np.array([0.5, 3, 0, 1, 1.5], np.float32)
    draws = 6000
    repeated = np.tile(scores, (draws, 1))
    selected = library.numpy(sample(library.array(repeated), 2, library.array(uniforms_of(draws, 5)), ReLU()))
    share = scores / scores.sum()
    first = np.bincount(selected[:, 0], minlength=5)
    likely = share > 0
    assert not first[~likely].any()
    assert stats.chisquare(first[likely], draws * share[likely]).pvalue > 1e-3
    pairs = list(itertools.permutations(np.flatnonzero(likely), 2))
    expected = [draws * share[i] * share[j] / (1 - share[i]) for i, j in pairs]
    counted = [np.sum((selected[:, 0] == i) & (selected[:, 1] == j)) for i, j in pairs]
    assert sum(counted) == draws
    assert stats.chisquare(counted, expected).pvalue > 1e-3


@given(st.lists(st.sampled_from([0.0, 1e-3, 1.0, 5.0]), min_size=1, max_size=20), st.integers(0, 99), st.data())
def test_draws_are_different_and_zeros_come_last(levels, seed, data):
    scores = np.array(levels, np.float32)
    top_k = data.draw(st.integers(1, len(scores)))
    selected = sample(scores, top_k, uniforms_of(len(scores), seed=seed), Softmax())
    assert len(set(selected.tolist())) == top_k
    drawn = scores[selected] > 0
    assert np.all(drawn[:-1] >= drawn[1:])
    assert drawn.sum() == min(top_k, np.count_nonzero(scores))


def test_the_same_uniforms_give_the_same_sample_in_every_library(library):
    scores = np.random.default_rng(0).exponential(size=(3, 200)).astype(np.float32)
    scores[:, ::7] = 0
    uniforms = uniforms_of(3, 200)
    reference = sample(scores, 200, uniforms, Softmax())
    np.testing.assert_array_equal(reference, sample(scores, 200, uniforms, Softmax()))
    found = library.numpy(sample(library.array(scores), 200, library.array(uniforms), Softmax()))
    np.testing.assert_array_equal(found, reference)
    assert np.any(reference != sample(scores, 200, uniforms_of(3, 200, seed=1), Softmax()))


def test_uniforms_of_zero_and_one_are_accepted(library):
    scores = np.array([1, 2, 3, 0], np.float32)
    uniforms = np.array([0, 1, 0.5, 1], np.float32)
    selected = library.numpy(sample(library.array(scores), 4, library.array(uniforms), ReLU()))
    assert selected.tolist() == [1, 2, 0, 3]


@pytest.mark.parametrize("normalised", [False, True])
def test_trigonometric_scores_cannot_be_sampled_even_if_all_are_positive(normalised):
    with pytest.raises(ValueError, match=r'kernel .*"trigonometric"'):
        sample(np.ones(5, np.float32), 2, uniforms_of(5), Softmax("trigonometric", normalised=normalised))


def test_scores_of_every_kernel_without_signs_can_be_sampled():
    for kernel in KERNELS.values():
        if not kernel.signed:
            assert len(sample(np.ones(5, np.float32), 2, uniforms_of(5), kernel)) == 2


def test_selected_rows_are_gathered_in_order_or_left_in_place(library):
    anything = st.tuples(st.sampled_from([(), (2,), (2, 3)]), st.integers(1, 9), st.integers(1, 4), st.integers(0, 99))

    @given(library.cases(anything, ((), 7, 3, 0), ((2, 3), 5, 2, 1)), st.booleans())
    def check(case, shared):
        batch, patches, width, seed = case
        rng = np.random.default_rng(seed)
        top_k = int(rng.integers(1, patches + 1))
        values = rng.normal(size=(patches, width) if shared else (*batch, patches, width)).astype(np.float32)
        selected = rng.permuted(np.tile(np.arange(patches), (*batch, 1)), axis=-1)[..., :top_k]
        v, c = library.array(values), library.array(selected)
        gathered, masked = library.numpy(gather(v, c)), library.numpy(mask(v, c))
        assert gathered.dtype == masked.dtype == np.float32
        for index in np.ndindex(*batch):
            own = values if shared else values[index]
            np.testing.assert_array_equal(gathered[index], [own[i] for i in selected[index]])
            expected = [own[i] if i in selected[index] else np.zeros(width) for i in range(patches)]
            np.testing.assert_array_equal(masked[index], expected)

    check()


@pytest.mark.parametrize(
    ("scores", "top_k", "error", "message"),
    [
        (np.ones(5, np.float32), 0, ValueError, "top_k .* not 0"),
        (np.ones(5, np.float32), -1, ValueError, "top_k .* not -1"),
        (np.ones(5, np.float32), 6, ValueError, "top_k must be between 1 and 5 .* not 6"),
        (np.ones((9, 5), np.float32), 6, ValueError, "top_k must be between 1 and 5 .* not 6"),
        (np.ones(5, np.float32), 2.0, TypeError, "top_k .* not 2.0"),
        (np.array([1, np.nan, 2], np.float32), 1, ValueError, "scores .* NaN"),
        (np.array([[1, 2], [np.nan, 2]], np.float32), 2, ValueError, "scores .* NaN"),
        (np.ones(5, np.int32), 2, TypeError, "scores .*int32"),
        (np.ones((), np.float32), 1, ValueError, r"scores .* shape \(\)"),
    ],
)
def test_invalid_arguments_of_top_are_refused(scores, top_k, error, message):
    with pytest.raises(error, match=message):
        top(scores, top_k)


@pytest.mark.parametrize(
    ("scores", "top_k", "uniforms", "error", "message"),
    [
        (np.array([1, -2, 3], np.float32), 1, uniforms_of(3), ValueError, r"scores .* -2\.0"),
        (np.array([1, np.nan, 3], np.float32), 1, uniforms_of(3), ValueError, "scores .* nan"),
        (np.ones(3, np.float32), 4, uniforms_of(3), ValueError, "top_k .* not 4"),
        (np.ones(3, np.float32), 1, uniforms_of(4), ValueError, r"uniforms .* 3, not of shape \(4,\)"),
        (np.ones(3, np.float32), 1, np.array([0.5, np.nan, 0.5], np.float32), ValueError, "uniforms .* NaN"),
        (np.ones(3, np.int32), 1, uniforms_of(3), TypeError, "scores .*int32"),
    ],
)
def test_invalid_arguments_of_sample_are_refused(scores, top_k, uniforms, error, message):
    with pytest.raises(error, match=message):
        sample(scores, top_k, uniforms, ReLU())


def test_lists_are_refused():
    with pytest.raises(TypeError, match=r"scores .* list"):
        top([1.0, 2.0], 1)
    with pytest.raises(TypeError, match=r"uniforms .* list"):
        sample(np.ones(2, np.float32), 1, [0.5, 0.5], ReLU())
    for function in (gather, mask):
        with pytest.raises(TypeError, match=r"values .* list"):
            function([[1.0]], np.array([0]))
        with pytest.raises(TypeError, match=r"selected .* list"):
            function(np.ones((1, 1), np.float32), [0])
