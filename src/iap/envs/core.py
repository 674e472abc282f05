"""The interface of every environment to a policy: an image and sensors come out, a vector of raw numbers goes in."""

import inspect
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.machinery import PathFinder
from typing import Any, ClassVar, Literal, Protocol, Self, runtime_checkable

import cloudpickle
import gymnasium
import numpy as np
from gymnasium import spaces
from jaxtyping import Float

from iap.envs.registration import (
    check_options,
    check_render_mode,
    find_env,
    find_spec,
    require_harmless,
    tolerant_imports,
)
from iap.envs.wrappers import from_observation, from_render, require_size

__all__ = [
    "EnvConfig",
    "action_count",
    "action_map",
    "find_env",
    "make_env",
    "require_harmless",
    "to_action",
]

Factory = Callable[[], gymnasium.Env]
NAN_ACTION = "raw action contains NaN"


@dataclass(frozen=True, eq=False)
class EnvConfig:
    """An environment as data: the id and options of `make_env`, the options as sorted pairs.

        EnvConfig.of("iap/cheetah-run-v0", difficulty="medium").make()

    An environment that is not registered is given by a function that makes it, or by an object that can be pickled:

        EnvConfig.from_factory(lambda: MyEnv(size=64))

    Such a config is sent to workers by cloudpickle. JSON stores its id "custom:MyEnv" only, so that a config or policy
    that is read from a file has to be given the environment again.
    """

    id: str
    kwargs: tuple[tuple[str, Any], ...] = ()
    factory: ClassVar[Factory | None] = None  # of the class: no field, since it is not part of the JSON

    @classmethod
    def of(cls, id: str, **kwargs: Any) -> Self:
        """The same from keyword arguments in any order."""
        return cls(id, tuple(sorted(kwargs.items())))

    @classmethod
    def from_factory(cls, factory: Factory | gymnasium.Env, **kwargs: Any) -> Self:
        """An environment that is not registered.

        Args:
            factory: a function without arguments or a class that makes the environment, or an environment object,
                which is copied whenever one is made.
            kwargs: the options `image_from` and `image_size` of `make_env`.
        """
        if isinstance(factory, gymnasium.Env):
            return cls._custom(type(factory.unwrapped).__name__, _Copies(_to_bytes(factory, factory.unwrapped)), kwargs)
        if not callable(factory):
            raise TypeError(f"factory must be a function without arguments or an environment, not {factory!r}")
        return cls._custom(getattr(factory, "__name__", type(factory).__name__), factory, kwargs)

    @classmethod
    def _custom(cls, name: str, factory: Factory, kwargs: dict[str, Any]) -> Self:
        config = cls.of(f"custom:{name}", **kwargs)
        object.__setattr__(config, "factory", factory)
        return config

    def make(self) -> gymnasium.Env:
        """The environment."""
        return make_env(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, EnvConfig) and self._identity() == other._identity()

    def __hash__(self) -> int:
        return hash(self._identity())

    def _identity(self) -> tuple[Any, ...]:
        return self.id, self.kwargs, self.factory

    def __reduce__(self) -> tuple[Any, ...]:
        if self.factory is None:
            return type(self), (self.id, self.kwargs)
        return _from_bytes, (type(self), self.id, self.kwargs, _to_bytes(self.factory, self.factory))


@runtime_checkable
class _HasId(Protocol):
    """An `EnvConfig`, a policy's `env`, or Gymnasium's `EnvSpec`."""

    @property
    def id(self) -> str: ...

    @property
    def kwargs(self) -> Any: ...


def make_env(
    env: "str | EnvConfig | _HasId | gymnasium.Env | Factory",
    *,
    image_from: Literal["observation", "render"] | None = None,
    image_size: Sequence[int] | None = None,
    **kwargs: Any,
) -> gymnasium.Env:
    """Any Gymnasium environment, observed as `{"image": (H, W, C) uint8 or float32, "sensors": (n,) float32}`.

    Args:
        env: a registered id, "module:id" for one that is registered when its module is imported, an `EnvConfig` or
            anything else with an `id` and `kwargs`, an environment, or a function without arguments that makes one.
        image_from: "observation" (the default) takes the one image in the observation, and all else as sensors;
            "render" takes the image that the environment renders, without sensors.
        image_size: (height, width) to resize the image to; by default it keeps its size.
        kwargs: options of the environment itself.
    """
    if isinstance(env, EnvConfig | _HasId) and not isinstance(env, gymnasium.Env):
        given: dict[str, Any] = {"image_from": image_from, "image_size": image_size}
        options = dict(env.kwargs) | {name: value for name, value in given.items() if value is not None} | kwargs
        factory = env.factory if isinstance(env, EnvConfig) else None
        return make_env(env.id if factory is None else factory, **options)
    source = image_from or "observation"
    if source not in ("observation", "render"):
        raise ValueError(f'image_from must be "observation" or "render", not {image_from!r}')
    size = None if image_size is None else require_size("image_size", image_size)
    if isinstance(env, str):
        return _adapted(_made(env, source == "render", kwargs), source, size)
    if kwargs:
        raise TypeError(f"{', '.join(sorted(kwargs))}: options need a registered id, not an environment or a function")
    if isinstance(env, gymnasium.Env):
        return _adapted(env, source, size, owned=False)
    if not callable(env):
        raise TypeError(f"env must be an id, an EnvConfig, an environment or a function that makes one, not {env!r}")
    made = env()
    if not isinstance(made, gymnasium.Env):
        raise TypeError(f"env must be a function that makes a gymnasium.Env, but it returned {made!r}")
    return _adapted(made, source, size)


