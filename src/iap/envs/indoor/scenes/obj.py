"""Wavefront OBJ and MTL files: triangles, split by material."""

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from jaxtyping import Float32, Int32

from iap.envs.indoor.scenes.errors import SceneError, read_text

MOST_FACES = 4_000_000
TRIANGLE = 3


@dataclass(frozen=True, eq=False)
class Mesh:
    """The triangles of one material; corner i of triangle f has position positions[f, i].

    Attributes:
        material: its name.
        positions: of the corners, in metres.
        texcoords: of the corners, (0, 0) at the lower left of the texture.
    """

    material: str
    positions: Float32[np.ndarray, "faces 3 3"]
    texcoords: Float32[np.ndarray, "faces 3 2"]

    @property
    def faces(self) -> int:
        """Their number."""
        return len(self.positions)


@dataclass(frozen=True)
class Material:
    """The appearance of a material.

    Attributes:
        name: of the material.
        colour: red, green, blue, in [0, 1]; multiplied with the texture.
        texture: the file of its texture, or None.
    """

    name: str
    colour: tuple[float, float, float] = (0.8, 0.8, 0.8)
    texture: Path | None = None


@dataclass
class _Group:
    """The corners of one material so far, as indices from 0; −1 is no texture coordinate."""

    positions: list[tuple[int, ...]] = field(default_factory=list)
    texcoords: list[tuple[int, ...]] = field(default_factory=list)


def read_obj(path: Path) -> tuple[list[Mesh], dict[str, Material]]:
    """The meshes of an OBJ file by material, without those that have no faces, and its materials."""
    positions: list[str] = []
    texcoords: list[str] = []
    groups: dict[str, _Group] = {}
    materials: dict[str, Material] = {}
    group, faces = groups.setdefault("", _Group()), 0
    text = read_text(path)
    for number, line in enumerate(text.split("\n"), 1):
        if line.startswith("v "):
            positions.append(line[2:])
        elif line.startswith("vt "):
            texcoords.append(line[3:])
        elif line.startswith("f "):
            faces += _add_face(group, line, (len(positions), len(texcoords)), path, number)
            if faces > MOST_FACES:
                raise SceneError(path, f"has more than the {MOST_FACES:,} faces that are read")
        elif line.startswith("usemtl"):
            group = groups.setdefault(line[6:].strip(), _Group())
        elif line.startswith("mtllib"):
            materials |= read_mtl(beside(path, line[6:].strip()))
    if not faces:
        raise SceneError(path, "has no faces")
    corners = _numbers(positions, 3, path, "v")
    coords = np.vstack([_numbers(texcoords, 2, path, "vt"), np.zeros((1, 2), np.float32)])  # index −1 is the last row
    return [
        Mesh(material, corners[np.array(part.positions)], coords[np.array(part.texcoords)])
        for material, part in groups.items()
        if part.positions
    ], materials


def read_mtl(path: Path) -> dict[str, Material]:
    """The materials of an MTL file by name: diffuse colours and textures."""
    materials: dict[str, Material] = {}
    name: str | None = None
    for number, line in enumerate(read_text(path).split("\n"), 1):
        key, _, rest = line.strip().partition(" ")
        if key == "newmtl":
            name = rest.strip()
            materials[name] = Material(name)
        elif name is not None and key == "Kd":
            try:
                red, green, blue = (float(x) for x in rest.split())
            except ValueError as error:
                raise SceneError(path, f"has no colour in line {number}: {line!r}") from error
            materials[name] = Material(name, (red, green, blue), materials[name].texture)
        elif name is not None and key == "map_Kd":
            texture = beside(path, rest.strip().split(" ")[-1] if rest.startswith("-") else rest.strip())
            materials[name] = Material(name, (1.0, 1.0, 1.0), texture)
    return materials


def beside(path: Path, name: str) -> Path:
    """A file that `path` names, which must be below its folder."""
    named = path.parent / name.replace("\\", "/")
    if not named.resolve().is_relative_to(path.parent.resolve()):
        raise SceneError(path, f"names the file {name!r}, which is outside its folder")
    return named


def _add_face(group: _Group, line: str, known: tuple[int, int], path: Path, number: int) -> int:
    """Add a polygon as a fan of triangles; the number of triangles."""
    try:
        corners = [corner.split("/") for corner in line.split()[1:]]
        at = [_index(corner[0], known[0]) for corner in corners]
        coord = [_index(corner[1], known[1]) if len(corner) > 1 and corner[1] else -1 for corner in corners]
    except (ValueError, IndexError) as error:
        raise SceneError(path, f"has a damaged face in line {number}, {line[:60]!r}: {error}") from error
    if len(at) < TRIANGLE:
        raise SceneError(path, f"has a face of {len(at)} corners in line {number}: it may be truncated")
    for i in range(1, len(at) - 1):
        group.positions.append((at[0], at[i], at[i + 1]))
        group.texcoords.append((coord[0], coord[i], coord[i + 1]))
    return len(at) - 2


def _index(text: str, count: int) -> int:
    """An index from 0 of one from 1, or of a negative one that counts from the end."""
    index = int(text)
    position = index - 1 if index > 0 else count + index
    if not 0 <= position < count:
        raise ValueError(f"index {index} is not one of the {count} so far")
    return position


def _numbers(lines: list[str], count: int, path: Path, kind: str) -> Float32[np.ndarray, "n count"]:
    """The first `count` numbers of each line."""
    if not lines:
        return np.zeros((0, count), np.float32)
    width = len(lines[0].split())
    try:
        array = np.array(" ".join(lines).split(), np.float32).reshape(len(lines), width)
    except ValueError as error:
        raise SceneError(path, f"has a damaged {kind!r} line: each must have {width} numbers ({error})") from error
    if width < count or not np.isfinite(array).all():
        raise SceneError(path, f"has {kind!r} lines without {count} finite numbers")
    return np.ascontiguousarray(array[:, :count])


def indexed(
    mesh: Mesh,
) -> tuple[Float32[np.ndarray, "n 3"], Float32[np.ndarray, "m 2"], Int32[np.ndarray, "f 3"], Int32[np.ndarray, "f 3"]]:
    """Distinct positions, distinct texture coordinates, and the indices of both for each corner."""
    positions, corner_of = np.unique(mesh.positions.reshape(-1, 3), axis=0, return_inverse=True)
    texcoords, coord_of = np.unique(mesh.texcoords.reshape(-1, 2), axis=0, return_inverse=True)
    return positions, texcoords, corner_of.reshape(-1, 3).astype(np.int32), coord_of.reshape(-1, 3).astype(np.int32)
