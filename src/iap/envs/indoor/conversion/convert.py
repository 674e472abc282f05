"""Converts a glTF room to a scene folder: mesh, materials, textures, heights of floors and traversability maps."""

import io
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from iap._files import write_whole
from iap._validation import require_number
from iap.envs.indoor.conversion.gltf import Part, read_gltf
from iap.envs.indoor.conversion.traversability import floor_height_m, traversability
from iap.envs.indoor.scenes.errors import SceneError
from iap.envs.indoor.scenes.folder import RESOLUTION_M
from iap.envs.indoor.scenes.images import png

SUFFIXES = (".glb", ".gltf")


def convert_scene(path: str | Path, out: str | Path, floors_m: Sequence[float] = (), centred: bool = True) -> Path:
    """Write the scene of a file to a folder, which is created.

    Args:
        path: a .glb or .gltf file, y up, in metres.
        out: the folder; files of a scene in it are replaced.
        floors_m: the heights of the floors; by default one, the lowest large horizontal area.
        centred: whether the middle of the mesh is moved to the origin, around which the maps lie.
    """
    path, out = Path(path), Path(out)
    if path.suffix.lower() not in SUFFIXES:
        raise ValueError(f"the scene must be a .glb or .gltf file, not {path}")
    if out.exists() and not out.is_dir():
        raise NotADirectoryError(f"out must be a folder, and {out} is a file")
    parts, images = read_gltf(path)
    positions = np.concatenate([part.positions for part in parts])
    shift = np.zeros(3, np.float32)
    if centred:
        shift[:2] = (positions[:, :, :2].min(axis=(0, 1)) + positions[:, :, :2].max(axis=(0, 1))) / 2
    positions = positions - shift
    try:
        heights = [require_number("floors_m", z, -1e4, 1e4) for z in floors_m] or [floor_height_m(positions)]
    except ValueError as error:
        raise SceneError(path, f"cannot be converted: {error}") from error
    maps = [traversability(positions, z, RESOLUTION_M) for z in heights]
    out.mkdir(parents=True, exist_ok=True)
    for number, content in images.items():
        write_whole(out / f"texture_{number}.png", _png_of(path, content))
    write_whole(out / "mesh_z_up.mtl", _mtl(parts).encode())
    write_whole(out / "mesh_z_up.obj", _obj(parts, shift).encode())
    write_whole(out / "floors.txt", "".join(f"{z:.4f}\n" for z in heights).encode())
    for number, (free, floor) in enumerate(maps):
        write_whole(out / f"floor_trav_{number}.png", png(free))
        write_whole(out / f"floor_{number}.png", png(floor))
    return out


def _names(parts: list[Part]) -> list[str]:
    """A material name for each part, which starts with the words of its label."""
    words = ["_".join("".join(c if c.isalnum() else " " for c in part.name).split()).lower() for part in parts]
    return [f"{word or 'mesh'}.{number}" for number, word in enumerate(words)]


def _mtl(parts: list[Part]) -> str:
    lines = []
    for name, part in zip(_names(parts), parts, strict=True):
        lines.append(f"newmtl {name}\nKd {' '.join(f'{x:.4f}' for x in part.colour)}\n")
        lines.append("" if part.image is None else f"map_Kd texture_{part.image}.png\n")
    return "".join(lines)


def _obj(parts: list[Part], shift: np.ndarray) -> str:
    lines, known = ["mtllib mesh_z_up.mtl"], 0
    for name, part in zip(_names(parts), parts, strict=True):
        lines.append(f"usemtl {name}")
        lines += [f"v {x:.5f} {y:.5f} {z:.5f}" for x, y, z in (part.positions - shift).reshape(-1, 3).tolist()]
        lines += [f"vt {s:.6f} {1 - t:.6f}" for s, t in part.texcoords.reshape(-1, 2).tolist()]
        for face in range(len(part.positions)):
            first = known + 3 * face
            lines.append("f " + " ".join(f"{first + k}/{first + k}" for k in (1, 2, 3)))
        known += 3 * len(part.positions)
    return "\n".join([*lines, ""])


def _png_of(path: Path, content: bytes) -> bytes:
    from PIL import Image

    try:
        with Image.open(io.BytesIO(content)) as image:
            return png(np.array(image.convert("RGB")))
    except Exception as error:  # Pillow raises many kinds of errors for damaged files
        raise SceneError(path, f"has an image that is not whole ({error})") from error
