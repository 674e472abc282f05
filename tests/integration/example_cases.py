"""The examples and the notebook on small settings, for tests that run them from the source and from a wheel."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any

EXAMPLES = Path(__file__).parents[2] / "examples"
NOTEBOOK = EXAMPLES / "tutorial.ipynb"
SMALL = {"ITERATIONS": "1", "EPISODES": "2", "WORKERS": "1"}  # values of the notebook's first cell
IMAGE = EXAMPLES.parent / "docs" / "images" / "seek.png"
RECIPES = {  # example → its options, the start of what it prints, and the files that it writes
    "03_run_a_policy.py": ([], "return ", []),
    "04_train_in_your_environment.py": (["--iterations", "1", "--out", "."], "Dot: return", ["dot.mp4"]),
    "05_attend_to_images.py": (["--images", str(IMAGE), "--out", "out"], "{", ["out/seek.png"]),
}


def run(*words: object, **options: Any) -> str:
    """The output of a command that succeeds."""
    done = subprocess.run([*map(str, words)], capture_output=True, text=True, check=False, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def notebook_script() -> str:
    """The code of the notebook as a script, with the small settings.

    As in a notebook, the classes of the cells are in `__main__`, and worker processes have to be able to make them.
    """
    cells = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    code = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "code"]
    for name, value in SMALL.items():
        code[0], count = re.subn(rf"^{name} = \d+", f"{name} = {value}", code[0], flags=re.MULTILINE)
        assert count == 1
    return "\n\n".join(code)


def check_notebook(shown: str, folder: Path) -> None:
    """What the notebook printed and wrote."""
    assert "parameters" in shown
    assert "random attention" in shown
    assert (folder / "dot.mp4").stat().st_size > 1000
