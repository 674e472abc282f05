"""Environment ids: those of Gymnasium's registry, of installed packages, and the checks of their options.

A package adds environments through the entry points of the group `iap.envs`. The name of an entry point is the id, and
its value "module:attribute" is the environment class, or a function that makes the environment:

    [project.entry-points."iap.envs"]
    "acme/Drone-v0" = "acme_envs.drone:Drone"

The module is imported when the environment is made. A package that prefers to call `gymnasium.register` itself can use
Gymnasium's own group, `gymnasium.envs`.
"""

import contextlib
import difflib
import importlib
import inspect
import sys
import warnings
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

import gymnasium
from gymnasium.envs.registration import EnvSpec, load_env_creator

GROUP = "iap.envs"
MOST_NUMBER = 10**6  # in options from a file, such as max_episode_steps
MOST_ENTRIES = 4096
OPTIONS_OF_GYMNASIUM = ("max_episode_steps",)


def find_env(id: str) -> str:
    """`id`, if such an environment is registered; the module of "module:id" is imported."""
    find_spec(id)
    return id


def require_harmless(id: str) -> str:
    """`id` from a file, unless making its environment would import a module that the user did not import."""
    module, _, name = id.rpartition(":")
    if module and not is_custom(id) and not (module in sys.modules and name in gymnasium.registry):
        raise ValueError(
            f"the environment {id!r} is defined in the module {module!r}, which is not imported because of a file: "
            f"if you trust it, import it first, or name the environment on the command line with --env {id}"
        )
    return id


def require_named(id: str, named: str | None) -> str:
    """`id` from a file. Its module is imported only if the same id was named on the command line."""
    if named is None:
        return require_harmless(id)
    if named != id:
        raise ValueError(f"--env must be {id}, the environment of the run, not {named}")
    return find_env(named)


def require_bounded_options(options: Mapping[str, Any]) -> None:
    """Refuse options from a file that ask for more than any episode needs, such as 10¹² steps."""
    for name, value in options.items():
        _require_bounded(name, value)


def _require_bounded(name: str, value: Any) -> None:
    if isinstance(value, str | list | tuple | dict) and len(value) > MOST_ENTRIES:
        raise ValueError(f"the option {name} of an environment must have at most {MOST_ENTRIES} entries in a file")
    if isinstance(value, dict):
        for key, part in value.items():
            _require_bounded(f"{name}.{key}", part)
    elif isinstance(value, list | tuple):
        for part in value:
            _require_bounded(name, part)
    elif isinstance(value, int | float) and not abs(value) <= MOST_NUMBER:
        raise ValueError(
            f"the option {name} of an environment must be from -{MOST_NUMBER} to {MOST_NUMBER} in a file, not {value}: "
            f"give it on the command line with --env-option"
        )


def is_custom(id: str) -> bool:
    """Whether the id stands for an environment that was passed as an object or a function: "custom:Name"."""
    return id.startswith("custom:")


def find_spec(id: str) -> EnvSpec:
    """Gymnasium's entry of an id."""
    module, _, name = id.rpartition(":")
    if is_custom(id):
        raise ValueError(
            f"the environment {id!r} was passed as an object or a function, which a file cannot contain: "
            f"pass it again, for example EnvConfig.from_factory({name}) or make_env({name}())"
        )
    if module:
        try:
            importlib.import_module(module)
        except ModuleNotFoundError as error:
            if f"{module}.".startswith(f"{error.name}."):
                raise ValueError(
                    f"the module of environment {id!r} cannot be imported: {error}; modules are looked for in the "
                    f"current folder, {Path.cwd()}, and among the installed packages"
                ) from error
            raise  # the module is there, but not what it imports
    if name not in gymnasium.registry:
        register_entry_points()
    if name not in gymnasium.registry:
        near = difflib.get_close_matches(name, gymnasium.registry, n=3, cutoff=0)
        raise ValueError(f"there is no environment {id!r}; the closest ids are {', '.join(near)}")
    return gymnasium.registry[name]


def register_entry_points() -> None:
    """Register the environments of installed packages; ids that exist already are left alone."""
    for point in entry_points(group=GROUP):
        if point.name not in gymnasium.registry:
            gymnasium.register(point.name, entry_point=point.value)


def check_options(spec: EnvSpec, kwargs: dict[str, Any]) -> None:
    """Refuse options that the environment does not have, and options that are fixed by its id."""
    options = inspect.signature(_creator(spec)).parameters
    takes_any = any(option.kind is inspect.Parameter.VAR_KEYWORD for option in options.values())
    unknown = [] if takes_any else sorted(kwargs.keys() - options.keys() - {*OPTIONS_OF_GYMNASIUM})
    if unknown:
        raise TypeError(f"{spec.id} has no option {', '.join(unknown)}; it has {', '.join(options) or 'none'}")
    fixed = sorted(kwargs.keys() & spec.kwargs.keys()) if spec.namespace == "iap" else []
    if fixed:
        raise TypeError(f"{', '.join(fixed)} cannot be an option of {spec.id}, whose id fixes it: choose another id")


def check_render_mode(spec: EnvSpec) -> None:
    """Refuse an environment whose metadata lacks the render mode "rgb_array"."""
    modes = getattr(_creator(spec), "metadata", {}).get("render_modes", ["rgb_array"])
    if "rgb_array" not in modes:
        raise ValueError(f'image_from="render" needs the render mode "rgb_array"; {spec.id} has {modes or "none"}')


@contextlib.contextmanager
def tolerant_imports() -> Iterator[None]:
    """Ignore the warnings of importing Box2D, at which Python crashes if warnings are errors."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"builtin type \w+ has no __module__", DeprecationWarning)
        yield


def _creator(spec: EnvSpec) -> Any:
    """The class or function that makes the environment."""
    return load_env_creator(spec.entry_point) if isinstance(spec.entry_point, str) else spec.entry_point
