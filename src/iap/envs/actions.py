"""Raw numbers of a policy → an action of an environment's space, and how many numbers that takes."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from gymnasium import spaces
from jaxtyping import Float

NAN_ACTION = "raw action contains NaN"


def action_count(space: spaces.Space) -> int:
    """How many raw numbers choose an action: one for each entry of a Box or MultiBinary, or each choice of a Discrete.

    A MultiDiscrete takes one for each choice of each of its parts.
    """
    if isinstance(space, spaces.Discrete):
        return int(space.n)
    if isinstance(space, spaces.MultiDiscrete):
        return int(space.nvec.sum())
    if isinstance(space, spaces.MultiBinary):
        return int(np.prod(space.shape))
    if not isinstance(space, spaces.Box) or not np.issubdtype(space.dtype, np.floating):
        raise ValueError(
            f"actions must be a Box of floats, Discrete, MultiDiscrete or MultiBinary: {space} is not supported, so "
            f"convert it with gymnasium.wrappers.TransformAction"
        )
    with np.errstate(over="ignore"):
        reach = space.high.astype(np.float32) - space.low.astype(np.float32)
    if not np.isfinite(reach).all():
        raise ValueError(f"actions must have finite bounds: {space} has none, so rescale it in a wrapper")
    return int(np.prod(space.shape))


def to_action(space: spaces.Space, raw: Float[np.ndarray, " k"]) -> Any:
    """Raw numbers as an action.

    They are clipped to [−1, 1] and scaled to a Box; the (first) largest chooses of a Discrete, and of each part of a
    MultiDiscrete; those of a MultiBinary are 1 where they are positive.

    Example:
        >>> import gymnasium, iap, numpy as np
        >>> int(iap.to_action(gymnasium.spaces.Discrete(3), np.array([0.1, 0.9, -0.3], np.float32)))
        1
    """
    return action_map(space)(raw)


def action_map(space: spaces.Space) -> Callable[[Float[np.ndarray, " k"]], Any]:
    """`to_action` of one space, with everything precomputed that does not depend on the raw numbers."""
    if isinstance(space, spaces.Discrete):
        return partial(_largest, space)
    if isinstance(space, spaces.MultiDiscrete):
        return partial(_largest_of_each, space, np.cumsum(space.nvec.ravel())[:-1])
    if isinstance(space, spaces.MultiBinary):
        return partial(_positive, space)
    assert isinstance(space, spaces.Box)
    return _box_map(space)


def _box_map(space: spaces.Box) -> Callable[[Float[np.ndarray, " k"]], np.ndarray]:
    low, high = (side.astype(np.float64).ravel() for side in (space.low, space.high))
    entries = list(
        zip(((high + low) / 2).tolist(), ((high - low) / 2).tolist(), low.tolist(), high.tolist(), strict=True)
    )

    def scale(raw: Float[np.ndarray, " k"]) -> np.ndarray:
        action = []  # plain floats: for a few entries twice as fast as array operations
        for x, (middle, reach, lowest, highest) in zip(raw.tolist(), entries, strict=True):
            if x != x:  # noqa: PLR0124 - true for NaN only
                raise ValueError(NAN_ACTION)
            value = middle + reach * (-1.0 if x < -1 else 1.0 if x > 1 else x)
            action.append(lowest if value < lowest else highest if value > highest else value)
        return np.array(action, space.dtype).reshape(space.shape)

    def pass_through(raw: Float[np.ndarray, " k"]) -> np.ndarray:
        if raw.dtype != space.dtype or raw.shape != space.shape:
            return scale(raw)
        for x in raw.tolist():
            if not -1 <= x <= 1:  # true for NaN, too
                return scale(raw)
        return raw

    return pass_through if (low == -1).all() and (high == 1).all() else scale


def _largest(space: spaces.Discrete, raw: Float[np.ndarray, " k"]) -> np.integer:
    if np.isnan(raw).any():
        raise ValueError(NAN_ACTION)
    return space.start + np.argmax(raw)


def _largest_of_each(space: spaces.MultiDiscrete, ends: np.ndarray, raw: Float[np.ndarray, " k"]) -> np.ndarray:
    if np.isnan(raw).any():
        raise ValueError(NAN_ACTION)
    chosen = np.array([np.argmax(part) for part in np.split(raw, ends)]).reshape(space.nvec.shape)
    return (space.start + chosen).astype(space.dtype)


def _positive(space: spaces.MultiBinary, raw: Float[np.ndarray, " k"]) -> np.ndarray:
    if np.isnan(raw).any():
        raise ValueError(NAN_ACTION)
    return (raw > 0).astype(space.dtype).reshape(space.shape)
