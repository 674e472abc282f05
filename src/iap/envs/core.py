"""The interface of every environment to a policy: an image and sensors come out, a vector of raw numbers goes in."""

import inspect
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib.machinery import PathFinder
from typing import Any, ClassVar, Literal, Protocol, Self, runtime_checkable

import cloudpickle
import gymnasium
from gymnasium.envs.registration import EnvSpec, load_env_creator

from iap._extras import explain_missing
from iap.envs.actions import action_count, action_map, to_action
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
            spec = _unimportable_spec(self.id)
            if spec is None:
                return type(self), (self.id, self.kwargs)
            return _from_spec, (type(self), self.id, self.kwargs, _to_bytes(spec, spec.entry_point))
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
    cameras: Sequence[str] | None = None,
    **kwargs: Any,
) -> gymnasium.Env:
    """Any Gymnasium environment, observed as `{"image": (H, W, C), "sensors": (n,) float32}`.

    Images are uint8, uint16 or float32. Channels may come first, frames may be stacked, and Dicts and Tuples may be
    nested.

    Args:
        env: a registered id, "module:id" for one that is registered when its module is imported, an `EnvConfig` or
            anything else with an `id` and `kwargs`, an environment, or a function without arguments that makes one.
        image_from: "observation" (the default) takes the images in the observation, and all else as sensors; "render"
            takes the image that the environment renders, without sensors.
        image_size: (height, width) to resize each image to; by default it keeps its size.
        cameras: names of the images of the observation to use, such as ("left", "right"), which are put below each
            other; by default all. An entry of a nested observation is named "outer.inner".
        kwargs: options of the environment itself.
    """
    if isinstance(env, EnvConfig | _HasId) and not isinstance(env, gymnasium.Env):
        given: dict[str, Any] = {"image_from": image_from, "image_size": image_size, "cameras": cameras}
        options = dict(env.kwargs) | {name: value for name, value in given.items() if value is not None} | kwargs
        factory = env.factory if isinstance(env, EnvConfig) else None
        return make_env(env.id if factory is None else factory, **options)
    source = image_from or "observation"
    if source not in ("observation", "render"):
        raise ValueError(f'image_from must be "observation" or "render", not {image_from!r}')
    size = None if image_size is None else require_size("image_size", image_size)
    if isinstance(env, str):
        return _adapted(_made(env, source == "render", kwargs), source, size, cameras)
    if kwargs:
        raise TypeError(f"{', '.join(sorted(kwargs))}: options need a registered id, not an environment or a function")
    if isinstance(env, gymnasium.Env):
        return _adapted(env, source, size, cameras, owned=False)
    if not callable(env):
        raise TypeError(f"env must be an id, an EnvConfig, an environment or a function that makes one, not {env!r}")
    made = env()
    if not isinstance(made, gymnasium.Env):
        raise TypeError(f"env must be a function that makes a gymnasium.Env, but it returned {made!r}")
    return _adapted(made, source, size, cameras)


def _made(id: str, renders: bool, kwargs: dict[str, Any]) -> gymnasium.Env:
    """The environment of an id, with its options checked."""
    with tolerant_imports(), explain_missing(f"the environment {id}"):
        spec = find_spec(id)
        check_options(spec, kwargs)
        if renders:
            check_render_mode(spec)
            kwargs = kwargs | {"render_mode": "rgb_array"}
        return gymnasium.make(spec, disable_env_checker=True, **kwargs)


def _adapted(
    env: gymnasium.Env,
    source: str,
    size: tuple[int, int] | None,
    cameras: Sequence[str] | None,
    owned: bool = True,
) -> gymnasium.Env:
    """The environment with an image and sensors as observation; closed if that fails, unless the caller owns it."""
    try:
        action_count(env.action_space)
        with explain_missing(f"rendering {env.spec.id if env.spec else env}"):
            return from_render(env, size) if source == "render" else from_observation(env, size, cameras)
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


def _unimportable_spec(id: str) -> EnvSpec | None:
    """The registration of an environment that a new process would not have, or None: one of a script or a notebook."""
    spec = gymnasium.registry.get(id)
    if spec is None or spec.entry_point is None or spec.namespace == "iap":
        return None
    if not isinstance(spec.entry_point, str):
        return spec
    module = spec.entry_point.partition(":")[0]
    if module == "__main__":
        return replace(spec, entry_point=load_env_creator(spec.entry_point))
    return None if module.partition(".")[0] == "gymnasium" else spec


def _from_spec(cls: type[EnvConfig], id: str, kwargs: tuple[tuple[str, Any], ...], pickled: bytes) -> EnvConfig:
    """The config in another process, where its environment is registered first."""
    if id not in gymnasium.registry:
        gymnasium.registry[id] = cloudpickle.loads(pickled)
    return cls(id, kwargs)


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
