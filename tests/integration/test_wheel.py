"""The wheel contains everything that a new user needs: it is built, installed elsewhere and used there."""

import json
import shutil
import sys
import sysconfig
from pathlib import Path

import pytest
from example_cases import EXAMPLES, RECIPES, check_notebook, notebook_script, run

ROOT = Path(__file__).parents[2]
ISOLATED = {"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"}

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def programs(tmp_path_factory) -> Path:
    """The folder of the programs of an environment that has the wheel.

    A .pth file adds the dependencies of this environment, since installing them takes minutes.
    """
    path = tmp_path_factory.mktemp("wheel")
    source, wheels, venv = path / "source", path / "wheels", path / "venv"
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", wheels, source)
    [wheel] = wheels.glob("iap_rl-*.whl")
    run(sys.executable, "-m", "venv", venv)
    python = venv / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", wheel)
    packages = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])").strip())
    (packages / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")
    return venv / "bin"


def test_the_installed_wheel_evaluates_a_policy_of_the_zoo_without_the_source(programs, tmp_path):
    isolated = {"cwd": tmp_path, "env": ISOLATED}
    location = run(programs / "python", "-c", "import iap; print(iap.__file__)", **isolated)
    assert Path(location.strip()).is_relative_to(programs.parent)
    assert "seek" in run(programs / "iap", "zoo", **isolated)
    words = ["eval", "zoo:seek", "--episodes", 3, "--pool", "inline", "--json", "-"]
    result = json.loads(run(programs / "iap", *words, **isolated))
    assert (result["episodes"], result["failed"]) == (3, 0)
    assert result["mean"] > 2.5


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_runs_from_the_wheel(name, programs, tmp_path):
    for path in (EXAMPLES / name, EXAMPLES / "small_envs.py"):
        shutil.copy(path, tmp_path)
    options, start, files = RECIPES[name]
    assert run(programs / "python", name, *options, cwd=tmp_path, env=ISOLATED).startswith(start)
    assert all((tmp_path / file).stat().st_size > 1000 for file in files)


def test_the_notebook_runs_from_the_wheel(programs, tmp_path):
    (tmp_path / "tutorial.py").write_text(notebook_script(), encoding="utf-8")
    check_notebook(run(programs / "python", "-W", "error", "tutorial.py", cwd=tmp_path, env=ISOLATED), tmp_path)
