"""A search as named arrays and back, exactly: what a checkpoint holds. No pickle, and no strings."""

import json
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from iap.evolution.search import Search, start
from iap.evolution.strategies import Strategy


def to_arrays(search: Search) -> dict[str, np.ndarray]:
    """All that a search is, as arrays of numbers."""
    return {
        "strategy": np.frombuffer(json.dumps(_facts(search.strategy)).encode(), dtype=np.uint8),
        "seed": np.array(search.seed, dtype=np.int64),
        "iteration": np.array(search.iteration, dtype=np.int64),
        "origin": search.origin.copy(),
        "scales": search.scales.copy(),
        **{name: np.array(leaf) for name, leaf in _leaves(search.state).items()},
    }


def from_arrays(strategy: Strategy, arrays: Mapping[str, np.ndarray]) -> Search:
    """The search that `to_arrays` was given, which goes on, bit by bit, as that one would have; others are ignored.

    So it does in any process with as many threads: LAPACK's last bits, on which CMA-ES draws, depend on their number.
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


def _facts(strategy: Strategy) -> dict[str, Any]:
    return {"kind": strategy.kind, **asdict(strategy)}


def _leaves(state: Any) -> dict[str, np.ndarray]:
    """The arrays of a tree, in its order, by their paths in it."""
    import jax

    found, _ = jax.tree_util.tree_flatten_with_path(state)
    return {f"state.{jax.tree_util.keystr(path, simple=True, separator='.')}": leaf for path, leaf in found}


def _require_same_strategy(strategy: Strategy, saved: np.ndarray) -> None:
    try:
        facts = json.loads(saved.tobytes())
    except ValueError:
        facts = "no known strategy"
    if facts != _facts(strategy):
        raise ValueError(f"strategy is {_facts(strategy)}, but the arrays are of {facts}")


def _require_like(name: str, arrays: Mapping[str, np.ndarray], like: np.ndarray) -> None:
    if name not in arrays:
        raise ValueError(f"arrays must hold {name!r}, as those of this strategy do")
    x = arrays[name]
    if x.shape != like.shape or x.dtype != like.dtype:
        raise ValueError(f"{name} must be {like.dtype} of shape {like.shape}, not {x.dtype} of shape {x.shape}")
