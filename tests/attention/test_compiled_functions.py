"""Compiled selection, moments and feature maps equal their array-API counterparts."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from iap._compile import compiled
from iap.attention import Softmax, featurise, sample, weighted_moments
from iap.attention.kernels.features import put_features
from iap.attention.kernels.folding import compile_features
from iap.attention.kernels.moments import put_moments, shares_above_least
from iap.attention.kernels.selection import select_sample
from iap.attention.moments import MOMENTS
from iap.attention.selection import soft_top_k, top


@pytest.mark.parametrize("count", [1, 20, 50])
@given(seed=st.integers(0, 99))
def test_compiled_samples_equal_generic_samples(count, seed):
    rng = np.random.default_rng(seed)
    scores, uniforms = rng.exponential(size=50).astype(np.float32), rng.random(50, np.float32)
    scores[::7] = 0
    np.testing.assert_array_equal(select_sample(scores, uniforms, count), sample(scores, count, uniforms, Softmax()))


def test_compiled_samples_refuse_negative_scores():
    with pytest.raises(ValueError, match="scores must not be negative"):
        select_sample(np.array([1, -1], np.float32), np.full(2, 0.5, np.float32), 1)


@given(patches=st.integers(1, 30), seed=st.integers(0, 99))
def test_compiled_moments_equal_generic_moments(patches, seed):
    rng = np.random.default_rng(seed)
    centres, weights = rng.uniform(-1, 1, (40, 2)), rng.uniform(0, 1, patches) * (rng.random(patches) < 0.7)
    selected = rng.permutation(40)[:patches]
    found = np.zeros(MOMENTS)
    put_moments(weights, centres, selected, 5.0, found)
    expected = weighted_moments(weights[None], centres[selected], 5.0)[0]
    np.testing.assert_allclose(found, expected, atol=1e-12)


def test_compiled_shares_equal_soft_shares_unless_all_scores_are_equal():
    scores = np.random.default_rng(0).standard_normal(30).astype(np.float32)
    selected = top(scores, 8)
    np.testing.assert_allclose(shares_above_least(scores, selected), soft_top_k(scores, 8)[selected], rtol=1e-5)
    np.testing.assert_array_equal(shares_above_least(np.ones(5, np.float32), np.arange(3)), np.ones(3))


@compiled
def features_of(feature_map, queries, keys):
    """`put_features`, which exists in compiled code only."""
    return put_features(feature_map, queries, keys)


def test_compiled_features_equal_generic_features(kernel):
    rng = np.random.default_rng(0)
    queries, keys = rng.standard_normal((2, 20, 4)).astype(np.float32)
    values = features_of(compile_features(kernel, 4), np.ascontiguousarray(queries.T), np.ascontiguousarray(keys.T))
    for (value, log), expected in zip((values[:2], values[2:]), featurise(kernel, queries, keys), strict=True):
        np.testing.assert_allclose((value * np.exp(log)).T, expected.true(), rtol=1e-4, atol=1e-6)
