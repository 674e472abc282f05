"""Compiled scenes: the MuJoCo model of a scene with a robot, its pieces, its map and what can be seen from where.

They are cached on disk, since reading a mesh and finding out what can be seen take long for large scenes.
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from iap.envs.indoor.scenes.cache import COMPILED, cached_folder
from iap.envs.indoor.scenes.floor_map import FloorMap
from iap.envs.indoor.scenes.folder import RESOLUTION_M, Scene, fingerprint, read_scene
from iap.envs.indoor.scenes.model import CELL_M, Pieces, add_scene
from iap.envs.indoor.scenes.visibility import Visibility, find_visible
from iap.envs.rendering.camera import load_mujoco

FORMAT = 1  # of the cached files
MODEL, ARRAYS = "model.mjb", "arrays.npz"
CULLED_FACES = 40_000  # scenes with more get sets of visible pieces


@dataclass(frozen=True, eq=False)
class CompiledScene:
    """A scene in a model.

    Attributes:
        model: the `mujoco.MjModel`.
        pieces: of the mesh.
        map: where the floor is free.
        floor_z_m: height of the floor.
        faces: triangles of the mesh.
        visibility: the pieces that can be seen from each place, for large scenes.
    """

    model: Any
    pieces: Pieces
    map: FloorMap
    floor_z_m: float
    faces: int
    visibility: Visibility | None


def compile_scene(
    folder: str | Path,
    robot_xml: str,
    eye_m: float,
    *,
    floor: int = 0,
    resolution_m: float = RESOLUTION_M,
    textured: bool = True,
    culled_faces: int = CULLED_FACES,
) -> CompiledScene:
    """The compiled scene of a folder, from the cache if it is there.

    Args:
        folder: of the scene.
        robot_xml: the model that the scene is added to.
        eye_m: height of the robot's camera above the floor, for what can be seen from where.
        floor: number of the floor.
        resolution_m: side of a pixel of the traversability map.
        textured: whether the model has the scene's textures, which make it ten times as large.
        culled_faces: scenes with more triangles get sets of visible pieces.
    """
    folder = Path(folder)
    if not folder.is_dir():
        read_scene(folder, floor, resolution_m)  # raises the error
    mujoco = load_mujoco()
    options = (robot_xml, eye_m, textured, culled_faces)
    facts = (FORMAT, mujoco.__version__, fingerprint(folder, floor, resolution_m), *options)
    key = hashlib.sha256(repr(facts).encode()).hexdigest()[:24]

    def make(out: Path) -> None:
        scene = read_scene(folder, floor, resolution_m, textured=textured)
        _save(mujoco, _compile(mujoco, scene, robot_xml, eye_m, culled_faces), out)

    return _load(mujoco, cached_folder(COMPILED, key, make))


def _compile(mujoco: Any, scene: Scene, robot_xml: str, eye_m: float, culled_faces: int) -> CompiledScene:
    spec = mujoco.MjSpec.from_string(robot_xml)
    pieces = add_scene(mujoco, spec, scene, CELL_M)
    model = spec.compile()
    visibility = None
    if scene.faces > culled_faces:
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        visibility = find_visible(model, data, pieces, scene.map, scene.floor_z_m + eye_m)
    return CompiledScene(model, pieces, scene.map, scene.floor_z_m, scene.faces, visibility)


def _save(mujoco: Any, compiled: CompiledScene, folder: Path) -> None:
    mujoco.mj_saveModel(compiled.model, str(folder / MODEL))
    floor, pieces, visibility = compiled.map, compiled.pieces, compiled.visibility
    arrays: dict[str, Any] = {
        "centre_m": pieces.centre_m,
        "half_m": pieces.half_m,
        "segments": pieces.segments,
        "free": floor.free,
        "map": (floor.resolution_m, *floor.origin_m),
        "facts": (compiled.floor_z_m, compiled.faces),
    }
    if visibility is not None:
        arrays |= {"sets": np.packbits(visibility.sets, axis=-1), "origin": visibility.origin_m}
    np.savez(folder / ARRAYS, **arrays)


def _load(mujoco: Any, folder: Path) -> CompiledScene:
    with np.load(folder / ARRAYS, allow_pickle=False) as file:
        arrays = {name: file[name] for name in file.files}
    pieces = Pieces(arrays["centre_m"], arrays["half_m"], arrays["segments"])
    resolution, x, y = arrays["map"].tolist()
    floor_z_m, faces = arrays["facts"].tolist()
    visibility = None
    if "sets" in arrays:
        sets = np.unpackbits(arrays["sets"], axis=-1, count=len(pieces.segments)).astype(bool)
        visibility = Visibility(sets, tuple(arrays["origin"].tolist()))
    model = mujoco.MjModel.from_binary_path(str(folder / MODEL))
    return CompiledScene(model, pieces, FloorMap(arrays["free"], resolution, (x, y)), floor_z_m, int(faces), visibility)
