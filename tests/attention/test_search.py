"""The databases of stored keys equal `rank_scores` or its estimates, and draw patches by their scores."""

import jax.numpy as jnp
import numpy as np
import pytest
from scipy.stats import chisquare

from iap.attention import ReLU, Scaled, Softmax, featurise, pool_queries, rank_scores, top
from iap.attention.search import ExactLookup, HashLookup, SamplingTree

TRIGONOMETRIC = Softmax("trigonometric", 15, normalised=True)
POSITIVE = Softmax("positive", 15)
KERNELS = [
    ReLU(),
    POSITIVE,
    TRIGONOMETRIC,
    Softmax("trigonometric", 15),
    Softmax("hyperbolic", 15, normalised=True),
    Softmax("favor++", 15),
]
SAMPLABLE = [kernel for kernel in KERNELS if not kernel.signed]


def some_features(kernel, patches, *, seed=0, size=1.0, dtype: type[np.floating] = np.float32):
    """φ(Q) and φ(K) of Gaussian queries and keys."""
    queries, keys = np.random.default_rng(seed).standard_normal((2, patches, 4)).astype(dtype) * dtype(size)
    return featurise(kernel, queries, keys)


def log_sum_exp_scores(queries, keys):
    """log r of positive features in float64, without a common scale."""
    rows = np.log(queries.values.astype(np.float64)) + queries.log_scale
    pooled = np.logaddexp.reduce(rows, axis=0) - np.log(len(rows))
    return np.logaddexp.reduce(np.log(keys.values.astype(np.float64)) + keys.log_scale + pooled, axis=-1)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("patches", [1, 6, 203, 5000])
def test_exact_lookup_equals_rank_scores_and_its_top(kernel, patches):
    queries, keys = some_features(kernel, patches)
    expected, pooled = rank_scores(queries, keys), pool_queries(queries)
    database = ExactLookup.build(keys)
    scores = database.scores(pooled)
    assert scores.values.shape == (patches,)
    assert scores.log_scale.shape == (1,)
    assert scores.values.dtype == scores.log_scale.dtype == np.float32
    largest = np.abs(expected.true()).max()
    np.testing.assert_allclose(scores.true(), expected.true(), rtol=2e-5, atol=2e-6 * largest)
    top_k = min(10, patches)
    assert database.top(pooled, top_k).tolist() == top(expected.values, top_k).tolist()


@pytest.mark.parametrize("patches", [7, 37, 2051])
def test_equal_keys_tie_and_are_ordered_by_index(patches):
    queries, keys = some_features(POSITIVE, patches)
    same = Scaled(keys.values, np.repeat(keys.log_scale[:1], patches, axis=0))
    assert ExactLookup.build(same).top(pool_queries(queries), 5).tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("size", [1e-3, 1.0, 30.0, 1000.0])
def test_exact_lookup_ranks_features_of_any_scale(size):
    queries, keys = some_features(POSITIVE, 400, size=size, dtype=np.float64)
    truth = log_sum_exp_scores(queries, keys)
    scores = ExactLookup.build(keys).scores(pool_queries(queries))
    assert np.isfinite(scores.values).all()
    best = np.argmax(truth)
    assert np.argmax(scores.values) == best
    visible = truth > truth[best] - 60  # scores e⁸⁷ times smaller than the largest may underflow
    logs = np.log(scores.values[visible]) + scores.log_scale.astype(np.float64)
    np.testing.assert_allclose(logs, truth[visible], rtol=1e-6, atol=1e-4)


def test_a_feature_that_is_zero_for_all_keys_does_not_affect_the_scale():
    keys = Scaled(np.array([[0, 1e-30], [0, 2e-30]], np.float32), np.zeros((1, 1), np.float32))
    pooled = Scaled(np.array([[1e30, 1e-30]], np.float32), np.zeros((1, 1), np.float32))
    scores = ExactLookup.build(keys).scores(pooled)
    np.testing.assert_allclose(scores.values, [0.5, 1])
    np.testing.assert_allclose(scores.log_scale, np.log(2e-30) + np.log(1e-30), rtol=1e-6)


