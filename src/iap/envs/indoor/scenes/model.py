"""A scene as part of a MuJoCo model: the mesh in cells to look at, a plane and a height field to collide with.

A MuJoCo mesh has one material and is rendered as a whole. The mesh is therefore split by material, and into square
cells, which are enabled and disabled one by one. Only the plane and the height field collide: a mesh would collide as
its convex hull.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from iap.envs.indoor.scenes.floor_map import FloorMap
from iap.envs.indoor.scenes.folder import SEGMENTS, Scene, segment_of
from iap.envs.indoor.scenes.obj import Mesh, indexed

CELL_M = 1.5
SHOWN_GROUP, HIDDEN_GROUP = 0, 3
FLOOR_BIT, WALL_BIT = 1, 2  # feet collide with the first, trunks with the second
OBSTACLE_M, BURIED_M = 1.0, 0.05  # height of the obstacles, and of their base below the floor
FLOOR_FRICTION = 0.7
LEAST_VERTICES = 4  # of a MuJoCo mesh
PIECE = "piece"
PROBE = "probe"  # a camera that finds out what can be seen
PROBE_FOV_DEG = 110.0
UNTEXTURED_EMISSION = 0.25  # of materials without baked light, which the model's lights shade


@dataclass(frozen=True, eq=False)
class Pieces:
    """The parts of a split mesh: geoms `piece0`, `piece1`, … of the model.

    Attributes:
        centre_m: of their bounding boxes.
        half_m: half the size of these.
        segments: the class of each, as an index of `SEGMENTS`.
    """

    centre_m: Float[np.ndarray, "n 3"]
    half_m: Float[np.ndarray, "n 3"]
    segments: Int[np.ndarray, " n"]


def split_cells(mesh: Mesh, cell_m: float | None) -> list[Mesh]:
    """The triangles of a mesh by the cell of their centre; all together if `cell_m` is None."""
    if cell_m is None:
        return [mesh]
    cells = np.floor(mesh.positions[:, :, :2].mean(axis=1) / cell_m).astype(np.int64)
    _, cell_of = np.unique(cells, axis=0, return_inverse=True)
    order = np.argsort(cell_of.ravel(), kind="stable")
    ends = np.flatnonzero(np.diff(cell_of.ravel()[order])) + 1
    return [Mesh(mesh.material, mesh.positions[part], mesh.texcoords[part]) for part in np.split(order, ends)]


def add_scene(mujoco: Any, spec: Any, scene: Scene, cell_m: float | None = CELL_M) -> Pieces:
    """Add the scene to a model; the pieces of its mesh."""
    _add_materials(mujoco, spec, scene)
    pieces = [piece for mesh in scene.meshes for piece in split_cells(mesh, cell_m)]
    for number, piece in enumerate(pieces):
        _add_piece(mujoco, spec, piece, number)
    _add_obstacles(mujoco, spec, scene.map, scene.floor_z_m)
    spec.worldbody.add_camera(name=PROBE, fovy=PROBE_FOV_DEG)
    low = np.array([piece.positions.min(axis=(0, 1)) for piece in pieces], np.float64)
    high = np.array([piece.positions.max(axis=(0, 1)) for piece in pieces], np.float64)
    segments = np.array([SEGMENTS.index(segment_of(piece.material)) for piece in pieces])
    return Pieces((low + high) / 2, (high - low) / 2, segments)


def _add_materials(mujoco: Any, spec: Any, scene: Scene) -> None:
    """The materials of the meshes. Textures hold the light that was baked or photographed, so they are emitted."""
    for name in {mesh.material: None for mesh in scene.meshes}:
        material = spec.add_material(name=f"scene {name}", rgba=(*scene.materials[name].colour, 1), specular=0)
        pixels = scene.textures.get(name)
        material.emission = 1.0 if pixels is not None else UNTEXTURED_EMISSION
        if pixels is None:
            continue
        height, width = pixels.shape[:2]
        texture = spec.add_texture(name=f"scene {name}", type=mujoco.mjtTexture.mjTEXTURE_2D)
        texture.width, texture.height, texture.nchannel, texture.data = width, height, 3, pixels.tobytes()
        material.textures[mujoco.mjtTextureRole.mjTEXROLE_RGB] = f"scene {name}"


def _add_piece(mujoco: Any, spec: Any, piece: Mesh, number: int) -> None:
    positions, texcoords, corner_of, coord_of = indexed(piece)
    if len(positions) < LEAST_VERTICES:
        positions = np.concatenate([positions, np.repeat(positions[:1], LEAST_VERTICES - len(positions), axis=0)])
    texcoords = texcoords * (1, -1) + (0, 1)  # from memory, MuJoCo takes v downwards, unlike from files
    spec.add_mesh(
        name=f"{PIECE}{number}",
        uservert=positions.ravel(),
        userface=corner_of.ravel(),
        usertexcoord=texcoords.ravel(),
        userfacetexcoord=coord_of.ravel(),
        inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL,  # the mesh is open, and may have no volume
    )
    spec.worldbody.add_geom(
        name=f"{PIECE}{number}",
        type=mujoco.mjtGeom.mjGEOM_MESH,
        meshname=f"{PIECE}{number}",
        material=f"scene {piece.material}",
        contype=0,
        conaffinity=0,
        group=SHOWN_GROUP,
    )


def _add_obstacles(mujoco: Any, spec: Any, floor: FloorMap, floor_z_m: float) -> None:
    """A plane to walk on, and a height field that is raised where the floor is not free."""
    rows, columns = floor.free.shape
    width, depth = floor.size_m
    spec.add_hfield(
        name="obstacles",
        nrow=rows,
        ncol=columns,
        size=(width / 2, depth / 2, OBSTACLE_M, BURIED_M),
        userdata=np.where(floor.free, 0.0, 1.0).ravel(),
    )
    x, y = floor.position((rows - 1) / 2, (columns - 1) / 2)
    sides: dict[str, Any] = {"condim": 1, "friction": (0, 0, 0), "contype": WALL_BIT, "conaffinity": 0}
    spec.worldbody.add_geom(
        name="obstacles",
        type=mujoco.mjtGeom.mjGEOM_HFIELD,
        hfieldname="obstacles",
        pos=(x, y, floor_z_m - BURIED_M),
        group=HIDDEN_GROUP,
        **sides,
    )
    spec.worldbody.add_geom(
        name="ground",
        type=mujoco.mjtGeom.mjGEOM_PLANE,
        size=(0, 0, 1),
        pos=(0, 0, floor_z_m),
        condim=3,
        friction=(FLOOR_FRICTION, 0, 0),
        contype=FLOOR_BIT,
        conaffinity=0,
        group=HIDDEN_GROUP,
    )
