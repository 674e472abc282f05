"""Episodes in the formats of Gibson and Habitat."""

import gzip
import json
import math

import pytest

import iap
from iap.envs.indoor.episodes import find_scene, load_episodes
from iap.envs.indoor.scenes.errors import SceneError

CSV = "sceneId,startX,startY,startZ,startAngle,goalX,goalY,goalZ\nroom,-1.5,1.0,0.0,1.57,1.5,0.5,0.0\n"
HABITAT = {
    "episodes": [
        {
            "episode_id": "0",
            "scene_id": "data/scene_datasets/gibson/room.glb",
            "start_position": [-1.5, 0.25, -1.0],
            "start_rotation": [0.0, 0.0, 0.0, 1.0],
            "goals": [{"position": [1.5, 0.25, -0.5], "radius": None}],
        }
    ]
}


def turned(yaw_rad):
    """Habitat's episode, its agent turned about the vertical axis from facing −z, which is y here."""
    entry = HABITAT["episodes"][0] | {"start_rotation": [0.0, math.sin(yaw_rad / 2), 0.0, math.cos(yaw_rad / 2)]}
    return {"episodes": [entry]}


def test_a_csv_file_of_gibson_is_read(tmp_path):
    (tmp_path / "split.csv").write_text(CSV)
    [episode] = load_episodes(tmp_path / "split.csv")
    assert (episode.scene, episode.start, episode.goal) == ("room", (-1.5, 1.0), (1.5, 0.5))
    assert episode.yaw_rad == 1.57


@pytest.mark.parametrize("name", ["split.json", "split.json.gz"])
def test_a_json_file_of_habitat_is_read_with_its_axes(tmp_path, name):
    content = json.dumps(HABITAT).encode()
    (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    [episode] = load_episodes(tmp_path / name)
    assert (episode.scene, episode.start, episode.goal) == ("room", (-1.5, 1.0), (1.5, 0.5))
    assert episode.height_m == 0.25
    assert episode.yaw_rad == pytest.approx(math.pi / 2)


@pytest.mark.parametrize("yaw", [-2.0, 0.3, 1.0])
def test_a_rotation_of_habitat_about_its_vertical_axis_turns_the_heading_as_much(tmp_path, yaw):
    (tmp_path / "split.json").write_text(json.dumps(turned(yaw)))
    [episode] = load_episodes(tmp_path / "split.json")
    turn = episode.yaw_rad - math.pi / 2 - yaw
    assert math.cos(turn) == pytest.approx(1)


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.csv", b"sceneId,startX\nroom,1\n", "is no file of episodes"),
        ("a.csv", CSV.replace("-1.5", "nan").encode(), "not a finite number"),
        ("a.csv", CSV.split("\n", maxsplit=1)[0].encode(), "has no episodes"),
        ("a.csv", b"\xff\xfe", "is no file of episodes"),
        ("a.json", b"{", "is no file of episodes"),
        ("a.json", b"[]", "is no file of episodes"),
        ("a.json", json.dumps({"episodes": [{}]}).encode(), "is no file of episodes"),
        ("a.json.gz", b"not compressed", "is no file of episodes"),
        ("a.json.gz", gzip.compress(json.dumps(HABITAT).encode())[:-9], "is no file of episodes"),
        ("a.json", b"", "is empty"),
    ],
)
def test_a_damaged_file_is_one_error_that_names_it(tmp_path, name, content, problem):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(SceneError, match=problem) as caught:
        load_episodes(tmp_path / name)
    assert str(tmp_path / name) in str(caught.value)


def test_a_missing_file_and_another_kind_of_file_are_refused(tmp_path):
    with pytest.raises(SceneError, match="does not exist"):
        load_episodes(tmp_path / "a.csv")
    with pytest.raises(ValueError, match=r"must be a \.csv, \.json or \.json\.gz file"):
        load_episodes(tmp_path / "a.txt")


def test_scenes_are_found_by_name(small_scene):
    assert find_scene(small_scene.folder.parent, "room") == small_scene.folder
    assert find_scene(small_scene.folder, "room") == small_scene.folder
    with pytest.raises(SceneError, match="an episode names it"):
        find_scene(small_scene.folder, "hall")


def test_an_environment_runs_the_episodes_of_a_file(tmp_path, small_scene):
    (tmp_path / "split.csv").write_text(CSV)
    env = iap.make_env("iap/PointNav-v0", episodes=str(tmp_path / "split.csv"), size=(16, 16), **small_scene.options)
    _, info = env.reset(seed=0, options={"episode": 0})
    assert info["scene"] == "room"
    assert tuple(info["start"]) == (-1.5, 1.0, 1.57)
    assert info["goal"] == (1.5, 0.5)
    env.close()


def test_episodes_need_the_folder_of_their_scenes(tmp_path):
    (tmp_path / "split.csv").write_text(CSV)
    with pytest.raises(ValueError, match="episodes needs scene"):
        iap.make_env("iap/PointNav-v0", episodes=str(tmp_path / "split.csv"))
