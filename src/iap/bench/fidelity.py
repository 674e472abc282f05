"""Errors of linear-time ranking: feature maps, hashing and tree sampling, compared with what they approximate."""

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from iap.attention import (
    Positions,
    Scaled,
    Softmax,
    as_pixels,
    exact_scores,
    extract,
    featurise,
    grid_of,
    place,
    pool_queries,
    project,
    rank_scores,
    top,
)
from iap.attention.arrays import require_count
from iap.attention.bounds import LARGEST_EXPONENT, hashing_error, projections_for_ranking
from iap.attention.features import MAPS, MapName
from iap.attention.search import HashLookup, SamplingTree
from iap.envs.control_suite.frames import render_frames

Source = Literal["synthetic", "frames"]
Row = dict[str, Any]

D = 4
PATCHES = 2500  # of a synthetic scene
FRAME = (240, 320)
PATCH = 4
STORED_PROJECTIONS = 64  # of the features that are hashed or stored in a tree
SAMPLES = 20_000
FAILURE = 0.1  # p of the theorems, the probability of a larger error


@dataclass(frozen=True)
class Case:
    """What one row measures."""

    source: Source
    kind: Literal["features", "hash", "tree"]
    map: MapName
    normalised: bool
    m: int
    bits: int | None = None


@dataclass(frozen=True)
class Scene:
    """Queries and keys, and their exact softmax scores, normalised or not."""

    queries: Float[np.ndarray, "L d"]
    keys: Float[np.ndarray, "L d"]
    exact: dict[bool, Scaled]

    @property
    def radius(self) -> float:
        """The largest norm of a query or key."""
        return max(float(np.linalg.norm(x, axis=-1).max()) for x in (self.queries, self.keys))


def fidelity(
    *,
    sources: Sequence[Source] = ("synthetic", "frames"),
    maps: Sequence[MapName] = MAPS,
    projections: Sequence[int] = (15, 64, 256, 1024),
    bits: Sequence[int] = (64, 256, 1024, 4096),
    top_k: int = 10,
    draws: int = 12,
    seed: int = 0,
    progress: Callable[[Sequence[Case]], Iterable[Case]] = iter,
) -> list[Row]:
    """One row per case, each a mean over `draws` scenes and projections ω; quantities that do not apply are None.

    Features are compared with exact softmax scores r, hashes with the features that they are made of: the share of the
    `top_k` best patches that is found, Spearman's correlation, the largest error of a score, and the error ε that the
    theorem allows with probability 0.9. Samples of the tree, and as many direct samples, are compared with the
    distribution given by the scores, by total variation.

    Args:
        sources: Gaussian queries and keys, or random projections of the patches of rendered frames.
        maps: the feature maps of softmax.
        projections: numbers m of projections ω.
        bits: numbers m′ of bits of a hash.
        top_k: number l of best patches.
        draws: number of scenes and of draws of ω in each mean.
        seed: of everything random.
        progress: iterates over the cases, such as `rich.progress.track`.
    """
    require_count("top_k", top_k)
    require_count("draws", draws)
    require_count("seed", seed, least=0)
    scenes = {source: _scenes(source, draws, seed) for source in sources}
    cases = [case for source in sources for case in _cases(source, maps, projections, bits)]
    return [_row(case, scenes[case.source], top_k, seed) for case in progress(cases)]


def allowed_error(m: int, d: int, radius: float, p: float) -> float | None:
    """The ε for which `projections_for_ranking` is m; None if it exceeds the range of floats."""
    if radius**2 / math.sqrt(d) > LARGEST_EXPONENT:
        return None
    low, high = 1e-9, 1e3 * math.exp(radius**2 / math.sqrt(d))
    while high / low > 1 + 1e-6:
        middle = math.sqrt(low * high)
        if projections_for_ranking(d, radius, middle, p) > m:
            low = middle
        else:
            high = middle
    return high


def spearman(x: Float[np.ndarray, " L"], y: Float[np.ndarray, " L"]) -> float:
    """Spearman's rank correlation; equal values have their mean rank; 0 if either array is constant."""
    a, b = (ranks - ranks.mean() for ranks in (_ranks(x), _ranks(y)))
    size = math.sqrt((a @ a) * (b @ b))
    return float(a @ b) / size if size > 0 else 0.0


