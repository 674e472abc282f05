"""Keypoints of a model: the positions of body parts (geoms) in the image or in the world, by name.

| name | coordinates |
|---|---|
| "A" | row and column of part A in the image, whose edges are at ±1 |
| "A+", "A-" | those of one end of a capsule A instead of its centre; also in all forms below |
| "A from B" | the same relative to part B |
| "row of A", "column of A from B" | one of the two |
| "x of A", "y of A", "z of A from B" | one world coordinate, in metres |
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from iap.envs.rendering.camera import load_mujoco, project

IMAGE_AXES = ("row", "column")
AXES = ("x", "y", "z", *IMAGE_AXES)
FREE_SLIDE_M = 1.0  # range of an unlimited slide joint, in both directions
SPEED = {"hinge": 3.0, "slide": 1.0}  # standard deviation of random joint speeds, in rad/s and m/s


class Keypoint(NamedTuple):
    """The position of a body part.

    Attributes:
        part: the geom whose centre it is, or the end of a capsule: the geom's name and a sign.
        origin: the geom that it is relative to, if any.
        axes: its coordinates, some of `AXES`.
    """

    part: str
    origin: str | None = None
    axes: tuple[str, ...] = IMAGE_AXES


def parse_keypoint(name: str) -> Keypoint:
    """The keypoint of a name such as "x of cart" or "target from finger"."""
    axis, of, rest = name.partition(" of ")
    part, _, origin = (rest if of else name).partition(" from ")
    if of and axis not in AXES:
        raise ValueError(f"keypoint axes must be some of {', '.join(AXES)}, not {axis!r} as in {name!r}")
    return Keypoint(part, origin or None, (axis,) if of else IMAGE_AXES)


def parse_keypoints(names: str | Sequence[str]) -> tuple[Keypoint, ...]:
    """The keypoints of one name or several."""
    return tuple(parse_keypoint(name) for name in ((names,) if isinstance(names, str) else names))


def parts_of(keypoints: Sequence[Keypoint]) -> list[str]:
    """Every part that the keypoints refer to, once."""
    return list(dict.fromkeys(part for point in keypoints for part in (point.part, point.origin) if part is not None))


class KeypointReader:
    """Reads the coordinates of keypoints from the simulator's state; geoms are looked up once."""

    def __init__(self, model: Any, camera: int, size: tuple[int, int], keypoints: Sequence[Keypoint]) -> None:
        self._model, self._camera, self._size = model, camera, size
        geoms, parts = _named_geoms(model), parts_of(keypoints)
        if missing := [part for part in parts if part.rstrip("+-") not in geoms]:
            raise ValueError(f"keypoints must be of the parts {', '.join(geoms)}, not of {missing[0]!r}")
        self._geoms = [geoms[part.rstrip("+-")] for part in parts]
        halves = [model.geom_size[geom, 1] for geom in self._geoms]  # of capsules, along their third axis
        signs = [part.endswith("+") * 1.0 - part.endswith("-") for part in parts]
        self._reach = np.array(signs) * np.array(halves)
        zero = len(AXES) * len(parts)  # the index of a zero behind all coordinates

        def index(part: str | None, axis: str) -> int:
            return zero if part is None else len(AXES) * parts.index(part) + AXES.index(axis)

        self._ends = [index(point.part, axis) for point in keypoints for axis in point.axes]
        self._starts = [index(point.origin, axis) for point in keypoints for axis in point.axes]

    def __len__(self) -> int:
        """The number of coordinates."""
        return len(self._ends)

    def __call__(self, data: Any) -> Float[np.ndarray, " n"]:
        """The coordinates of all keypoints now."""
        points = data.geom_xpos[self._geoms] + self._reach[:, None] * data.geom_xmat[self._geoms][:, 2::3]
        projected = project(self._model, data, self._camera, self._size, points)
        numbers = np.append(np.concatenate([points, projected], axis=1), 0.0)
        return numbers[self._ends] - numbers[self._starts]


class NoisyKeypoints:
    """Keypoints with Gaussian noise: one error for the episode, and one for each step."""

    def __init__(self, reader: KeypointReader, noise: float) -> None:
        if not 0 <= noise <= 1:
            raise ValueError(f"keypoint_noise must be between 0 and 1, half of the image's side, not {noise!r}")
        self._reader, self._noise = reader, float(noise)
        self.reset(0)

    def __len__(self) -> int:
        """The number of coordinates."""
        return len(self._reader)

    def reset(self, seed: int) -> None:
        """Draw the error of an episode."""
        self._rng = np.random.default_rng([seed, 1])
        self._episode_error = self._noise * self._rng.standard_normal(len(self._reader))

    def __call__(self, data: Any) -> Float[np.ndarray, " n"]:
        """The coordinates now."""
        error = self._noise * self._rng.standard_normal(len(self._reader))
        return self._reader(data) + self._episode_error + error


def randomize_joints(model: Any, data: Any, rng: np.random.Generator) -> None:
    """Draw positions within the limits, and speeds, of all hinge and slide joints; other joints are unchanged."""
    mujoco = load_mujoco()
    hinge, slide = mujoco.mjtJoint.mjJNT_HINGE.value, mujoco.mjtJoint.mjJNT_SLIDE.value
    for joint in range(model.njnt):
        if model.jnt_type[joint] not in (hinge, slide):
            continue
        is_hinge = model.jnt_type[joint] == hinge
        free = math.pi if is_hinge else FREE_SLIDE_M
        low, high = model.jnt_range[joint] if model.jnt_limited[joint] else (-free, free)
        data.qpos[model.jnt_qposadr[joint]] = rng.uniform(low, high)
        data.qvel[model.jnt_dofadr[joint]] = rng.normal(0, SPEED["hinge" if is_hinge else "slide"])
    mujoco.mj_forward(model, data)


def _named_geoms(model: Any) -> dict[str, int]:
    mujoco = load_mujoco()
    names = [mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_GEOM.value, geom) for geom in range(model.ngeom)]
    return {name: number for number, name in enumerate(names) if name}
