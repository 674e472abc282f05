"""What eyes are taught by: a robot in any pose, and where its parts are in the image."""

import math
from typing import Any

import numpy as np
from jaxtyping import Float

from iap.envs.camera import load_mujoco

FREE_SLIDE_M = 1.0  # how far a joint without limits may slide, each way
SPEED = {"hinge": 3.0, "slide": 1.0}  # standard deviation, in rad/s and m/s


def number_of(model: Any, part: str) -> int:
    """The geom of this name."""
    mujoco = load_mujoco()
    kind = mujoco.mjtObj.mjOBJ_GEOM.value
    number = mujoco.mj_name2id(model, kind, part)
    if number < 0:
        names = [mujoco.mj_id2name(model, kind, geom) for geom in range(model.ngeom)]
        raise ValueError(f"parts must be some of {', '.join(name for name in names if name)}, not {part!r}")
    return number


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