def action_count(space: spaces.Space) -> int:
    """How many raw numbers choose an action: one for each entry of a Box, or each choice of a Discrete."""
    if isinstance(space, spaces.Discrete):
        return int(space.n)
    if not isinstance(space, spaces.Box) or not np.issubdtype(space.dtype, np.floating):
        raise ValueError(f"actions must be a Box of floats or Discrete: {space} is not supported")
    with np.errstate(over="ignore"):
        reach = space.high.astype(np.float32) - space.low.astype(np.float32)
    if not np.isfinite(reach).all():
        raise ValueError(f"actions must have finite bounds: {space} has none, so rescale it in a wrapper")
    return int(np.prod(space.shape))


def to_action(space: spaces.Space, raw: Float[np.ndarray, " k"]) -> Any:
    """Raw numbers as an action: clipped to [−1, 1] and scaled to a Box, or the (first) largest of a Discrete."""
    return action_map(space)(raw)


def action_map(space: spaces.Space) -> Callable[[Float[np.ndarray, " k"]], Any]:
    """`to_action` of one space, with everything precomputed that does not depend on the raw numbers."""
    if isinstance(space, spaces.Discrete):
        return partial(_largest, space)
    assert isinstance(space, spaces.Box)
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


def _made(id: str, renders: bool, kwargs: dict[str, Any]) -> gymnasium.Env:
    """The environment of an id, with its options checked."""
    with tolerant_imports():
        spec = find_spec(id)
        check_options(spec, kwargs)
        if renders:
            check_render_mode(spec)
            kwargs = kwargs | {"render_mode": "rgb_array"}
        return gymnasium.make(spec, disable_env_checker=True, **kwargs)


def _adapted(env: gymnasium.Env, source: str, size: tuple[int, int] | None, owned: bool = True) -> gymnasium.Env:
    """The environment with an image and sensors as observation; closed if that fails, unless the caller owns it."""
    try:
        action_count(env.action_space)
        return from_render(env, size) if source == "render" else from_observation(env, size)
    except Exception:
        if owned:
            env.close()
        raise


@dataclass(frozen=True)
class _Copies:
    """Makes copies of a pickled environment."""

    pickled: bytes

    def __call__(self) -> gymnasium.Env:
        return cloudpickle.loads(self.pickled)


def _to_bytes(value: Any, defined: Any) -> bytes:
    """A function or environment pickled for a worker, by value if the worker could not import `defined`."""
    try:
        with _by_value(
            inspect.getmodule(defined if inspect.isroutine(defined) or inspect.isclass(defined) else type(defined))
        ):
            return cloudpickle.dumps(value)
    except Exception as error:  # pickling runs methods of the environment
        raise ValueError(
            f"{value!r} cannot be pickled ({type(error).__name__}: {error}): "
            f"pass a function that makes the environment, EnvConfig.from_factory(lambda: MyEnv())"
        ) from error


def _from_bytes(cls: type[EnvConfig], id: str, kwargs: tuple[tuple[str, Any], ...], pickled: bytes) -> EnvConfig:
    config = cls(id, kwargs)
    object.__setattr__(config, "factory", cloudpickle.loads(pickled))
    return config


@contextmanager
def _by_value(module: Any) -> Any:
    """Let cloudpickle copy the definitions of a module that is not on the path, such as a loaded script."""
    if module is None or module.__name__ == "__main__" or _is_importable(module.__name__):
        yield
        return
    cloudpickle.register_pickle_by_value(module)
    try:
        yield
    finally:
        cloudpickle.unregister_pickle_by_value(module)


def _is_importable(name: str) -> bool:
    path, spec = None, None
    for depth in range(name.count(".") + 1):
        spec = PathFinder.find_spec(".".join(name.split(".")[: depth + 1]), path)
        if spec is None:
            return False
        path = spec.submodule_search_locations
    return True
