"""`iap scene`: generated and converted scenes."""

import pytest

from iap.cli import execute, parse
from iap.envs.indoor.scenes.folder import read_scene

TRIANGLE = (
    '{"asset":{"version":"2.0"},"nodes":[{"mesh":0}],"meshes":[{"primitives":[{"attributes":{"POSITION":0}}]}],'
    '"accessors":[{"bufferView":0,"componentType":5126,"count":3,"type":"VEC3"}],'
    '"bufferViews":[{"buffer":0,"byteLength":36}],"buffers":[{"byteLength":36,"uri":"data:;base64,'
    'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAIBAAACAQAAAAAAAAAAA"}]}'
)


def test_a_scene_is_generated_and_described(tmp_path, capsys):
    execute(parse(["scene", "generate", "--seed", "3", "--out", str(tmp_path / "apartment")]))
    shown = capsys.readouterr().out
    assert "m² of free floor" in shown
    assert f"scene='{tmp_path / 'apartment'}'" in shown
    assert read_scene(tmp_path / "apartment", textured=False).faces > 1000


def test_a_gltf_file_is_converted(tmp_path, capsys):
    (tmp_path / "plane.gltf").write_text(TRIANGLE)
    execute(parse(["scene", "convert", str(tmp_path / "plane.gltf"), "--out", str(tmp_path / "room")]))
    assert "1 triangles, 1 materials" in capsys.readouterr().out
    assert read_scene(tmp_path / "room").map.free.any()


def test_a_missing_file_is_an_error_that_names_it(tmp_path):
    with pytest.raises(ValueError, match=r"other\.glb does not exist"):
        execute(parse(["scene", "convert", str(tmp_path / "other.glb"), "--out", str(tmp_path / "room")]))
