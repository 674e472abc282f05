"""A search as named arrays, and back without loss: the content of a checkpoint. No pickle, no strings."""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from iap.evolution.registry import STRATEGIES
from iap.evolution.search import Search, start
from iap.evolution.strategy import State, Strategy


def to_arrays(search: Search) -> dict[str, np.ndarray]:
    """Return the whole search as arrays of numbers."""
    return {
        "strategy": np.frombuffer(json.dumps(_describe(search.strategy)).encode(), dtype=np.uint8),
        "seed": np.array(search.seed, dtype=np.int64),
        "iteration": np.array(search.iteration, dtype=np.int64),
        "origin": search.origin.copy(),
        "scales": search.scales.copy(),
        **{name: np.array(leaf) for name, leaf in _leaves(search.state).items()},
    }


def from_arrays(strategy: Strategy, arrays: Mapping[str, np.ndarray]) -> Search:
    """Return the search that `to_arrays` was given; it continues bit by bit as the original. Other arrays are ignored.

    Bit equality needs the same number of threads: the last bits of LAPACK, which CMA-ES uses, depend on it.
    """
    import jax

    for name in ("strategy", "origin"):
        if name not in arrays:
            raise ValueError(f"arrays must hold {name!r}, as those of a search do")
    _require_same_strategy(strategy, arrays["strategy"])
    size = arrays["origin"].size
    template = start(strategy, np.zeros(size, np.float32), np.ones(size, np.float32), seed=0)
    for name, like in to_arrays(template).items():
        if name != "strategy":
            _require_like(name, arrays, like)
    if arrays["iteration"] < 0:
        raise ValueError(f"iteration must be at least 0, not {arrays['iteration']}")
    fresh = start(strategy, arrays["origin"], arrays["scales"], int(arrays["seed"]))
    leaves = [np.array(arrays[name]) for name in _leaves(fresh.state)]
    state = jax.tree.unflatten(jax.tree.structure(fresh.state), leaves)
    return replace(fresh, iteration=int(arrays["iteration"]), state=state)


def _describe(strategy: Strategy) -> dict[str, Any]:
    return {"kind": STRATEGIES.name_of(type(strategy)), **asdict(strategy)}  # pyright: ignore[reportArgumentType]


def _leaves(state: State) -> dict[str, np.ndarray]:
    """Return the arrays of a tree by their paths, in the order of the tree."""
    import jax

    found, _ = jax.tree_util.tree_flatten_with_path(state)
    return {f"state.{jax.tree_util.keystr(path, simple=True, separator='.')}": leaf for path, leaf in found}


def _require_same_strategy(strategy: Strategy, saved: np.ndarray) -> None:
    try:
        found = json.loads(saved.tobytes())
    except ValueError:
        found = "no known strategy"
    if found != _describe(strategy):
        raise ValueError(f"strategy is {_describe(strategy)}, but the arrays are of {found}")


def _require_like(name: str, arrays: Mapping[str, np.ndarray], like: np.ndarray) -> None:
    if name not in arrays:
        raise ValueError(f"arrays must hold {name!r}, as those of this strategy do")
    x = arrays[name]
    if x.shape != like.shape or x.dtype != like.dtype:
        raise ValueError(f"{name} must be {like.dtype} of shape {like.shape}, not {x.dtype} of shape {x.shape}")
