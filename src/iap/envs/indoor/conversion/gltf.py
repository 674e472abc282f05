"""Reads glTF 2.0 files (.glb and .gltf): triangles with their materials, in the axes of Gibson scenes (z up).

Read are nodes with transformations, triangle meshes, texture coordinates, base colours and base colour textures. Files
that require an extension, such as compressed meshes, are refused.
"""

import base64
import binascii
import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Float32

from iap.envs.indoor.scenes.errors import SceneError, read_bytes
from iap.envs.indoor.scenes.obj import MOST_FACES, beside

MAGIC, VERSION = b"glTF", 2
JSON_CHUNK, BINARY_CHUNK = 0x4E4F534A, 0x004E4942
TRIANGLES = 4  # the mode of a primitive
NUMBERS = {5120: "i1", 5121: "u1", 5122: "<i2", 5123: "<u2", 5125: "<u4", 5126: "<f4"}
SIZES = {"SCALAR": 1, "VEC2": 2, "VEC3": 3, "VEC4": 4}
MOST_DEPTH = 100  # of nested nodes
Z_UP = np.array([[1, 0, 0], [0, 0, -1], [0, 1, 0]], float)
BAD_CONTENT = (ValueError, KeyError, IndexError, TypeError, AttributeError, struct.error, RecursionError)


@dataclass(frozen=True, eq=False)
class Part:
    """The triangles of one primitive.

    Attributes:
        name: of its node, mesh or material, the first of them that there is.
        positions: of the corners, z up.
        texcoords: of the corners, (0, 0) at the upper left of the texture.
        colour: red, green, blue.
        image: number of the image of its texture, or None.
    """

    name: str
    positions: Float32[np.ndarray, "faces 3 3"]
    texcoords: Float32[np.ndarray, "faces 3 2"]
    colour: tuple[float, float, float]
    image: int | None


def read_gltf(path: Path) -> tuple[list[Part], dict[int, bytes]]:
    """The parts of a file, and the content of the images that they use by number."""
    content = read_bytes(path)
    try:
        return _File(path, content).read()
    except SceneError:
        raise
    except BAD_CONTENT as error:
        raise SceneError(path, f"is no whole glTF file ({type(error).__name__}: {error})") from error


