"""Generated apartments: the same bytes for the same seed, connected, walkable, and in the format of Gibson."""

import numpy as np
import pytest

from iap.envs.indoor.generator.apartment import LAST_SCENE, TRAINING_SCENES, generate_scene, scene_seed
from iap.envs.indoor.grids import connected_parts
from iap.envs.indoor.robots.walker import RADIUS_M
from iap.envs.indoor.scenes.folder import read_scene
from iap.envs.indoor.scenes.source import generated_folder

FEW, MANY = (0, 1, TRAINING_SCENES), range(100)
LEAST_FLOOR_M2 = 15.0
LEAST_SHARE = 0.9  # of the floor where a robot fits that it can reach from one place


def require_walkable(folder) -> None:
    scene = read_scene(folder, textured=False)
    free = scene.map.clearance >= RADIUS_M
    _, sizes = connected_parts(free)
    assert sizes[1:].max() >= LEAST_SHARE * free.sum()
    assert sizes[1:].max() * scene.map.resolution_m**2 >= LEAST_FLOOR_M2


@pytest.mark.parametrize("seed", FEW)
def test_a_robot_can_reach_the_rooms_of_an_apartment(seed):
    require_walkable(generated_folder(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", MANY)
def test_a_robot_can_reach_the_rooms_of_any_apartment(seed, tmp_path):
    require_walkable(generate_scene(seed, tmp_path))


def test_the_same_seed_gives_the_same_bytes_and_another_seed_others(tmp_path):
    one, same, other = (generate_scene(seed, tmp_path / name) for seed, name in ((5, "a"), (5, "b"), (6, "c")))
    names = sorted(path.name for path in one.iterdir())
    assert names == sorted(path.name for path in same.iterdir())
    assert all((one / name).read_bytes() == (same / name).read_bytes() for name in names)
    assert (one / "mesh_z_up.obj").read_bytes() != (other / "mesh_z_up.obj").read_bytes()
    assert {"mesh_z_up.obj", "mesh_z_up.mtl", "floors.txt", "floor_0.png", "floor_trav_0.png"} <= set(names)


def test_faces_are_divided_until_there_are_enough(tmp_path, apartment):
    plain = read_scene(apartment, textured=False)
    fine = read_scene(generate_scene(0, tmp_path, faces=20_000), textured=False)
    assert plain.faces < 20_000 <= fine.faces < 40_000
    areas = [
        sum(np.linalg.norm(np.cross(*np.diff(m.positions, axis=1).swapaxes(0, 1)), axis=-1).sum() for m in s.meshes)
        for s in (plain, fine)
    ]
    assert areas[1] == pytest.approx(areas[0], rel=1e-3)


def test_all_classes_are_in_an_apartment(apartment):
    assert {mesh.material for mesh in read_scene(apartment, textured=False).meshes} == {
        "floor",
        "wall",
        "ceiling",
        "door",
        "furniture",
    }


def test_training_and_held_out_scenes_have_disjoint_seeds():
    last = TRAINING_SCENES - 1
    assert scene_seed("held-out", last) < scene_seed("train", 0)
    assert scene_seed("train", last) == LAST_SCENE
    with pytest.raises(ValueError, match="number must be"):
        scene_seed("train", TRAINING_SCENES)


def test_wrong_arguments_are_refused(tmp_path):
    with pytest.raises(ValueError, match="seed must be"):
        generate_scene(-1, tmp_path)
    with pytest.raises(ValueError, match="faces must be"):
        generate_scene(0, tmp_path, faces=-1)
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError, match="out must be a folder"):
        generate_scene(0, tmp_path / "file")
