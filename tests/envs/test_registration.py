"""Environment ids of other packages, and ids that come from files."""

import os
import subprocess
import sys

import gymnasium
import pytest

from iap.envs.registration import find_env, register_entry_points, require_harmless

PACKAGE = """
import gymnasium
from iap.envs.seek import Seek

class Drone(Seek):
    pass

def make_glider(size=16, render_mode=None):
    return Seek(size=size, render_mode=render_mode)
"""
POINTS = """[iap.envs]
acme/Drone-v0 = acme_envs:Drone
acme/Glider-v0 = acme_envs:make_glider
iap/Seek-v0 = acme_envs:Drone
"""
CODE = """
import sys
from iap.envs.core import make_env
make_env("iap/Seek-v0")
assert "acme_envs" not in sys.modules
drone, glider = make_env("acme/Drone-v0", size=24), make_env("acme/Glider-v0")
print(type(drone.unwrapped).__name__, drone.reset(seed=0)[0]["image"].shape, glider.reset(seed=0)[0]["image"].shape)
print(type(make_env("iap/Seek-v0").unwrapped).__name__)
"""


def test_installed_packages_add_environments_by_entry_points(tmp_path):
    (tmp_path / "acme_envs.py").write_text(PACKAGE)
    facts = tmp_path / "acme_envs-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-envs\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text(POINTS)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", CODE],
        env=os.environ | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout == "Drone (24, 24, 3) (16, 16, 3)\nSeek\n", done.stderr


def test_registering_entry_points_twice_does_nothing():
    before = set(gymnasium.registry)
    register_entry_points()
    register_entry_points()
    assert before <= set(gymnasium.registry)


def test_an_id_is_found_or_refused():
    assert find_env("iap/Seek-v0") == "iap/Seek-v0"
    with pytest.raises(ValueError, match="there is no environment"):
        find_env("iap/Sek-v0")


def test_an_id_from_a_file_does_not_import_modules(tmp_path, monkeypatch):
    assert require_harmless("iap/Seek-v0") == "iap/Seek-v0"
    assert require_harmless("custom:Mine") == "custom:Mine"
    (tmp_path / "unknown_robot.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ValueError, match="'unknown_robot', which is not imported because of a file"):
        require_harmless("unknown_robot:my/Robot-v0")