class _File:
    """One file and its buffers."""

    def __init__(self, path: Path, content: bytes) -> None:
        self._path, self._binary = path, b""
        text = self._chunks(content) if content[:4] == MAGIC else content
        self._data: dict[str, Any] = json.loads(text)
        version = str(self._data["asset"]["version"])
        if version.partition(".")[0] != str(VERSION):
            raise SceneError(path, f"is glTF {version}, and only version {VERSION} is read")
        if required := self._data.get("extensionsRequired"):
            raise SceneError(path, f"requires the extensions {', '.join(map(str, required))}, which are not read")
        self._buffers: dict[int, bytes] = {}

    def read(self) -> tuple[list[Part], dict[int, bytes]]:
        parts = [part for node in self._roots() for part in self._parts(node, np.eye(4), MOST_DEPTH)]
        if not parts:
            raise SceneError(self._path, "has no triangles")
        if sum(len(part.positions) for part in parts) > MOST_FACES:
            raise SceneError(self._path, f"has more than the {MOST_FACES:,} faces that are read")
        return parts, {part.image: self._image(part.image) for part in parts if part.image is not None}

    def _chunks(self, content: bytes) -> bytes:
        """The JSON text of a .glb file, whose binary chunk is kept."""
        version, length = struct.unpack_from("<II", content, 4)
        if version != VERSION or length > len(content):
            raise ValueError(f"version {version} and {length:,} of {len(content):,} bytes: it may be truncated")
        place, text = 12, b""
        while place + 8 <= length:
            size, kind = struct.unpack_from("<II", content, place)
            chunk = content[place + 8 : place + 8 + size]
            if len(chunk) < size:
                raise ValueError("the file ends within a chunk: it may be truncated")
            if kind == JSON_CHUNK:
                text = chunk
            elif kind == BINARY_CHUNK:
                self._binary = chunk
            place += 8 + size
        return text

    def _roots(self) -> list[int]:
        scenes = self._data.get("scenes")
        if scenes:
            return scenes[self._data.get("scene", 0)]["nodes"]
        return list(range(len(self._data.get("nodes", []))))

    def _parts(self, number: int, above: Float[np.ndarray, "4 4"], depth: int) -> Iterator[Part]:
        """The parts of a node and of those below it."""
        if depth == 0:
            raise ValueError("nodes are nested too deeply, or in a circle")
        node = self._data["nodes"][number]
        place = above @ _transformation(node)
        if "mesh" in node:
            mesh = self._data["meshes"][node["mesh"]]
            for primitive in mesh["primitives"]:
                if primitive.get("mode", TRIANGLES) == TRIANGLES:
                    yield self._part(primitive, place, node.get("name") or mesh.get("name"))
        for child in node.get("children", []):
            yield from self._parts(child, place, depth - 1)

    def _part(self, primitive: dict, place: Float[np.ndarray, "4 4"], name: str | None) -> Part:
        positions = self._numbers(primitive["attributes"]["POSITION"])
        corners = self._numbers(primitive["indices"]).ravel() if "indices" in primitive else np.arange(len(positions))
        corners = corners.astype(np.int64)[: len(corners) // 3 * 3].reshape(-1, 3)
        world = (positions @ place[:3, :3].T + place[:3, 3]) @ Z_UP.T
        if not np.isfinite(world).all():
            raise ValueError("positions must be finite")
        texcoords = np.zeros((len(positions), 2), np.float32)
        if "TEXCOORD_0" in primitive["attributes"]:
            texcoords = self._numbers(primitive["attributes"]["TEXCOORD_0"])
        material = self._data["materials"][primitive["material"]] if "material" in primitive else {}
        look = material.get("pbrMetallicRoughness", {})
        red, green, blue = (float(x) for x in look.get("baseColorFactor", (0.8, 0.8, 0.8, 1.0))[:3])
        image = None
        if "baseColorTexture" in look:
            image = int(self._data["textures"][look["baseColorTexture"]["index"]]["source"])
        label = str(name or material.get("name") or "mesh")
        return Part(
            label, world[corners].astype(np.float32), texcoords[corners].astype(np.float32), (red, green, blue), image
        )

    def _numbers(self, number: int) -> np.ndarray:
        """The rows of an accessor; normalised integers as floats."""
        accessor = self._data["accessors"][number]
        if "sparse" in accessor or "bufferView" not in accessor:
            raise SceneError(self._path, f"has the sparse accessor {number}, which is not read")
        kind, width, count = np.dtype(NUMBERS[accessor["componentType"]]), SIZES[accessor["type"]], accessor["count"]
        view = self._data["bufferViews"][accessor["bufferView"]]
        content, step = self._view(accessor["bufferView"]), view.get("byteStride", kind.itemsize * width)
        start = accessor.get("byteOffset", 0)
        if count < 1 or start + (count - 1) * step + kind.itemsize * width > len(content):
            raise ValueError(f"accessor {number} ends behind its buffer: the file may be truncated")
        rows = np.ndarray((count, width), kind, content, start, (step, kind.itemsize))
        if accessor.get("normalized"):
            return rows.astype(np.float32) / np.iinfo(kind).max
        return rows

    def _view(self, number: int) -> bytes:
        view = self._data["bufferViews"][number]
        start = view.get("byteOffset", 0)
        content = self._buffer(view["buffer"])[start : start + view["byteLength"]]
        if len(content) < view["byteLength"]:
            raise ValueError(f"view {number} ends behind its buffer: the file may be truncated")
        return content

    def _buffer(self, number: int) -> bytes:
        if number not in self._buffers:
            uri = self._data["buffers"][number].get("uri")
            self._buffers[number] = self._binary if uri is None else self._resource(uri)
        return self._buffers[number]

    def _image(self, number: int) -> bytes:
        image = self._data["images"][number]
        return self._resource(image["uri"]) if "uri" in image else self._view(image["bufferView"])

    def _resource(self, uri: str) -> bytes:
        """The content of a data URI, or of a file below the folder."""
        if not uri.startswith("data:"):
            return read_bytes(beside(self._path, uri))
        try:
            return base64.b64decode(uri.partition(",")[2], validate=True)
        except binascii.Error as error:
            raise ValueError(f"a data URI is damaged ({error})") from error


def _transformation(node: dict) -> Float[np.ndarray, "4 4"]:
    """The matrix of a node."""
    if "matrix" in node:
        return np.array(node["matrix"], float).reshape(4, 4).T
    matrix = np.eye(4)
    x, y, z, w = (float(a) for a in node.get("rotation", (0, 0, 0, 1)))
    rotation = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )
    matrix[:3, :3] = rotation * np.array(node.get("scale", (1, 1, 1)), float)
    matrix[:3, 3] = node.get("translation", (0, 0, 0))
    return matrix
