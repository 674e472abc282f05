"""The wheel holds all that a shipped policy needs: it is built, installed elsewhere, and used there."""

import json
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*words: object, **options) -> str:
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.slow
def test_the_wheel_runs_the_zoo_where_the_source_is_not(tmp_path):
    """Dependencies are those of this environment, by a .pth file: to install them anew would take minutes."""
    source = tmp_path / "source"
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    wheels, place = tmp_path / "wheels", tmp_path / "venv"
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", wheels, source)
    [wheel] = wheels.glob("iap_rl-*.whl")
    run(sys.executable, "-m", "venv", place)
    python = place / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", wheel)
    packages = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])").strip())
    (packages / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")

    alone = {"cwd": tmp_path, "env": {"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"}}
    where = run(python, "-c", "import iap; print(iap.__file__)", **alone)
    assert Path(where.strip()).is_relative_to(place)
    assert "seek" in run(place / "bin" / "iap", "zoo", **alone)
    words = ["eval", "zoo:seek", "--episodes", 3, "--pool", "inline", "--json", "-"]
    result = json.loads(run(place / "bin" / "iap", *words, **alone))
    assert (result["episodes"], result["failed"]) == (3, 0)
    assert result["mean"] > 2.5
