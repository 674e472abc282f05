"""Scene folders: what is read, and the one clear error for each kind of damage."""

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import iap
from iap.envs.indoor.scenes import errors, images, obj
from iap.envs.indoor.scenes.errors import SceneError
from iap.envs.indoor.scenes.folder import SEGMENTS, read_scene, segment_of

PIXEL_M = 0.05


def read(folder: Path, floor: int = 0, *, textured: bool = True):
    return read_scene(folder, floor, PIXEL_M, textured=textured)


def test_a_scene_has_its_meshes_materials_textures_and_map(small_scene):
    scene = read(small_scene.folder)
    assert [(mesh.material, mesh.faces) for mesh in scene.meshes] == [("wall", 12), ("furniture", 12)]
    assert scene.textures["wall"].shape == (64, 64, 3)
    assert scene.materials["furniture"].colour == (0.8, 0.2, 0.1)
    assert scene.floor_z_m == 0
    assert scene.map.resolution_m == PIXEL_M
    for point, is_free in (((0, 0), True), ((-1.9, 1.4), True), ((0.7, 0.3), False), ((0.7, -0.3), True)):
        assert bool(scene.map.free[scene.map.cell(*point)]) is is_free


def test_the_downsampled_mesh_is_preferred(copied_scene):
    text = (copied_scene.folder / "mesh_z_up.obj").read_text()
    (copied_scene.folder / "mesh_z_up_downsampled.obj").write_text("\n".join(text.splitlines()[:-3]) + "\n")
    assert read(copied_scene.folder).faces < 24


def test_textures_can_be_left_out(small_scene):
    assert read(small_scene.folder, textured=False).textures == {}


@pytest.mark.parametrize("name", ["mesh_z_up.obj", "mesh_z_up.mtl", "wall.png", "floors.txt", "floor_trav_0.png"])
@pytest.mark.parametrize("damage", ["missing", "empty", "truncated"])
def test_a_missing_empty_or_truncated_file_is_one_error_that_names_it(copied_scene, name, damage):
    path = copied_scene.folder / name
    content = path.read_bytes()
    path.unlink()
    if damage == "empty":
        path.write_bytes(b"")
    elif damage == "truncated":
        cut = {"mesh_z_up.obj": content.rfind(b"f ") + 5, "mesh_z_up.mtl": 16, "floors.txt": 0}.get(
            name, len(content) // 2
        )
        path.write_bytes(content[:cut])
    with pytest.raises(SceneError) as caught:
        read(copied_scene.folder)
    assert name in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("mesh_z_up.obj", "v 0 0\nf 1 1 1\n", "without 3 finite numbers"),
        ("mesh_z_up.obj", "v 0 0 nan\nf 1 1 1\n", "without 3 finite numbers"),
        ("mesh_z_up.obj", "v 0 0 0\nf 1 2 3\n", "damaged face in line 2"),
        ("mesh_z_up.obj", "v 0 0 0\nf 1 x 1\n", "damaged face in line 2"),
        ("mesh_z_up.obj", "v 0 0 0\nf 1 1\n", "face of 2 corners in line 2"),
        ("mesh_z_up.obj", "v 0 0 0\n", "has no faces"),
        ("mesh_z_up.obj", "mtllib ../../etc/x.mtl\nv 0 0 0\nf 1 1 1\n", "outside its folder"),
        ("mesh_z_up.mtl", "newmtl wall\nKd red\n", "no colour in line 2"),
        ("mesh_z_up.mtl", "newmtl wall\nmap_Kd other.png\n", "other.png does not exist"),
        ("floors.txt", "zero\n", "no height in line 1"),
        ("floors.txt", "inf\n", "not that of a floor"),
        ("floors.txt", "\n", "has no floors"),
    ],
)
def test_a_damaged_text_file_is_one_error_that_says_where(copied_scene, name, content, problem):
    (copied_scene.folder / name).write_text(content)
    with pytest.raises(SceneError, match=problem):
        read(copied_scene.folder)


@pytest.mark.parametrize(("shape", "value", "problem"), [((10, 12), 255, "must be square"), ((10, 10), 254, "no free")])
def test_a_map_that_is_not_square_or_not_free_anywhere_is_refused(copied_scene, shape, value, problem):
    Image.fromarray(np.full(shape, value, np.uint8)).save(copied_scene.folder / "floor_trav_0.png")
    with pytest.raises(SceneError, match=problem):
        read(copied_scene.folder)


def test_too_large_files_images_and_meshes_are_refused_before_they_are_read(copied_scene, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setitem(errors.LARGEST_BYTES, ".obj", 100)
        with pytest.raises(SceneError, match=r"mesh_z_up.obj has [\d,]+ bytes, more than the 100"):
            read(copied_scene.folder)
    with monkeypatch.context() as patch:
        patch.setattr(images, "LARGEST_SIDE", 32)
        with pytest.raises(SceneError, match=r"wall\.png has 64×64 pixels"):
            read(copied_scene.folder)
    with monkeypatch.context() as patch:
        patch.setattr(obj, "MOST_FACES", 10)
        with pytest.raises(SceneError, match="more than the 10 faces"):
            read(copied_scene.folder)


def test_a_folder_that_is_missing_or_holds_no_scene_is_refused(tmp_path):
    with pytest.raises(SceneError, match="is not a folder"):
        read(tmp_path / "none")
    with pytest.raises(FileNotFoundError, match="scene must be a folder"):
        iap.make_env("iap/PointNav-v0", scene=str(tmp_path / "none"))
    with pytest.raises(SceneError, match="does not exist, nor does"):
        iap.make_env("iap/PointNav-v0", scene=str(tmp_path))


def test_a_floor_that_the_scene_does_not_have_is_refused(small_scene):
    with pytest.raises(ValueError, match="floor must be at most 0"):
        read(small_scene.folder, floor=1)


@pytest.mark.parametrize(
    ("material", "segment"),
    [
        ("floor", "floor"), ("wall_face.3", "wall"), ("CEILING", "ceiling"), ("door_frame", "door"),
        ("couch.12", "furniture"), ("matte_17", "unlabelled"),
    ],
)  # fmt: skip
def test_the_class_of_a_material_is_found_by_the_words_of_its_name(material, segment):
    assert segment_of(material) == segment
    assert segment in SEGMENTS
