"""What eyes are taught by: a robot in any pose, and where its parts are in the image or in the room."""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from iap.envs.camera import load_mujoco

AXES = ("x", "y", "z")
FREE_SLIDE_M = 1.0  # how far a joint without limits may slide, each way
SPEED = {"hinge": 3.0, "slide": 1.0}  # standard deviation, in rad/s and m/s


class Place(NamedTuple):
    """What is told of a part (geom).

    Attributes:
        part: whose middle it is.
        origin: the part that it is counted from, if any.
        axis: of the room, in m; None for (row, column) in the image.
    """

    part: str
    origin: str | None
    axis: int | None


def place_named(name: str) -> Place:
    """Either "A" or "A from B", or along an axis of the room "x of A" or "z of A from B"."""
    axis, of, rest = name.partition(" of ")
    part, _, origin = (rest if of else name).partition(" from ")
    if of and axis not in AXES:
        raise ValueError(f"parts may be told along {', '.join(AXES)} of the room, not along {axis!r}, in {name!r}")
    return Place(part, origin or None, AXES.index(axis) if of else None)


def count_told(names: Sequence[str]) -> int:
    """How many numbers tell of these: two of a place in the image, one along an axis."""
    return sum(2 if place_named(name).axis is None else 1 for name in names)


def numbers_of_parts(model: Any) -> dict[str, int]:
    """The geoms that have names."""
    mujoco = load_mujoco()
    names = [mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_GEOM.value, geom) for geom in range(model.ngeom)]
    return {name: number for number, name in enumerate(names) if name}


def require_error(error: float) -> float:
    """Refuse what is no standard deviation of places."""
    if not 0 <= error <= 1:
        raise ValueError(f"told_error must be between 0 and 1, half of the image's side, not {error!r}")
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
