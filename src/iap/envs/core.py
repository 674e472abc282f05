"""What every environment looks like to a policy: an image and sensors come out, a vector of raw numbers goes in."""

import contextlib
import difflib
import importlib
import inspect
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Literal

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec, load_env_creator
from jaxtyping import Float

from iap.envs.wrappers import from_observation, from_render, require_size

OPTIONS_OF_GYMNASIUM = ("max_episode_steps",)
HOLDS_NAN = "raw action holds NaN"


def make_env(
    id: str,
    *,
    image_from: Literal["observation", "render"] = "observation",
    image_size: Sequence[int] | None = None,
    **kwargs: Any,
) -> gymnasium.Env:
    """Any Gymnasium environment, observed as `{"image": (H, W, C) uint8 or float32, "sensors": (n,) float32}`.

    Args:
        id: a registered id, or "module:id" for one that is registered when its module is imported.
        image_from: "observation" takes the one image in the observation, and all else in it as sensors;
            "render" takes the picture that the environment draws of itself, and nothing else.
        image_size: (height, width) to resize the image to; its own size if not given.
        kwargs: options of the environment itself.
    """
    if image_from not in ("observation", "render"):
        raise ValueError(f'image_from must be "observation" or "render", not {image_from!r}')
    size = None if image_size is None else require_size("image_size", image_size)
    with _survivable_imports():
        spec = _find(id)
        _check_options(spec, kwargs)
        if image_from == "render":
            _check_drawing(spec)
            kwargs["render_mode"] = "rgb_array"
        env = gymnasium.make(spec, disable_env_checker=True, **kwargs)
    try:
        action_count(env.action_space)
        return from_render(env, size) if image_from == "render" else from_observation(env, size)
    except Exception:
        env.close()
        raise


def find_env(id: str) -> str:
    """`id`, once there is such an environment; the module of "module:id" is imported."""
    _find(id)
    return id


def require_harmless(id: str) -> str:
    """`id`, unless making its environment would import a module that is not loaded: for ids that came in a file."""
    module, _, name = id.rpartition(":")
    if module and not (module in sys.modules and name in gymnasium.registry):
        raise ValueError(
            f"the environment {id!r} is of the module {module!r}, and no file may have a module imported: "
            f"if you trust it, import it yourself, or name the environment on the command line with --env {id}"
        )
    return id


def action_count(space: spaces.Space) -> int:
    """How many raw numbers choose an action: one an entry of a Box, one a choice of a Discrete."""
    if isinstance(space, spaces.Discrete):
        return int(space.n)
    if not isinstance(space, spaces.Box) or not np.issubdtype(space.dtype, np.floating):
        raise ValueError(f"actions must be a Box of floats or Discrete: {space} is not supported")
    with np.errstate(over="ignore"):
        reach = space.high.astype(np.float32) - space.low.astype(np.float32)
    if not np.isfinite(reach).all():
        raise ValueError(f"actions must have finite bounds: {space} has none, so rescale it with a wrapper")
    return int(np.prod(space.shape))


def to_action(space: spaces.Space, raw: Float[np.ndarray, " k"]) -> Any:
    """Raw numbers as an action: clipped to [-1, 1] and stretched over a Box, or the (first) largest of a Discrete."""
    return action_map(space)(raw)


def action_map(space: spaces.Space) -> Callable[[Float[np.ndarray, " k"]], Any]:
    """`to_action` of one space, with all that does not depend on the raw numbers done before."""
    if isinstance(space, spaces.Discrete):
        return partial(_largest, space)
    assert isinstance(space, spaces.Box)
    low, high = (side.astype(np.float64).ravel() for side in (space.low, space.high))
    entries = list(
        zip(((high + low) / 2).tolist(), ((high - low) / 2).tolist(), low.tolist(), high.tolist(), strict=True)
    )

    def stretch(raw: Float[np.ndarray, " k"]) -> np.ndarray:
        action = []  # on plain numbers, which for a handful of them is twice as fast as on arrays
        for x, (middle, reach, lowest, highest) in zip(raw.tolist(), entries, strict=True):
            if x != x:  # noqa: PLR0124 - which is so of NaN alone
                raise ValueError(HOLDS_NAN)
            value = middle + reach * (-1.0 if x < -1 else 1.0 if x > 1 else x)
            action.append(lowest if value < lowest else highest if value > highest else value)
        return np.array(action, space.dtype).reshape(space.shape)

    def leave(raw: Float[np.ndarray, " k"]) -> np.ndarray:
        if raw.dtype != space.dtype or raw.shape != space.shape:
            return stretch(raw)
        for x in raw.tolist():
            if not -1 <= x <= 1:  # NaN is not, either
                return stretch(raw)
        return raw

    return leave if (low == -1).all() and (high == 1).all() else stretch


def _largest(space: spaces.Discrete, raw: Float[np.ndarray, " k"]) -> np.integer:
    if np.isnan(raw).any():
        raise ValueError(HOLDS_NAN)
    return space.start + np.argmax(raw)


def _find(id: str) -> EnvSpec:
    module, _, name = id.rpartition(":")
    if module:
        try:
            importlib.import_module(module)
        except ModuleNotFoundError as error:
            raise ValueError(f"the module of environment {id!r} cannot be imported: {error}") from error
    if name not in gymnasium.registry:
        near = difflib.get_close_matches(name, gymnasium.registry, n=3, cutoff=0)
        raise ValueError(f"there is no environment {id!r}; the nearest are {', '.join(near)}")
    return gymnasium.registry[name]


def _check_options(spec: EnvSpec, kwargs: dict[str, Any]) -> None:
    """Refuse options that the environment does not have, or that its id has decided, by name."""
    options = inspect.signature(_creator(spec)).parameters
    takes_any = any(option.kind is inspect.Parameter.VAR_KEYWORD for option in options.values())
    unknown = [] if takes_any else sorted(kwargs.keys() - options.keys() - {*OPTIONS_OF_GYMNASIUM})
    if unknown:
        raise TypeError(f"{spec.id} has no option {', '.join(unknown)}; it has {', '.join(options) or 'none'}")
    decided = sorted(kwargs.keys() & spec.kwargs.keys()) if spec.namespace == "iap" else []
    if decided:
        raise TypeError(f"{spec.id} decides {', '.join(decided)} itself: choose another id instead")


def _check_drawing(spec: EnvSpec) -> None:
    """Refuse an environment that says that it cannot draw itself."""
    modes = getattr(_creator(spec), "metadata", {}).get("render_modes", ["rgb_array"])
    if "rgb_array" not in modes:
        raise ValueError(f'image_from="render" needs the render mode "rgb_array"; {spec.id} has {modes or "none"}')


def _creator(spec: EnvSpec) -> Any:
    """The class or function that makes the environment."""
    return load_env_creator(spec.entry_point) if isinstance(spec.entry_point, str) else spec.entry_point


@contextlib.contextmanager
def _survivable_imports() -> Iterator[None]:
    """Box2D gives warnings in being imported, at which Python crashes where warnings are errors."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"builtin type \w+ has no __module__", DeprecationWarning)
        yield
