"""Time of a step of cross-attention with a key database, and without one."""

from collections.abc import Callable, Sequence
from statistics import median
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np

from iap.attention.arrays import Scaled, require_count
from iap.attention.features import Softmax, featurise
from iap.attention.ranking import pool_queries
from iap.attention.search import ExactLookup, HashLookup, SamplingTree
from iap.attention.selection import top
from iap.bench.one_core import send

Row = dict[str, Any]


class Method(NamedTuple):
    """A method to select patches by the pooled queries; a method without a database has no refresh."""

    name: str
    step: Callable[[], np.ndarray]
    refresh: Callable[[], object] | None = None
    bits: int | None = None


def bench_database(
    patches: Sequence[int] = (4_800, 19_200),
    projections: Sequence[int] = (15, 256),
    bits: Sequence[int] = (256, 1_024),
    *,
    d: int = 4,
    top_k: int = 10,
    query_mean: float = 1.0,
    repeats: int = 50,
    seed: int = 0,
) -> list[Row]:
    """Milliseconds of a step and of a refresh, medians of `repeats`, after compilation.

    A step is the selection of `top_k` patches by the pooled queries. "recompute" has no database: its step computes the
    features of the (L, d) keys, their scores and the top. "exact" and "hash" take the top by the stored features,
    "tree" samples with replacement. A refresh computes the database from the key features; the random matrix G of the
    hashes is drawn once. Not timed are the projection of patches to keys and the features and pooling of the queries,
    which all methods have in common.

    Hashing needs normalised trigonometric features (2m per key), the tree positive ones (m per key): see the column
    "features". "over_recompute" compares with recomputing the same features. "overlap" is the share of the best patches
    that are found.

    Args:
        patches: numbers of keys L.
        projections: numbers of random projections m.
        bits: lengths of the hashes.
        d: dimension of queries and keys, which are Gaussian.
        top_k: number of selected patches.
        query_mean: mean of the queries in each dimension. With mean 0 all scores are nearly equal, and hashes of a
            practical length find almost none of the best patches.
        repeats: number of timed calls.
        seed: of the queries and keys.
    """
    require_count("repeats", repeats)
    rng = np.random.default_rng(seed)
    rows = []
    for count in patches:
        queries, keys = rng.standard_normal((2, count, d), dtype=np.float32)
        queries += np.float32(query_mean)
        for m in projections:
            ranking, sampling = Softmax("trigonometric", m, normalised=True), Softmax("positive", m)
            rows += _bench(ranking_methods(ranking, queries, keys, top_k, bits), ranking, count, repeats)
            rows += _bench(
                sampling_methods(sampling, queries, keys, top_k, rng.random(top_k)), sampling, count, repeats
            )
    return rows


def ranking_methods(
    kernel: Softmax, queries: np.ndarray, keys: np.ndarray, top_k: int, bits: Sequence[int]
) -> list[Method]:
    """The best patches by trigonometric features: recomputed, stored, and stored as hashes."""
    query_features, features = featurise(kernel, queries, keys)
    pooled = pool_queries(query_features)
    return [
        *_exact_methods(kernel, pooled, keys, features, top_k),
        *(_hash_method(kernel, pooled, features, top_k, count) for count in bits),
    ]


def sampling_methods(
    kernel: Softmax, queries: np.ndarray, keys: np.ndarray, top_k: int, uniforms: np.ndarray
) -> list[Method]:
    """Patches by positive features: the best recomputed, the best stored, and samples from a tree."""
    query_features, features = featurise(kernel, queries, keys)
    pooled = pool_queries(query_features)
    tree = SamplingTree.build(features, kernel)
    return [
        *_exact_methods(kernel, pooled, keys, features, top_k),
        Method("tree", lambda: tree.draw(pooled, top_k, uniforms), lambda: SamplingTree.build(features, kernel)),
    ]


def _exact_methods(kernel: Softmax, pooled: Scaled, keys: np.ndarray, features: Scaled, top_k: int) -> list[Method]:
    exact = ExactLookup.build(features)
    return [
        Method("recompute", lambda: _recompute(kernel, pooled, keys, top_k)),
        Method("exact", lambda: exact.top(pooled, top_k), lambda: ExactLookup.build(features)),
    ]


def _hash_method(kernel: Softmax, pooled: Scaled, features: Scaled, top_k: int, bits: int) -> Method:
    hashed = HashLookup.build(features, kernel, bits)
    return Method("hash", lambda: hashed.top(pooled, top_k), lambda: HashLookup.build(features, kernel, bits), bits)


def _recompute(kernel: Softmax, pooled: Scaled, keys: np.ndarray, top_k: int) -> np.ndarray:
    """A step without a database, optimised for NumPy. One key replaces the queries, which are not timed."""
    _, features = featurise(kernel, keys[:1], keys)
    if kernel.signed:  # one scale per key: a matrix-vector product suffices
        log_scale = features.log_scale[:, 0]
        return top(features.values @ pooled.values[0] * np.exp(log_scale - log_scale.max()), top_k)
    exponents = features.log_scale  # one scale per entry: queries are added to the exponents in place
    exponents += np.log(pooled.values) + pooled.log_scale
    exponents -= exponents.max()
    return top(np.exp(exponents, out=exponents).sum(axis=-1), top_k)


def _bench(methods: Sequence[Method], kernel: Softmax, patches: int, repeats: int) -> list[Row]:
    """One row per method; all are compared with the first."""
    steps_ms = [_time_ms(method.step, repeats) for method in methods]
    best = methods[0].step()
    return [
        {
            "method": method.name,
            "features": kernel.features,
            "patches": patches,
            "projections": kernel.projections,
            "bits": method.bits,
            "step_ms": step_ms,
            "refresh_ms": None if method.refresh is None else _time_ms(method.refresh, max(1, repeats // 5)),
            "over_recompute": step_ms / steps_ms[0],
            "overlap": None if method.name == "tree" else float(np.isin(best, method.step()).mean()),
        }
        for method, step_ms in zip(methods, steps_ms, strict=True)
    ]


def _time_ms(run: Callable[[], object], repeats: int) -> float:
    run()  # compiles, and fills the caches
    times = []
    for _ in range(repeats):
        start = perf_counter()
        run()
        times.append(perf_counter() - start)
    return 1e3 * median(times)


if __name__ == "__main__":
    send(bench_database())
