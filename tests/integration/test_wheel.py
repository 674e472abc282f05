"""The wheel contains everything that a policy of the zoo needs: it is built, installed elsewhere and used there."""

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
def test_the_installed_wheel_evaluates_a_policy_of_the_zoo_without_the_source(tmp_path):
    """A .pth file adds the dependencies of this environment, since installing them takes minutes."""
    source = tmp_path / "source"
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    wheels, venv = tmp_path / "wheels", tmp_path / "venv"
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", wheels, source)
    [wheel] = wheels.glob("iap_rl-*.whl")
    run(sys.executable, "-m", "venv", venv)
    python = venv / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", wheel)
    packages = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])").strip())
    (packages / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")

    isolated = {"cwd": tmp_path, "env": {"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"}}
    location = run(python, "-c", "import iap; print(iap.__file__)", **isolated)
    assert Path(location.strip()).is_relative_to(venv)
    assert "seek" in run(venv / "bin" / "iap", "zoo", **isolated)
    words = ["eval", "zoo:seek", "--episodes", 3, "--pool", "inline", "--json", "-"]
    result = json.loads(run(venv / "bin" / "iap", *words, **isolated))
    assert (result["episodes"], result["failed"]) == (3, 0)
    assert result["mean"] > 2.5
