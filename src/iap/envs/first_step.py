"""A check of an environment before training: what `reset` and `step` return, and whether it is what its spaces say."""

import math
from typing import Any

import gymnasium
import numpy as np

from iap._observations import sensors_of
from iap.envs.actions import action_count, to_action
from iap.envs.protocols import env_name

RESET, STEP = 2, 5  # the numbers of values that reset and step return
TOLERANCE = 1e-3  # of the range of the image


def check_first_step(env: gymnasium.Env) -> None:
    """Reset the environment and make one step; raise an error that names what does not fit, and what would.

    An error of the environment itself is not caught. The environments of this package are not checked.
    """
    if env.spec is not None and env.spec.namespace == "iap":
        return
    action = to_action(env.action_space, np.zeros(action_count(env.action_space), np.float32))
    _check_values(env, action)
    observation = env.reset(seed=0)[0]
    _check_observation(env, "reset", observation)
    _check_observation(env, "step", env.step(action)[0])


def _check_values(env: gymnasium.Env, action: Any) -> None:
    """Whether the innermost environment returns (observation, info) and the five values of a step."""
    own, name = env.unwrapped, env_name(env)
    returned: Any = own.reset(seed=0)
    if not isinstance(returned, tuple) or len(returned) != RESET:
        raise TypeError(f"{name}: reset must return (observation, info), not {_kind(returned)}")
    stepped: Any = own.step(action)
    if not isinstance(stepped, tuple) or len(stepped) != STEP:
        raise TypeError(
            f"{name}: step must return (observation, reward, terminated, truncated, info), not {_kind(stepped)}"
        )
    reward = stepped[1]
    if np.ndim(reward) > 0 or not isinstance(reward, int | float | np.number | np.bool_):
        raise TypeError(f"{name}: step must return the reward as a number, not {_kind(reward)}")
    if not math.isfinite(reward):
        raise ValueError(f"{name}: step must return a finite reward, not {reward}")


def _check_observation(env: gymnasium.Env, method: str, observation: dict[str, np.ndarray]) -> None:
    spaces: Any = env.observation_space
    image, space, where = observation["image"], spaces["image"], f"{env_name(env)}: {method}"
    if image.dtype != space.dtype:
        raise TypeError(
            f"{where} returned an image of {image.dtype}, but its space says {space.dtype}: "
            f"return .astype(numpy.{space.dtype}), or declare {image.dtype} in the observation space"
        )
    if image.shape != space.shape:
        raise ValueError(f"{where} returned an image of shape {image.shape}, but its space says {space.shape}")
    if not np.isfinite(image).all():
        raise ValueError(f"{where} returned an image with NaN or infinity")
    low, high = float(space.low.min()), float(space.high.max())
    margin = TOLERANCE * (high - low) if math.isfinite(high - low) else 0.0
    if image.size and not (low - margin <= image.min() and image.max() <= high + margin):
        raise ValueError(
            f"{where} returned an image from {image.min():g} to {image.max():g}, but its space says {low:g} to "
            f"{high:g}: declare the bounds that images have, by which they are scaled"
        )
    if not np.isfinite(sensors_of(observation)).all():
        raise ValueError(f"{where} returned sensors with NaN or infinity: {observation['sensors']}")


def _kind(value: Any) -> str:
    if isinstance(value, tuple):
        return f"{len(value)} values"
    return f"an array of shape {value.shape}" if isinstance(value, np.ndarray) else f"a {type(value).__name__}"