def test_pooled_queries_of_zero_give_every_key_the_score_zero():
    _, keys = some_features(ReLU(), 9)
    nothing = Scaled(np.zeros((1, 4), np.float32), np.zeros((1, 1), np.float32))
    assert ExactLookup.build(keys).scores(nothing).true().tolist() == [0] * 9


@pytest.mark.parametrize("bits", [1, 63, 64, 65, 200])
def test_packed_distances_equal_the_plain_product_of_signs(bits):
    queries, keys = some_features(TRIGONOMETRIC, 123)
    pooled = pool_queries(queries)
    database = HashLookup.build(keys, TRIGONOMETRIC, bits)
    psi_keys = np.sign(keys.values @ database.directions.T) / np.sqrt(bits)
    psi_query = np.sign(database.directions @ pooled.values[0]) / np.sqrt(bits)
    products = psi_keys @ psi_query
    distances = database.distances(pooled)
    np.testing.assert_allclose(1 - 2 * distances / bits, products, atol=1e-5)
    np.testing.assert_allclose(database.angles(pooled), np.pi / 2 * (1 - products), atol=1e-5)
    assert database.words.nbytes == 123 * 8 * -(-bits // 64)


@pytest.mark.parametrize("top_k", [1, 10, 300])
def test_hash_lookup_selects_the_nearest_keys_with_ties_ordered_by_index(top_k):
    queries, keys = some_features(TRIGONOMETRIC, 300)
    pooled = pool_queries(queries)
    database = HashLookup.build(keys, TRIGONOMETRIC, 20)  # so few bits that many keys tie
    distances = database.distances(pooled)
    assert len(np.unique(distances)) < 20
    expected = np.argsort(distances, kind="stable")[:top_k]
    assert database.top(pooled, top_k).tolist() == expected.tolist()
    assert database.top(pooled, top_k).tolist() == top(-distances.astype(np.float32), top_k).tolist()


def test_hash_ranking_converges_to_the_exact_ranking_with_more_bits():
    overlaps, errors = np.zeros((2, 3))
    for seed in range(10):
        queries, keys = np.random.default_rng(seed).standard_normal((2, 300, 4), dtype=np.float32)
        query_features, key_features = featurise(TRIGONOMETRIC, queries + 1, keys)  # with a mean, so that scores differ
        exact, pooled = rank_scores(query_features, key_features), pool_queries(query_features)
        best = top(exact.values, 10)
        for i, bits in enumerate((32, 1024, 16_384)):
            database = HashLookup.build(key_features, TRIGONOMETRIC, bits, seed=seed)
            overlaps[i] += np.isin(best, database.top(pooled, 10)).mean() / 10
            errors[i] += np.abs(database.scores(pooled).true() - exact.true()).max() / 10
    assert overlaps[0] < 0.6
    assert overlaps[0] < overlaps[1] < overlaps[2]
    assert overlaps[2] > 0.9
    assert errors[1] < errors[0] / 3
    assert errors[2] < errors[1] / 3


def test_hashing_depends_on_directions_only():
    queries, keys = some_features(TRIGONOMETRIC, 50)
    pooled = pool_queries(queries)
    plain = HashLookup.build(keys, TRIGONOMETRIC, 100)
    huge = HashLookup.build(Scaled(keys.values, keys.log_scale + 1000), TRIGONOMETRIC, 100)
    tiny_query = Scaled(pooled.values * np.float32(1e-30), pooled.log_scale - 1000)
    np.testing.assert_array_equal(huge.distances(tiny_query), plain.distances(pooled))
    scores = huge.scores(tiny_query)
    np.testing.assert_array_equal(scores.values, plain.scores(pooled).values)
    shift = scores.log_scale - plain.scores(pooled).log_scale
    np.testing.assert_allclose(shift, np.log(1e-30), atol=1e-3)


def test_the_hash_depends_on_the_seed_of_the_directions():
    queries, keys = some_features(TRIGONOMETRIC, 40)
    pooled = pool_queries(queries)
    first, again, other = (HashLookup.build(keys, TRIGONOMETRIC, 130, seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.words, again.words)
    assert (first.distances(pooled) != other.distances(pooled)).any()


@pytest.mark.parametrize("patches", [1, 2, 3, 7, 64, 100])
@pytest.mark.parametrize("kernel", SAMPLABLE)
def test_every_node_of_the_tree_is_the_sum_of_its_leaves(patches, kernel):
    queries, keys = some_features(kernel, patches)
    tree = SamplingTree.build(keys, kernel)
    nodes = tree.nodes.astype(np.float64)
    for node in range(1, patches):
        np.testing.assert_allclose(nodes[node], nodes[2 * node] + nodes[2 * node + 1], rtol=1e-6)
    np.testing.assert_allclose(nodes[1], nodes[patches:].sum(axis=0), rtol=1e-5)
    np.testing.assert_allclose(nodes[patches:] * np.exp(tree.log_scale), keys.true(), rtol=1e-4)
    assert tree.draw(pool_queries(queries), 1, np.array([0.5]))[0] < patches


@pytest.mark.parametrize("patches", [1, 2, 37, 64, 1000])
@pytest.mark.parametrize("kernel", SAMPLABLE)
def test_evenly_spaced_numbers_draw_patches_in_proportion_to_their_scores(patches, kernel):
    queries, keys = some_features(kernel, patches)
    count = 20_000
    drawn = SamplingTree.build(keys, kernel).draw(pool_queries(queries), count, (np.arange(count) + 0.5) / count)
    scores = rank_scores(queries, keys).values.astype(np.float64)
    shares = np.bincount(drawn, minlength=patches)
    np.testing.assert_allclose(shares, count * scores / scores.sum(), atol=1.1)


def chi_square_p(drawn, scores):
    """The p-value of the observed frequencies if patches are drawn in proportion to their scores."""
    scores = scores.astype(np.float64)
    expected = len(drawn) * scores / scores.sum()
    assert expected.min() > 5
    return chisquare(np.bincount(drawn, minlength=len(scores)), expected).pvalue


def test_frequencies_match_the_scores_and_with_the_printed_query_they_do_not():
    patches, count = 37, 20_000
    queries, keys = np.random.default_rng(2).standard_normal((2, patches, 4)).astype(np.float32) * np.float32(0.5)
    query_features, key_features = featurise(POSITIVE, queries, keys)
    scores = rank_scores(query_features, key_features).values
    tree = SamplingTree.build(key_features, POSITIVE)
    uniforms = np.random.default_rng(3).random(count)
    drawn = tree.draw(pool_queries(query_features), count, uniforms)
    assert chi_square_p(drawn, scores) > 0.01
    summed, _ = featurise(POSITIVE, queries.sum(axis=0, keepdims=True), keys)  # z′ = φ(Σ q), as printed
    assert chi_square_p(tree.draw(pool_queries(summed), count, uniforms), scores) < 1e-6


def test_a_draw_depends_on_its_own_number_only():
    queries, keys = some_features(POSITIVE, 500)
    pooled, tree = pool_queries(queries), SamplingTree.build(keys, POSITIVE)
    uniforms = np.random.default_rng(0).random(20)
    drawn = tree.draw(pooled, 20, uniforms)
    assert drawn.tolist() == tree.draw(pooled, 20, uniforms).tolist()
    assert drawn[::-1].tolist() == tree.draw(pooled, 20, uniforms[::-1]).tolist()
    assert len(set(drawn.tolist())) > 5
    assert drawn.dtype == np.int64


def test_a_patch_of_score_zero_is_never_drawn():
    keys = np.zeros((21, 3), np.float32)
    keys[[4, 20]] = [[1, 0, 0], [0, 2, 0]]
    query_features, key_features = featurise(ReLU(), np.array([[1, 1, 1]], np.float32), keys)
    tree = SamplingTree.build(key_features, ReLU())
    uniforms = np.array([0, np.nextafter(0, 1), 0.3, 0.9, np.nextafter(1, 0)])
    assert set(tree.draw(pool_queries(query_features), 5, uniforms).tolist()) == {4, 20}


def test_a_walk_into_a_subtree_whose_scores_underflow_ends_at_a_patch():
    least = np.float32(1.4e-45)  # 0.4 of it rounds to 0, but 0.4 of the sum of two does not
    keys = Scaled(np.array([[0, least], [0, least], [0, 0], [1, 1]], np.float32), np.zeros((1, 1), np.float32))
    pooled = Scaled(np.array([[1, 0.4]], np.float32), np.zeros((1, 1), np.float32))
    assert SamplingTree.build(keys, ReLU()).draw(pooled, 2, np.array([0, 0.5])).tolist() == [0, 3]


@pytest.mark.parametrize("size", [1e-3, 30.0, 1000.0])
def test_draws_follow_the_scores_for_features_of_any_scale(size):
    queries, keys = some_features(POSITIVE, 100, size=size)
    count = 2000
    drawn = SamplingTree.build(keys, POSITIVE).draw(pool_queries(queries), count, (np.arange(count) + 0.5) / count)
    logs = log_sum_exp_scores(queries, keys)
    shares = np.exp(logs - logs.max())
    np.testing.assert_allclose(np.bincount(drawn, minlength=100), count * shares / shares.sum(), atol=1.5)


@pytest.mark.parametrize("kernel", [ReLU(), POSITIVE, Softmax("trigonometric", 15), Softmax(normalised=True)])
def test_hashing_refuses_kernels_whose_keys_differ_in_length(kernel):
    _, keys = some_features(kernel, 10)
    with pytest.raises(ValueError, match="kernel must be Softmax"):
        HashLookup.build(keys, kernel, 8)


def test_hashing_refuses_a_key_that_cannot_be_normalised():
    keys = np.ones((5, 4), np.float32)
    keys[2] = 0
    _, features = featurise(TRIGONOMETRIC, keys, keys)
    with pytest.raises(ValueError, match=r"keys must have one length, .* \(a key of 0 has none\)"):
        HashLookup.build(features, TRIGONOMETRIC, 8)


def test_a_signed_kernel_cannot_be_sampled():
    _, keys = some_features(TRIGONOMETRIC, 10)
    with pytest.raises(ValueError, match="can be negative"):
        SamplingTree.build(keys, TRIGONOMETRIC)
    with pytest.raises(ValueError, match="keys must not be negative"):
        SamplingTree.build(keys, POSITIVE)


def databases(patches=10):
    """A query function and valid pooled queries for each database."""
    queries, keys = some_features(TRIGONOMETRIC, patches)
    pooled = pool_queries(queries)
    exact, hashed = ExactLookup.build(keys), HashLookup.build(keys, TRIGONOMETRIC, 8)
    positive_queries, positive_keys = some_features(Softmax(projections=30), patches)
    tree = SamplingTree.build(positive_keys, Softmax(projections=30))
    return {
        "exact": (lambda queries, top_k=1: exact.top(queries, top_k), pooled),
        "hash": (lambda queries, top_k=1: hashed.top(queries, top_k), pooled),
        "tree": (
            lambda queries, top_k=1: tree.draw(queries, top_k, np.full(top_k, 0.5)),
            pool_queries(positive_queries),
        ),
    }


@pytest.mark.parametrize("name", ["exact", "hash", "tree"])
def test_invalid_pooled_queries_are_refused(name):
    query, pooled = databases()[name]
    assert len(query(pooled)) == 1
    with pytest.raises(ValueError, match=r"pooled must be of shape \(1, 30\), not \(1, 29\)"):
        query(Scaled(pooled.values[:, :29], pooled.log_scale[:, :29]))
    with pytest.raises(ValueError, match=r"pooled must be of shape \(1, 30\), not \(2, 30\)"):
        query(Scaled(np.repeat(pooled.values, 2, axis=0), pooled.log_scale))
    with pytest.raises(ValueError, match="pooled must be finite"):
        query(Scaled(pooled.values * np.float32("nan"), pooled.log_scale))
    with pytest.raises(ValueError, match="pooled must be finite"):
        query(Scaled(pooled.values, pooled.log_scale + np.float32("inf")))
    with pytest.raises(TypeError, match="pooled must be float32"):
        query(Scaled(pooled.values.astype(np.int64), pooled.log_scale))
    with pytest.raises(TypeError, match=r"pooled must be float32 .* NumPy arrays"):
        query(Scaled(jnp.asarray(pooled.values), pooled.log_scale))
    with pytest.raises(ValueError, match=r"must be at least 1|must be between 1 and 10"):
        query(pooled, top_k=0)


@pytest.mark.parametrize("name", ["exact", "hash"])
def test_top_k_above_the_number_of_patches_is_refused(name):
    query, pooled = databases()[name]
    with pytest.raises(ValueError, match="top_k must be between 1 and 10"):
        query(pooled, top_k=11)


@pytest.mark.parametrize(("name", "message"), [("hash", "pooled must not be 0"), ("tree", "no patch can be drawn")])
def test_pooled_queries_of_zero_are_refused_where_they_have_no_meaning(name, message):
    query, pooled = databases()[name]
    with pytest.raises(ValueError, match=message):
        query(Scaled(np.zeros_like(pooled.values), pooled.log_scale))


def test_negative_pooled_queries_cannot_be_sampled():
    query, pooled = databases()["tree"]
    with pytest.raises(ValueError, match="pooled must not be negative"):
        query(Scaled(-pooled.values, pooled.log_scale))


@pytest.mark.parametrize(
    ("uniforms", "error", "message"),
    [
        (np.array([0.5]), ValueError, r"one a draw, 2, not of shape \(1,\)"),
        (np.array([0.5, 1.0]), ValueError, r"in \[0, 1\), but range from 0.5 to 1.0"),
        (np.array([0.5, np.nan]), ValueError, r"in \[0, 1\)"),
        (np.array([0, 0]), TypeError, "uniforms must be float32"),
        ([0.5, 0.5], TypeError, "uniforms must be a NumPy"),
    ],
)
def test_invalid_uniforms_are_refused(uniforms, error, message):
    queries, keys = some_features(POSITIVE, 10)
    with pytest.raises(error, match=message):
        SamplingTree.build(keys, POSITIVE).draw(pool_queries(queries), 2, uniforms)


def test_invalid_keys_and_bits_are_refused():
    _, keys = some_features(TRIGONOMETRIC, 10)
    with pytest.raises(ValueError, match="bits must be at least 1, not 0"):
        HashLookup.build(keys, TRIGONOMETRIC, 0)
    with pytest.raises(TypeError, match=r"bits must be a whole number, not 8\.0"):
        HashLookup.build(keys, TRIGONOMETRIC, 8.0)  # pyright: ignore[reportArgumentType]
    with pytest.raises(ValueError, match=r"keys must be of shape \(L, 40\), not \(10, 30\)"):
        HashLookup.build(keys, Softmax("trigonometric", 20, normalised=True), 8)
    with pytest.raises(ValueError, match=r"keys must be of shape \(L, m\), not \(0, 30\)"):
        ExactLookup.build(Scaled(keys.values[:0], keys.log_scale[:0]))
    with pytest.raises(ValueError, match=r"keys must be of shape \(L, m\), not \(1, 10, 30\)"):
        ExactLookup.build(Scaled(keys.values[None], keys.log_scale[None]))
    with pytest.raises(ValueError, match="keys must be finite"):
        ExactLookup.build(Scaled(keys.values / np.float32("nan"), keys.log_scale))
