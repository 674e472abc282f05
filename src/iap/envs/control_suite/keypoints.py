"""What eyes are taught by: a robot in any pose, and where its parts are in the image or in the room."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from iap.envs.rendering.camera import load_mujoco

IN_IMAGE = ("row", "column")
AXES = ("x", "y", "z", *IN_IMAGE)  # of the room, in m, and of the image
FREE_SLIDE_M = 1.0  # how far a joint without limits may slide, each way
SPEED = {"hinge": 3.0, "slide": 1.0}  # standard deviation, in rad/s and m/s


class Place(NamedTuple):
    """What is told of a part (geom).

    Attributes:
        part: whose middle it is.
        origin: the part that it is counted from, if any.
        axes: those of AXES that it is told along.
    """

    part: str
    origin: str | None
    axes: tuple[str, ...]


def place_named(name: str) -> Place:
    """Either "A" or "A from B", (row, column) in the image, or along one axis "x of A", "column of A from B"."""
    axis, of, rest = name.partition(" of ")
    part, _, origin = (rest if of else name).partition(" from ")
    if of and axis not in AXES:
        raise ValueError(f"parts may be told along {', '.join(AXES)}, not along {axis!r} as in {name!r}")
    return Place(part, origin or None, (axis,) if of else IN_IMAGE)


def count_told(names: Sequence[str]) -> int:
    """How many numbers tell of these: two of a place in the image, one along a single axis."""
    return sum(len(place_named(name).axes) for name in names)


class Telling:
    """Tells where parts are: their points are looked up once, then told at every step."""

    def __init__(self, model: Any, camera: int, size: tuple[int, int], names: Sequence[str]) -> None:
        self._model, self._camera, self._size = model, camera, size
        geoms = _geoms_of(model)
        places = [place_named(name) for name in names]
        wanted = list(dict.fromkeys(part for part, origin, _ in places for part in (part, origin) if part is not None))
        if missing := [part for part in wanted if part not in geoms]:
            raise ValueError(f"parts must be some of {', '.join(geoms)}, not {missing[0]!r}")
        self._points = [geoms[part] for part in wanted]
        nothing = len(AXES) * len(wanted)  # the place of a zero behind all coordinates
        self._ends = [len(AXES) * wanted.index(part) + AXES.index(axis) for part, _, axes in places for axis in axes]
        self._starts = [
            nothing if origin is None else len(AXES) * wanted.index(origin) + AXES.index(axis)
            for _, origin, axes in places
            for axis in axes
        ]

    def __call__(self, data: Any) -> Float[np.ndarray, " n"]:
        """The numbers that tell of the places, as they are now."""
        points = data.geom_xpos[self._points]
        shown = place_in_image(self._model, data, self._camera, self._size, points)
        numbers = np.append(np.concatenate([points, shown], axis=1), 0.0)
        return numbers[self._ends] - numbers[self._starts]


def _geoms_of(model: Any) -> dict[str, int]:
    """The geoms that have names."""
    mujoco = load_mujoco()
    names = [mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_GEOM.value, geom) for geom in range(model.ngeom)]
    return {name: number for number, name in enumerate(names) if name}


def require_error(error: float) -> float:
    """Refuse what is no standard deviation of places."""
    if not 0 <= error <= 1:
        raise ValueError(f"keypoint_noise must be between 0 and 1, half of the image's side, not {error!r}")
    return float(error)


def place_in_image(
    model: Any, data: Any, camera: int, size: tuple[int, int], points: Float[np.ndarray, "n 3"]
) -> Float[np.ndarray, "n 2"]:
    """Where points of the world are in the image of a camera, (row, column), the image's edges being at ±1."""
    right, up, back = ((points - data.cam_xpos[camera]) @ data.cam_xmat[camera].reshape(3, 3)).T
    focus = 1 / math.tan(math.radians(model.cam_fovy[camera]) / 2)  # in halves of the image's height
    height, width = size
    return np.stack([focus * up / back, -focus * right / back * (height / width)], axis=1)


def scatter_joints(model: Any, data: Any, rng: np.random.Generator) -> None:
    """Hinges and slides anywhere within their limits, all of them moving; other joints stay as they are."""
    mujoco = load_mujoco()
    hinge, slide = mujoco.mjtJoint.mjJNT_HINGE.value, mujoco.mjtJoint.mjJNT_SLIDE.value
    for joint in range(model.njnt):
        if model.jnt_type[joint] not in (hinge, slide):
            continue
        turns = model.jnt_type[joint] == hinge
        free = math.pi if turns else FREE_SLIDE_M
        low, high = model.jnt_range[joint] if model.jnt_limited[joint] else (-free, free)
        data.qpos[model.jnt_qposadr[joint]] = rng.uniform(low, high)
        data.qvel[model.jnt_dofadr[joint]] = rng.normal(0, SPEED["hinge" if turns else "slide"])
    mujoco.mj_forward(model, data)
