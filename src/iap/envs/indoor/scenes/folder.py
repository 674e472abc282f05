"""A scene folder as Gibson and iGibson have it.

| file | content |
|---|---|
| `mesh_z_up_downsampled.obj`, or else `mesh_z_up.obj` | the mesh, z up, in metres; with `.mtl` and textures |
| `floors.txt` | the height of each floor, one a line |
| `floor_trav_{i}.png` | where floor i is free (255): square, centred on the world's origin, 1 cm a pixel |
| `floor_{i}.png` | a picture of floor i, of the same shape; not needed |
"""

import hashlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from iap._validation import require_count, require_number
from iap.envs.indoor.scenes.errors import SceneError, read_text
from iap.envs.indoor.scenes.floor_map import FloorMap
from iap.envs.indoor.scenes.images import read_image
from iap.envs.indoor.scenes.obj import Material, Mesh, read_obj

MESHES = ("mesh_z_up_downsampled.obj", "mesh_z_up.obj")
RESOLUTION_M = 0.01
SEGMENTS = ("outside", "floor", "wall", "ceiling", "door", "furniture", "unlabelled", "robot")


@dataclass(frozen=True, eq=False)
class Scene:
    """One floor of a scene.

    Attributes:
        folder: it was read from.
        meshes: triangles, by material.
        materials: by name.
        textures: pixels by material, for those with a texture.
        floor_z_m: height of the floor.
        map: where the floor is free.
        fingerprint: of all files and options, for caches.
    """

    folder: Path
    meshes: tuple[Mesh, ...]
    materials: dict[str, Material]
    textures: dict[str, np.ndarray]
    floor_z_m: float
    map: FloorMap
    fingerprint: str

    @property
    def faces(self) -> int:
        """The number of triangles."""
        return sum(mesh.faces for mesh in self.meshes)


def read_scene(
    folder: str | Path, floor: int = 0, resolution_m: float = RESOLUTION_M, *, textured: bool = True
) -> Scene:
    """Read a floor of a scene.

    Args:
        folder: of the scene.
        floor: its number, from 0.
        resolution_m: side of a pixel of the traversability map: 0.01 in Gibson, 0.1 in later versions of iGibson.
        textured: whether textures are read.
    """
    folder = Path(folder)
    floor = require_count("floor", floor, least=0)
    resolution_m = require_number("resolution_m", resolution_m, 0.001, 1.0)
    if not folder.is_dir():
        raise SceneError(folder, "is not a folder")
    heights = read_floors(folder / "floors.txt")
    if floor >= len(heights):
        raise ValueError(f"floor must be at most {len(heights) - 1}, the floors of {folder}, not {floor}")
    path = mesh_path(folder)
    meshes, materials = read_obj(path)
    for mesh in meshes:
        materials.setdefault(mesh.material, Material(mesh.material))
    used = {mesh.material for mesh in meshes}
    textures = {
        name: read_image(material.texture, "RGB")
        for name, material in materials.items()
        if textured and material.texture is not None and name in used
    }
    floor_map = FloorMap.read(folder / f"floor_trav_{floor}.png", resolution_m)
    return Scene(
        folder, tuple(meshes), materials, textures, heights[floor], floor_map, fingerprint(folder, floor, resolution_m)
    )


def mesh_path(folder: Path) -> Path:
    """The mesh of a scene folder."""
    for name in MESHES:
        if (folder / name).exists():
            return folder / name
    raise SceneError(folder / MESHES[-1], f"does not exist, nor does {MESHES[0]}")


def read_floors(path: Path) -> list[float]:
    """The heights of the floors."""
    heights = []
    for number, line in enumerate(read_text(path).split("\n"), 1):
        if not line.strip():
            continue
        try:
            height = float(line)
        except ValueError as error:
            raise SceneError(path, f"has no height in line {number}: {line[:40]!r}") from error
        if not abs(height) < 1e4:  # noqa: PLR2004
            raise SceneError(path, f"has the height {height} in line {number}, which is not that of a floor")
        heights.append(height)
    if not heights:
        raise SceneError(path, "has no floors")
    return heights


def fingerprint(folder: Path, floor: int, resolution_m: float) -> str:
    """A hash of what a scene is made of: names, sizes and times of its files, and the options."""
    digest = hashlib.sha256(f"{folder.resolve()} {floor} {resolution_m}".encode())
    for path in sorted(folder.iterdir()):
        if path.is_file():
            status = path.stat()
            digest.update(f"{path.name} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()[:20]


LABELS = {
    "floor": ("floor", "rug", "carpet"),
    "wall": ("wall", "window", "column"),
    "ceiling": ("ceiling", "lamp_ceiling"),
    "door": ("door", "doorway", "opening"),
}
KNOWN_FURNITURE = (
    "furniture", "table", "couch", "sofa", "chair", "bed", "shelf", "storage", "screen", "lamp", "plant", "desk",
    "cabinet", "counter", "other", "art", "picture", "bookcase", "wardrobe", "sink", "toilet", "bathtub",
)  # fmt: skip


def segment_of(material: str) -> str:
    """The class of a material by its name: the part before the first digit, dot or hyphen; "unlabelled" if unknown."""
    words = material.lower().replace("-", " ").replace("_", " ").replace(".", " ").replace("/", " ").split()
    for word in words:
        for segment, names in LABELS.items():
            if word in names:
                return segment
    return "furniture" if any(word in KNOWN_FURNITURE for word in words) else "unlabelled"
