"""Conversion of glTF rooms: geometry, textures, floors and maps; damaged files; captured rooms of a third party."""

import io
import json
import math
from pathlib import Path

import numpy as np
import pytest
from glb import box, write_captured_room, write_glb
from PIL import Image

import iap
from iap.envs.indoor.conversion.convert import convert_scene
from iap.envs.indoor.conversion.gltf import read_gltf
from iap.envs.indoor.scenes.cache import cache_folder
from iap.envs.indoor.scenes.errors import SceneError
from iap.envs.indoor.scenes.folder import read_scene
from iap.envs.indoor.scenes.obj import read_obj

ROOM = box("Wall Face", (0, 0, 0), (4, 2.5, 3), has_top=False)
CRATE = box("Table", (1, 0, 1), (1.5, 0.6, 2), has_top=True)
THIRD_PARTY = cache_folder("third-party")
CAPTURES = sorted(THIRD_PARTY.glob("iwer-sem-*/*.json"))
FURNITURE = sorted(THIRD_PARTY.glob("sweethome3d-furniture/**/*.obj"))
HOW = "run tools/fetch_rooms.py, which needs npm and apt-get"


def png(shade: int) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(np.full((4, 4, 3), shade, np.uint8)).save(stream, "PNG")
    return stream.getvalue()


@pytest.mark.parametrize("name", ["room.glb", "room.gltf"])
def test_a_room_becomes_a_scene_whose_map_has_the_floor_without_the_crate(tmp_path, name):
    folder = convert_scene(write_glb(tmp_path / name, [ROOM, CRATE]), tmp_path / "out")
    scene = read_scene(folder)
    assert [mesh.material for mesh in scene.meshes] == ["wall_face.0", "table.1"]
    assert scene.floor_z_m == pytest.approx(0, abs=1e-4)
    assert scene.map.free.sum() * scene.map.resolution_m**2 == pytest.approx(4 * 3 - 0.5, rel=0.05)
    crate = 1.25 - 2, -(1.5 - 1.5)  # x and z of glTF, centred; z becomes −y
    assert not scene.map.free[scene.map.cell(*crate)]
    assert scene.map.free[scene.map.cell(1.0, 1.0)]


def test_an_environment_runs_in_a_converted_room(tmp_path):
    folder = convert_scene(write_glb(tmp_path / "room.glb", [ROOM, CRATE]), tmp_path / "out")
    env = iap.make_env("iap/PointNav-v0", scene=str(folder), size=(24, 24), distance_m=(1.0, 3.0))
    observation, _ = env.reset(seed=0)
    assert observation["image"].std() > 1
    env.close()


def test_y_up_becomes_z_up_and_transformations_of_nodes_are_applied(tmp_path):
    turn = {
        "rotation": [0, math.sin(math.pi / 4), 0, math.cos(math.pi / 4)],
        "translation": [1, 2, 3],
        "scale": [2] * 3,
    }
    matrix = np.eye(4)
    matrix[:3, :3] = 2 * np.array([[0, 0, 1], [0, 1, 0], [-1, 0, 0]])
    matrix[:3, 3] = 1, 2, 3
    triangle = {"name": "t", "positions": [[1, 0, 0], [0, 1, 0], [0, 0, 1]], "indices": [0, 1, 2]}
    right = (np.array(triangle["positions"]) @ matrix[:3, :3].T + matrix[:3, 3]) @ [[1, 0, 0], [0, 0, 1], [0, -1, 0]]
    for number, place in enumerate((turn, {"matrix": matrix.T.ravel().tolist()})):
        [part], _ = read_gltf(write_glb(tmp_path / f"{number}.glb", [triangle | place]))
        np.testing.assert_allclose(part.positions[0], right, atol=1e-6)


def test_a_child_has_the_transformation_of_its_parent_too(tmp_path):
    triangle = {"name": "t", "positions": np.eye(3), "indices": [0, 1, 2], "translation": [0, 0, 1]}
    nodes = [{"children": [1], "scale": [2, 2, 2]}, {"mesh": 0, "name": "t", "translation": [0, 0, 1]}]
    path = write_glb(tmp_path / "a.glb", [triangle], nodes=nodes, scenes=[{"nodes": [0]}])
    [part], _ = read_gltf(path)
    np.testing.assert_allclose(part.positions[0, 0], [2, -2, 0])


def test_textures_are_written_with_their_coordinates(tmp_path):
    corners = [[0, 0, 0], [4, 0, 0], [0, 0, 3], [4, 0, 3]]
    mesh = {"name": "floor", "positions": corners, "indices": [0, 2, 1, 1, 2, 3]}
    mesh["texcoords"] = [[0, 0], [1, 0], [0, 1], [1, 1]]
    folder = convert_scene(write_glb(tmp_path / "a.glb", [mesh], image=png(77)), tmp_path / "out")
    scene = read_scene(folder)
    [part] = scene.meshes
    assert (scene.textures[part.material] == 77).all()
    low_x = part.positions[..., 0] < 0
    assert (part.texcoords[..., 0] == np.where(low_x, 0, 1)).all()
    front = part.positions[..., 1] < 0  # z of glTF is −y, and t = 0 is the upper row there, the lower row in OBJ
    assert (part.texcoords[..., 1] == np.where(front, 0, 1)).all()


