"""The numbered examples and the notebook run as they are, on small settings."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SMALL = {"ITERATIONS": "1", "EPISODES": "2", "WORKERS": "1"}  # values of the notebook's first cell


def run(*words: object, cwd: Path) -> str:
    done = subprocess.run(
        [sys.executable, *map(str, words)], cwd=cwd, env=os.environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def code_of(notebook: Path) -> list[str]:
    """The code cells of a notebook."""
    cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
    return ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]


def test_a_policy_of_the_zoo_runs_in_ten_lines(tmp_path):
    shown = run(EXAMPLES / "03_run_a_policy.py", cwd=tmp_path)
    assert float(shown.split()[1]) > 2
    code = (EXAMPLES / "03_run_a_policy.py").read_text().split('"""')[2]
    assert len([line for line in code.splitlines() if line]) <= 12


def test_a_policy_is_trained_evaluated_and_filmed_in_an_own_environment(tmp_path):
    shown = run(EXAMPLES / "04_train_in_your_environment.py", "--iterations", 1, "--out", tmp_path, cwd=tmp_path)
    assert shown.startswith("Dot: return")
    assert (tmp_path / "dot.mp4").stat().st_size > 1000


@pytest.mark.slow
def test_a_policy_attends_to_a_folder_of_images(tmp_path):
    images = EXAMPLES.parent / "docs" / "images" / "seek.png"
    shown = run(EXAMPLES / "05_attend_to_images.py", "--images", images, "--out", tmp_path / "out", cwd=tmp_path)
    assert "best_x" in shown
    assert (tmp_path / "out" / "seek.png").exists()


@pytest.mark.slow
def test_a_teacher_is_distilled_in_an_own_environment(tmp_path):
    shown = run(EXAMPLES / "08_distil.py", "--out", tmp_path / "dot", cwd=tmp_path)
    assert float(shown.partition("steps: ")[2].partition(",")[0]) > 2  # of about 3; a random policy has 0


@pytest.mark.slow
def test_the_notebook_runs_from_the_first_cell_to_the_last(tmp_path):
    """As a script: the classes of its cells are in __main__ too, and worker processes have to be able to make them."""
    cells = code_of(EXAMPLES / "tutorial.ipynb")
    for name, value in SMALL.items():
        cells[0], count = re.subn(rf"^{name} = \d+", f"{name} = {value}", cells[0], flags=re.MULTILINE)
        assert count == 1
    (tmp_path / "tutorial.py").write_text("\n\n".join(cells), encoding="utf-8")
    shown = run("-W", "error", "tutorial.py", cwd=tmp_path)
    assert "parameters" in shown
    assert "random attention" in shown
    assert (tmp_path / "dot.mp4").stat().st_size > 1000


def test_the_notebook_has_no_stored_outputs():
    cells = json.loads((EXAMPLES / "tutorial.ipynb").read_text(encoding="utf-8"))["cells"]
    assert not any(cell.get("outputs") for cell in cells)


@pytest.mark.slow
def test_an_agent_of_stable_baselines3_is_trained_with_attention_and_drawn(tmp_path):
    shown = run(EXAMPLES / "07_stable_baselines3.py", "--steps", 256, "--out", tmp_path, cwd=tmp_path)
    assert "mean return" in shown
    assert (tmp_path / "sb3-attention.png").stat().st_size > 1000