def _ranks(x: np.ndarray) -> np.ndarray:
    _, level, counts = np.unique(x, return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[level]


def _scenes(source: Source, draws: int, seed: int) -> list[Scene]:
    rng = np.random.default_rng(seed)
    if source == "synthetic":
        pairs = [_draw_gaussian(rng) for _ in range(draws)]
    elif source == "frames":
        pairs = [_project_frame(frame, rng) for frame in render_frames(size=FRAME, count=draws, seed=seed)]
    else:
        raise ValueError(f'sources must be among "synthetic" and "frames", not {source!r}')
    return [
        Scene(q, k, {normalised: exact_scores(Softmax(normalised=normalised), q, k) for normalised in (False, True)})
        for q, k in pairs
    ]


def _draw_gaussian(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Queries and keys with random means.

    With mean 0 the expected score of a key depends on its norm only, and on nothing if normalised: the ten best would
    be random. The standard deviations of means and values, both ½, are a choice that the results depend on.
    """
    spread = rng.standard_normal((2, PATCHES, D), dtype=np.float32)
    means = rng.standard_normal((2, 1, D), dtype=np.float32)
    queries, keys = (spread + means) / 2
    return queries, keys


def _project_frame(frame: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Queries and keys of a frame's patches, by random projections."""
    tokens = place(extract(as_pixels(frame), PATCH, PATCH), grid_of(*FRAME, PATCH, PATCH), Positions())
    weights = rng.standard_normal((2, tokens.shape[-1], D), dtype=np.float32) / np.float32(math.sqrt(tokens.shape[-1]))
    return project(tokens, weights[0]), project(tokens, weights[1])


def _cases(source: Source, maps: Sequence[MapName], projections: Sequence[int], bits: Sequence[int]) -> Iterable[Case]:
    for name in maps:
        for normalised in (False, True):
            yield from (Case(source, "features", name, normalised, m) for m in projections)
    yield from (Case(source, "hash", "trigonometric", True, STORED_PROJECTIONS, count) for count in bits)
    yield from (Case(source, "tree", "positive", normalised, STORED_PROJECTIONS) for normalised in (False, True))


def _row(case: Case, scenes: Sequence[Scene], top_k: int, seed: int) -> Row:
    seeds = range(seed, seed + len(scenes))
    if case.kind == "tree":
        measured = [_compare_draws(case, *pair) for pair in zip(scenes, seeds, strict=True)]
    else:
        measured = [_compare(*_score(case, *pair), top_k) for pair in zip(scenes, seeds, strict=True)]
    means = {key: float(np.mean([one[key] for one in measured])) for key in measured[0]}
    absent = dict.fromkeys(("overlap", "spearman", "max_error", "epsilon", "total_variation", "total_variation_direct"))
    return vars(case) | absent | means | {"epsilon": _epsilon(case, scenes), "draws": len(scenes)}


def _score(case: Case, scene: Scene, seed: int) -> tuple[Scaled, Scaled]:
    """The approximate scores, and those that they approximate."""
    kernel = Softmax(case.map, case.m, case.normalised, seed)
    queries, keys = featurise(kernel, scene.queries, scene.keys)
    scores = rank_scores(queries, keys)
    if case.bits is None:
        return scores, scene.exact[case.normalised]
    return HashLookup.build(keys, kernel, case.bits, seed=seed).scores(pool_queries(queries)), scores


def _compare_draws(case: Case, scene: Scene, seed: int) -> dict[str, float]:
    kernel = Softmax(case.map, case.m, case.normalised, seed)
    queries, keys = featurise(kernel, scene.queries, scene.keys)
    scores = rank_scores(queries, keys).values.astype(np.float64)
    shares = scores / scores.sum()
    rng = np.random.default_rng(seed)
    sampled = SamplingTree.build(keys, kernel).draw(pool_queries(queries), SAMPLES, rng.random(SAMPLES))
    by_tree = np.bincount(sampled, minlength=len(shares))
    directly = rng.multinomial(SAMPLES, shares)
    return {
        "total_variation": 0.5 * float(np.abs(by_tree / SAMPLES - shares).sum()),
        "total_variation_direct": 0.5 * float(np.abs(directly / SAMPLES - shares).sum()),
    }


def _compare(estimate: Scaled, truth: Scaled, top_k: int) -> dict[str, float]:
    found = np.intersect1d(top(estimate.values, top_k), top(truth.values, top_k))
    return {
        "overlap": len(found) / top_k,
        "spearman": spearman(estimate.values, truth.values),
        "max_error": float(np.abs(_true(estimate) - _true(truth)).max()),
    }


def _true(scores: Scaled) -> np.ndarray:
    """The scores without their scale, in float64 since they may exceed the range of float32."""
    return scores.values * np.exp(scores.log_scale, dtype=np.float64)


def _epsilon(case: Case, scenes: Sequence[Scene]) -> float | None:
    """The error of a score that the theorem allows, for the cases that it covers."""
    if case.bits is not None:
        patches = len(scenes[0].keys)
        return hashing_error(D, math.sqrt(2 / case.bits * math.log(2 * patches / FAILURE)))
    if case.kind == "features" and case.map == "trigonometric" and not case.normalised:
        return allowed_error(case.m, D, max(scene.radius for scene in scenes), FAILURE)
    return None