def test_the_heights_of_floors_can_be_given(tmp_path):
    path = write_glb(tmp_path / "a.glb", [ROOM, CRATE])
    folder = convert_scene(path, tmp_path / "out", floors_m=(0.0, 2.5), centred=False)
    assert (folder / "floors.txt").read_text() == "0.0000\n2.5000\n"
    assert (folder / "floor_trav_1.png").exists()
    assert read_scene(folder).meshes[0].positions[..., 0].min() == 0


def test_a_missing_or_truncated_file_is_one_error_that_names_it(tmp_path):
    path = write_glb(tmp_path / "room.glb", [ROOM], image=png(9))
    content = path.read_bytes()
    with pytest.raises(SceneError, match="does not exist"):
        convert_scene(tmp_path / "other.glb", tmp_path / "out")
    for length in (0, 3, 10, 19, 60, len(content) // 2, len(content) - 1):
        path.write_bytes(content[:length])
        with pytest.raises(SceneError) as caught:
            convert_scene(path, tmp_path / "out")
        assert str(path) in str(caught.value)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"asset": {"version": "1.0"}}, r"is glTF 1\.0"),
        ({"extensionsRequired": ["KHR_draco_mesh_compression"]}, "requires the extensions KHR_draco"),
        ({"meshes": []}, "is no whole glTF file"),
        ({"nodes": [{"children": [0]}]}, "nested too deeply, or in a circle"),
        ({"nodes": []}, "is no whole glTF file"),
        ({"scenes": [{"nodes": []}]}, "has no triangles"),
        ({"accessors": [{"bufferView": 0, "componentType": 5126, "count": 10**9, "type": "VEC3"}]}, "ends behind"),
        ({"bufferViews": [{"buffer": 0, "byteLength": 10**9}] * 2}, "ends behind its buffer"),
        ({"buffers": [{"byteLength": 9, "uri": "../../secret.bin"}]}, "outside its folder"),
        ({"buffers": [{"byteLength": 9, "uri": "data:;base64,***"}]}, "a data URI is damaged"),
    ],
)
def test_a_file_with_damaged_or_unknown_content_is_refused(tmp_path, changes, problem):
    path = write_glb(tmp_path / "room.glb", [ROOM], **changes)
    with pytest.raises(SceneError, match=problem):
        convert_scene(path, tmp_path / "out")


def test_other_files_and_meshes_without_a_floor_are_refused(tmp_path):
    with pytest.raises(ValueError, match=r"must be a \.glb or \.gltf file"):
        convert_scene(tmp_path / "room.fbx", tmp_path / "out")
    (tmp_path / "a.gltf").write_text(json.dumps([1]))
    with pytest.raises(SceneError, match="is no whole glTF file"):
        convert_scene(tmp_path / "a.gltf", tmp_path / "out")
    wall = {"name": "wall", "positions": [[0, 0, 0], [1, 0, 0], [0, 1, 0]], "indices": [0, 1, 2]}
    with pytest.raises(SceneError, match="no horizontal face"):
        convert_scene(write_glb(tmp_path / "b.glb", [wall]), tmp_path / "out")
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        convert_scene(tmp_path / "a.gltf", tmp_path / "file")


@pytest.mark.skipif(not CAPTURES, reason=f"the rooms of @iwer/sem are not in the cache: {HOW}")
@pytest.mark.parametrize("capture", CAPTURES, ids=lambda path: path.stem)
def test_a_captured_room_loads_renders_and_has_a_floor_to_move_on(tmp_path, capture: Path):
    folder = convert_scene(write_captured_room(tmp_path / "room.glb", capture), tmp_path / "out")
    scene = read_scene(folder)
    assert 3_000 < scene.faces < 100_000
    assert scene.map.walkable(0.18).sum() * scene.map.resolution_m**2 > 1
    env = iap.make_env("iap/PointNav-v0", scene=str(folder), size=(32, 32), distance_m=(0.5, 3.0), image="depth")
    observation, _ = env.reset(seed=0)
    assert 0 < np.median(observation["image"]) < 10
    info = {}
    for _ in range(60):
        _, _, ended, _, info = env.step(env.unwrapped.label().action)  # pyright: ignore[reportAttributeAccessIssue]
        if ended:
            break
    assert info["success"]
    env.close()


@pytest.mark.skipif(not FURNITURE, reason=f"sweethome3d-furniture is not in the cache: {HOW}")
def test_textured_meshes_with_several_materials_of_a_third_party_are_read():
    read = {path: read_obj(path) for path in FURNITURE[:40]}
    assert all(mesh.faces > 0 for meshes, _ in read.values() for mesh in meshes)
    assert sum(len(meshes) > 1 for meshes, _ in read.values()) > 10
    textures = [material.texture for _, materials in read.values() for material in materials.values()]
    assert any(texture is not None and texture.exists() for texture in textures)
