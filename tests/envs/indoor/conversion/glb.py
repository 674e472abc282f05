"""Writes small glTF files for the tests, and captured rooms of `@iwer/sem` as glTF."""

import base64
import json
import struct
from pathlib import Path

import numpy as np


def write_glb(path: Path, parts: list[dict], image: bytes | None = None, **changes) -> Path:
    """Write a .glb or .gltf file.

    Args:
        path: of the file; .gltf has its buffer as a data URI.
        parts: with name, positions (n, 3), indices, perhaps texcoords, and entries of the node ("translation", …).
        image: content of a PNG file that is the texture of all parts.
        changes: replaces entries of the JSON.
    """
    content, views, accessors, nodes, gltf_meshes = b"", [], [], [], []

    def view(data: bytes) -> int:
        nonlocal content
        views.append({"buffer": 0, "byteOffset": len(content), "byteLength": len(data)})
        content += data + b"\0" * (-len(data) % 4)
        return len(views) - 1

    def accessor(array: np.ndarray, component: int, kind: str) -> int:
        entry = {"bufferView": view(array.tobytes()), "componentType": component, "count": len(array), "type": kind}
        accessors.append(entry)
        return len(accessors) - 1

    for number, mesh in enumerate(parts):
        attributes = {"POSITION": accessor(np.asarray(mesh["positions"], "<f4"), 5126, "VEC3")}
        if "texcoords" in mesh:
            attributes["TEXCOORD_0"] = accessor(np.asarray(mesh["texcoords"], "<f4"), 5126, "VEC2")
        indices = accessor(np.asarray(mesh["indices"], "<u4").ravel(), 5125, "SCALAR")
        gltf_meshes.append({"primitives": [{"attributes": attributes, "indices": indices, "material": 0}]})
        place = {k: v for k, v in mesh.items() if k in ("translation", "rotation", "scale", "matrix", "children")}
        nodes.append({"mesh": number, "name": mesh["name"]} | place)
    look = {"baseColorFactor": [0.2, 0.4, 0.6, 1.0]} | ({"baseColorTexture": {"index": 0}} if image else {})
    data = {
        "asset": {"version": "2.0"},
        "scenes": [{"nodes": list(range(len(nodes)))}],
        "nodes": nodes,
        "meshes": gltf_meshes,
        "materials": [{"pbrMetallicRoughness": look}],
        "accessors": accessors,
        "bufferViews": views,
    }
    if image:
        data |= {"textures": [{"source": 0}], "images": [{"bufferView": view(image), "mimeType": "image/png"}]}
    data["buffers"] = [{"byteLength": len(content)}]
    data |= changes
    if path.suffix == ".gltf":
        uri = "data:application/octet-stream;base64," + base64.b64encode(content).decode()
        data["buffers"] = [{"byteLength": len(content), "uri": uri}]
        path.write_text(json.dumps(data))
        return path
    text = json.dumps(data).encode()
    text += b" " * (-len(text) % 4)
    chunks = struct.pack("<II", len(text), 0x4E4F534A) + text + struct.pack("<II", len(content), 0x004E4942) + content
    path.write_bytes(b"glTF" + struct.pack("<II", 2, 12 + len(chunks)) + chunks)
    return path


def box(name: str, low: tuple, high: tuple, *, has_top: bool, **entries) -> dict:
    """A box, y up."""
    corners = np.array([(x, y, z) for y in (low[1], high[1]) for z in (low[2], high[2]) for x in (low[0], high[0])])
    quads = [(0, 1, 3, 2), (0, 1, 5, 4), (1, 3, 7, 5), (3, 2, 6, 7), (2, 0, 4, 6), *([(4, 5, 7, 6)] if has_top else [])]
    indices = [corner for a, b, c, d in quads for corner in (a, b, c, a, c, d)]
    return {"name": name, "positions": corners, "indices": indices} | entries


def write_captured_room(path: Path, capture: Path) -> Path:
    """A room of `@iwer/sem` as a .glb file: its triangle mesh at its place, named "global_mesh"."""
    [entity] = [e for e in json.loads(capture.read_text())["spatialEntities"] if "triangleMesh_META" in e]
    mesh, place = entity["triangleMesh_META"], entity["locatable_META"]
    positions = np.frombuffer(base64.b64decode(mesh["vertices"]), "<f4").reshape(-1, 3)
    indices = np.frombuffer(base64.b64decode(mesh["indices"]), "<u4")
    rotation = [place["orientation"][axis] for axis in "xyzw"]
    translation = [place["position"][axis] for axis in "xyz"]
    return write_glb(
        path,
        [
            {
                "name": "global_mesh",
                "positions": positions,
                "indices": indices,
                "rotation": rotation,
                "translation": translation,
            }
        ],
    )
