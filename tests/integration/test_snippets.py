"""Every Python snippet of README.md and docs runs, as does every example of the public functions, on small settings."""

import doctest
import re
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import gymnasium
import pytest
from training_cases import iap_here

import iap

ROOT = Path(__file__).parents[2]
SNIPPET = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMAND = re.compile(r"(?:^|`)(iap (?:train|export) [^`#\n]+)", re.MULTILINE)
PAGES = [page for page in (ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))) if SNIPPET.search(page.read_text())]
SLOW = {"distillation.md", "getting-started.md", "sb3.md"}
TINY = "iterations=1, episodes=1, max_steps=8, evaluate_episodes=1"
TINY_DAGGER = "DAgger(steps=(60,), teacher_share=(1.0,), updates=(5,), batch=8)"
TINY_WORDS = ["--iterations", "1", "--episodes", "1", "--strategy.population", "4", "--random-search", "0"]
TINY_WORDS += ["--pool", "inline"]
SMALLER = {  # page → what is replaced in its snippets
    "README.md": {
        'workers=2, out="runs/seek"': f'workers=0, out="runs/seek", {TINY}',
        "episodes=100": "episodes=2, workers=0",
        '"course.mp4"': '"course.mp4", max_steps=3',
    },
    "getting-started.md": {"episodes=100": "episodes=2"},
    "python-api.md": {"iterations=20": TINY, "workers=2": "workers=0", "episodes=100": "episodes=2, workers=0"},
    "distillation.md": {
        'out="runs/stones")': f'out="runs/stones", workers=0, evaluate_episodes=1, pretraining={TINY_DAGGER})',
        "env.expert())": f"env.expert(), workers=0, evaluate_episodes=1, pretraining={TINY_DAGGER})",
    },
    "indoor.md": {'scene="gibson/Adrian", episodes="gibson/pointnav_val.json.gz"': "scenes=1"},  # data that is not ours
    "sb3.md": {
        "policy_kwargs=dict(\n": "n_steps=8,\n    batch_size=8,\n    n_epochs=1,\n    policy_kwargs=dict(\n",
        "100_000": "8",
        "every=5_000": "every=4",
        "n_eval_episodes=10": "n_eval_episodes=1",
    },
}
GIVEN = {  # page → names that its snippets take from the reader
    "distillation.md": """
from iap.distillation import DAgger
from small_envs import Dot
import numpy as np

class MyEnv(Dot):
    def expert(self):
        return np.clip(10 * (self.target - self.dot), -1, 1)
"""
}
COMMANDS = {"getting-started.md": "catch:Catch-v0", "deployment.md": "--format onnx"}  # those that write what is read


def run_commands(page: Path) -> None:
    """Run the commands of a page whose files its snippets read."""
    found = [shlex.split(command) for command in COMMAND.findall(page.read_text()) if COMMANDS[page.name] in command]
    assert found
    for _, *words in found:
        iap_here(*words, *(TINY_WORDS if words[0] == "train" else []))  # the last value of an option counts


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Iterator[Path]:
    """The current folder of the snippets."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.syspath_prepend(ROOT / "examples")
    yield tmp_path
    sys.modules.pop("catch", None)
    gymnasium.registry.pop("Catch-v0", None)


def marks_of(page: Path) -> list[pytest.MarkDecorator]:
    """Box2D's import crashes if its deprecated types are errors."""
    swig = pytest.mark.filterwarnings("ignore::DeprecationWarning")
    return [*([pytest.mark.slow] if page.name in SLOW else []), *([swig] if "CarRacing" in page.read_text() else [])]


@pytest.mark.parametrize("page", [pytest.param(page, id=page.name, marks=marks_of(page)) for page in PAGES])
def test_the_snippets_of_a_page_run_one_after_the_other(page, folder):
    code = SNIPPET.findall(page.read_text())
    whole = "\n".join(code)
    for old in SMALLER.get(page.name, {}):
        assert old in whole, old
    namespace: dict = {"__name__": "snippets"}
    exec(GIVEN.get(page.name, ""), namespace)
    for snippet in code:
        if match := re.match(r"# (\w+)\.py\n", snippet):  # a file that the page asks the reader to write
            (folder / f"{match[1]}.py").write_text(snippet)
            continue
        if snippet.startswith("import catch") or "OnnxPolicy(" in snippet:
            run_commands(page)
        for old, new in SMALLER.get(page.name, {}).items():
            snippet = snippet.replace(old, new)  # noqa: PLW2901
        exec(compile(snippet, page.name, "exec"), namespace)


@pytest.mark.parametrize("name", [name for name in iap.__all__ if (getattr(iap, name).__doc__ or "").count(">>>")])
def test_the_example_of_a_public_function_gives_what_it_says(name, folder):
    finder, runner = doctest.DocTestFinder(recurse=False), doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    for case in finder.find(getattr(iap, name), name, globs={}):
        runner.run(case)
    assert runner.summarize(verbose=False).attempted > 0
    assert runner.summarize(verbose=False).failed == 0
