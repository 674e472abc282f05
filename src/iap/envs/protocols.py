"""Optional abilities of an environment, as typed protocols that are found through wrappers.

An environment implements a protocol by having all of its members; it need not inherit from it.

| protocol | members | used by |
|---|---|---|
| `LazyRendering` | `set_rendering(enabled)` | rollouts, to skip images that the policy does not use |
| `Segmentation` | `segment_names`, `segmentation()` | attention statistics |
| `Keypoints` | `keypoints(names)`, `keypoints_visible(names)` | distillation |
| `SceneLabels` | `scene_labels()` | videos, to name the robot, the goal and other points |
| `PrivilegedState` | `privileged_state()` | linear probes, pretraining by evolution |
| `PrivilegedSensors` | `sensors_with(options)` | teacher policies with other sensors |
| `PrivilegedTeacher` | `label()` | distillation |
| `Symmetry` | `symmetry` | left-right symmetric policies |
| `RandomizableState` | `randomize_state(rng)` | distillation |
| `VisualSeeds` | `has_visual_seeds` | distillation, probes |
"""

import inspect
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import gymnasium
import numpy as np
from jaxtyping import Float, Int

Offered = TypeVar("Offered")


@runtime_checkable
class LazyRendering(Protocol):
    """An environment that can skip rendering."""

    def set_rendering(self, enabled: bool) -> None:
        """Whether the next steps render an image or return the last one again. `reset` enables rendering."""
        ...


@runtime_checkable
class Segmentation(Protocol):
    """An environment that knows what each pixel of its image shows."""

    @property
    def segment_names(self) -> Sequence[str]:
        """The names of the classes."""
        ...

    def segmentation(self) -> Int[np.ndarray, "H W"]:
        """The class of each pixel of the current image, as an index of `segment_names`."""
        ...


@runtime_checkable
class Keypoints(Protocol):
    """An environment that can locate named points. What names there are is documented by the environment."""

    def keypoints(self, names: Sequence[str]) -> Float[np.ndarray, " n"]:
        """The coordinates of the named keypoints, concatenated. Their number depends on the names only."""
        ...

    def keypoints_visible(self, names: Sequence[str]) -> bool:
        """Whether all points that the names refer to are inside the image."""
        ...


@runtime_checkable
class SceneLabels(Protocol):
    """An environment that can name points of the picture that `render` returns."""

    def scene_labels(self) -> Sequence[tuple[str, float, float]]:
        """Name, row and column of each point now; the picture is from 0 to 1. An empty name marks the point only."""
        ...


@runtime_checkable
class PrivilegedState(Protocol):
    """An environment that reveals the state that its image shows: regression targets for an encoder."""

    def privileged_state(self) -> Float[np.ndarray, " n"]:
        """The state now, as float32."""
        ...


class Label(NamedTuple):
    """What an expert would do in a state, and which other actions are as good.

    A cost map covers two entries of the action over their whole range, −1 … 1: entry (i, j) is the centre of a cell.
    It says how far a pair of values is from a good one, which matters where several places are equally good: a
    regression to one of them would end between them.

    Attributes:
        action: the expert's action, in [−1, 1].
        weights: of the errors of its entries; None for ones. At 0 any value is right.
        importance: of the state among all states.
        axes: for each cost map, the entry of its rows, that of its columns, and one that depends on both (or None).
        costs: the maps: smallest at good pairs, and 1 more at pairs that are off by a typical error.
        dependent: the right value of the dependent entry at each pair; anything for maps without one.
        state: what the expert knows, a further target for an encoder.
    """

    action: Float[np.ndarray, " k"]
    weights: Float[np.ndarray, " k"] | None = None
    importance: float = 1.0
    axes: tuple[tuple[int, int, int | None], ...] = ()
    costs: Float[np.ndarray, "maps rows columns"] | None = None
    dependent: Float[np.ndarray, "maps rows columns"] | None = None
    state: Float[np.ndarray, " s"] | None = None


@runtime_checkable
class PrivilegedSensors(Protocol):
    """An environment that can return the sensors of other options: a policy trained with those can act in it."""

    def sensors_with(self, options: Mapping[str, Any]) -> Float[np.ndarray, " n"]:
        """The sensors that the environment would return now if it had been made with these options."""
        ...


@runtime_checkable
class PrivilegedTeacher(Protocol):
    """An environment with an expert that knows its state."""

    def label(self) -> Label:
        """What the expert would do in the current state."""
        ...


@runtime_checkable
class Symmetry(Protocol):
    """An environment whose mirror image (left and right exchanged) is the same task."""

    @property
    def symmetry(self) -> Mapping[str, Sequence[float]]:
        """How the mirror image changes sensors and actions.

        "sensors" and "actions" are signed permutations, counted from 1: entry i is the number that becomes number i,
        negative if its sign changes. "offsets", if present, is added to the mirrored sensors.
        """
        ...


@runtime_checkable
class RandomizableState(Protocol):
    """An environment that can be put into a random state."""

    def randomize_state(self, rng: np.random.Generator) -> Any:
        """Draw a state from `rng`, and return the observation in it."""
        ...


@runtime_checkable
class VisualSeeds(Protocol):
    """An environment whose appearance has a seed of its own, apart from its motion."""

    @property
    def has_visual_seeds(self) -> bool:
        """Whether `reset(options={"visual_seed": …})` sets the appearance of the episode, and nothing else."""
        ...


def find_protocol(env: gymnasium.Env, protocol: type[Offered]) -> Offered | None:
    """The outermost layer of `env` that implements all members of the protocol; None if there is none."""
    layer: gymnasium.Env = env
    while True:
        if not _missing_members(layer, protocol):
            return layer  # pyright: ignore[reportReturnType]
        if not isinstance(layer, gymnasium.Wrapper):
            return None
        layer = layer.env


def require_protocol(env: gymnasium.Env, protocol: type[Offered]) -> Offered:
    """As `find_protocol`, but an environment without the protocol is an error."""
    found = find_protocol(env, protocol)
    if found is None:
        missing = ", ".join(_missing_members(env.unwrapped, protocol))
        raise ValueError(f"{env_name(env)} does not implement {protocol.__name__}: it lacks {missing}")
    return found


def keypoint_size(env: gymnasium.Env, names: Sequence[str]) -> int:
    """How many numbers `Keypoints.keypoints` returns for these names."""
    return len(require_protocol(env, Keypoints).keypoints(names))


def env_name(env: gymnasium.Env) -> str:
    """The id of an environment, or the name of its class if it was not made from an id."""
    return env.spec.id if env.spec is not None else type(env.unwrapped).__name__


def _missing_members(layer: gymnasium.Env, protocol: type) -> list[str]:
    """The members of the protocol that a layer does not have, or has with other arguments."""
    missing = []
    for name in sorted(_members(protocol)):
        wanted, offered = inspect.getattr_static(protocol, name), inspect.getattr_static(layer, name, None)
        if isinstance(wanted, property):
            if offered is None:
                missing.append(name)
        elif not callable(offered) or not _accepts(getattr(layer, name), wanted):
            missing.append(f"{name}{_arguments(wanted)}")
    return missing


def _members(protocol: type) -> set[str]:
    return {name for name in vars(protocol) if not name.startswith("_")}


def _accepts(method: Any, wanted: Any) -> bool:
    """Whether a bound method can be called as the protocol's method."""
    arguments = list(inspect.signature(wanted).parameters)[1:]
    try:
        inspect.signature(method).bind(*arguments)
    except (TypeError, ValueError):
        return False
    return True


def _arguments(method: Any) -> str:
    return f"({', '.join(list(inspect.signature(method).parameters)[1:])})"
