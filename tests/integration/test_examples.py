"""The numbered examples and the notebook run as they are, on small settings."""

import json
import sys

import pytest
from example_cases import EXAMPLES, NOTEBOOK, RECIPES, check_notebook, notebook_script, run


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_runs_and_writes_its_files(name, tmp_path):
    options, start, files = RECIPES[name]
    shown = run(sys.executable, EXAMPLES / name, *options, cwd=tmp_path)
    assert shown.startswith(start)
    assert all((tmp_path / file).stat().st_size > 1000 for file in files)


def test_a_policy_of_the_zoo_runs_in_ten_lines():
    code = (EXAMPLES / "03_run_a_policy.py").read_text().split('"""')[2]
    assert len([line for line in code.splitlines() if line]) <= 12


def test_a_teacher_is_distilled_in_an_own_environment(tmp_path):
    shown = run(sys.executable, EXAMPLES / "08_distil.py", "--out", tmp_path / "dot", cwd=tmp_path)
    assert float(shown.partition("steps: ")[2].partition(",")[0]) > 2  # of about 3; a random policy has 0


@pytest.mark.slow
def test_the_notebook_runs_from_the_first_cell_to_the_last(tmp_path):
    (tmp_path / "tutorial.py").write_text(notebook_script(), encoding="utf-8")
    check_notebook(run(sys.executable, "-W", "error", "tutorial.py", cwd=tmp_path), tmp_path)


def test_the_notebook_has_no_stored_outputs():
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    assert not any(cell.get("outputs") for cell in cells)


@pytest.mark.slow
def test_an_agent_of_stable_baselines3_is_trained_with_attention_and_drawn(tmp_path):
    shown = run(sys.executable, EXAMPLES / "07_stable_baselines3.py", "--steps", 256, "--out", tmp_path, cwd=tmp_path)
    assert "mean return" in shown
    assert (tmp_path / "sb3-attention.png").stat().st_size > 1000
