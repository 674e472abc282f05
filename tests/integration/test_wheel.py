"""The wheel contains everything that a policy of the zoo needs: it is built, installed elsewhere and used there."""

import json
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
from training_cases import TINY

ROOT = Path(__file__).parents[2]
MOST_PACKAGES = 12  # of the core, besides Python
MOST_BYTES = 400e6


def run(*words: object, **options) -> str:
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    """The wheel of this source."""
    source = tmp_path_factory.mktemp("source")
    shutil.copytree(ROOT / "src", source / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", source / "wheels", source)
    [built] = (source / "wheels").glob("iap_rl-*.whl")
    return built


def empty_environment(path: Path) -> tuple[Path, Path]:
    """The Python of a new virtual environment, and the folder of its packages."""
    run(sys.executable, "-m", "venv", path)
    python = path / "bin" / "python"
    return python, Path(run(python, "-c", "import sysconfig; print(sysconfig.get_paths()['purelib'])").strip())


@pytest.mark.slow
def test_all_extras_of_the_wheel_evaluate_and_train_without_the_source(wheel, tmp_path):
    """A .pth file adds the dependencies of this environment, since installing them takes minutes."""
    venv = tmp_path / "venv"
    python, packages = empty_environment(venv)
    run(python, "-m", "pip", "install", "--quiet", "--no-deps", wheel)
    (packages / "dependencies.pth").write_text(sysconfig.get_paths()["purelib"] + "\n")

    isolated = {"cwd": tmp_path, "env": {"PATH": "/usr/bin:/bin", "OMP_NUM_THREADS": "1"}}
    location = run(python, "-c", "import iap; print(iap.__file__)", **isolated)
    assert Path(location.strip()).is_relative_to(venv)
    assert "seek" in run(venv / "bin" / "iap", "zoo", **isolated)
    words = ["eval", "zoo:seek", "--episodes", 3, "--pool", "inline", "--json", "-"]
    result = json.loads(run(venv / "bin" / "iap", *words, **isolated))
    assert (result["episodes"], result["failed"]) == (3, 0)
    assert result["mean"] > 2.5
    run(venv / "bin" / "iap", "train", "seek", *map(str, TINY), "--out", tmp_path / "run", "--workers", 2, **isolated)
    assert (tmp_path / "run" / "best.policy").exists()


ACT = """
import numpy as np
import iap
policy = iap.load_policy("zoo:obstacle-course")
rng, state = np.random.default_rng(0), policy.reset()
for _ in range(2):
    image = rng.integers(0, 256, policy.config.image_shape, dtype=np.uint8)
    observation = {"image": image, "sensors": np.zeros(policy.config.sensors, np.float32)}
    action, state, attention = policy.act(state, observation)
print(len(action), np.isfinite(action).all(), len(iap.attend(image, top_k=5).selected))
"""


@pytest.mark.slow
def test_the_core_of_the_wheel_is_small_and_acts_with_a_policy_of_the_zoo(wheel, tmp_path):
    python, packages = empty_environment(tmp_path / "venv")
    before = installed(python)
    command = [python, "-m", "pip", "install", "--quiet", "--constraint", ROOT / "constraints.txt", wheel]
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, check=False)
    if done.returncode != 0 and "No matching distribution" in done.stderr:
        pytest.skip("no package index can be reached")
    assert done.returncode == 0, done.stderr
    new = installed(python) - before
    assert "iap-rl" in new
    assert len(new) <= MOST_PACKAGES, new
    size = sum(path.stat().st_size for path in packages.rglob("*") if path.is_file() and not path.is_symlink())
    assert size <= MOST_BYTES
    environment = {"PATH": "/usr/bin:/bin", "IAP_CACHE_DIR": str(tmp_path / "cache")}
    assert run(python, "-c", ACT, cwd=tmp_path, env=environment) == "5 True 5\n"


def installed(python: Path) -> set[str]:
    """The names of the installed packages."""
    return {package["name"] for package in json.loads(run(python, "-m", "pip", "list", "--format", "json"))}
