"""Environments that fail: the reason is on the screen and in the run's folder, and nothing useless is written."""

import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import gymnasium
import pytest
from training_cases import error_of, iap, iap_here, run_here, tiny

from iap.rollouts import InlinePool, local_pool
from iap.training.run_directory import RunDirectory

MODULE = '''
import os

import gymnasium
import numpy as np
from gymnasium import spaces


class Fragile(gymnasium.Env):
    """Fails at the third step of the episodes of some seeds."""

    observation_space = spaces.Box(0, 255, (16, 16, 3), np.uint8)
    action_space = spaces.Box(-1, 1, (2,), np.float32)

    def __init__(self, share=1.0, how="raise"):
        self.share, self.how = share, how

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.steps, self.fails = 0, self.np_random.uniform() < self.share
        return self.np_random.integers(0, 256, (16, 16, 3), dtype=np.uint8), {}

    def step(self, action):
        self.steps += 1
        reward = float(action[0])
        if self.steps == 3 and self.fails:
            reward = self.fail()
        return self.np_random.integers(0, 256, (16, 16, 3), dtype=np.uint8), reward, self.steps == 5, False, {}

    def fail(self):
        if self.how == "exit":
            os._exit(3)
        if self.how == "no number":
            return float("nan")
        raise KeyError("no such joint")


gymnasium.register("Fragile-v0", Fragile)
'''
TINY = ["--encoder", "blind", "--strategy", "open-es", "--strategy.population", 4, "--iterations", 2, "--episodes", 2]
TINY += ["--random-search", 0, "--evaluate-every", 1, "--evaluate-episodes", 2]


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Iterator[Path]:
    """A current folder with the module of the environment."""
    (tmp_path / "fragile.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)  # undone after the test, unlike what the command does
    yield tmp_path
    for name in ("fragile", "early"):
        sys.modules.pop(name, None)
        gymnasium.registry.pop(f"{name.capitalize()}-v0", None)


def train(*words, **options):
    return iap_here("train", "--env", "fragile:Fragile-v0", *TINY, "--out", "run", *words, **options)


@pytest.mark.parametrize("pool", [["--pool", "inline"], ["--workers", "2"]], ids=["inline", "local"])
def test_a_generation_in_which_every_episode_fails_stops_the_run_with_the_reason(folder, pool):
    done = train(*pool, code=1)
    refused = error_of(done)
    assert "all 8 episodes of iteration 1 failed" in refused
    assert "KeyError: 'no such joint' (in fail, fragile.py line" in refused
    assert "8 of 8 episodes failed" in done.stdout
    kept = (folder / "run" / "first_error.txt").read_text()
    assert "Traceback (most recent call last)" in kept
    assert 'raise KeyError("no such joint")' in kept
    assert [path.name for path in (folder / "run").iterdir()] == ["first_error.txt"]


def test_the_corrected_command_can_use_the_same_folder(folder):
    train("--pool", "inline", code=1)
    train("--pool", "inline", "--env-option", "share=0")
    assert RunDirectory(folder / "run").policy_file("best").exists()


def test_a_reward_that_is_not_a_number_stops_the_run_with_that_reason(folder):
    refused = error_of(train("--pool", "inline", "--env-option", "how=no number", code=1))
    assert "the reward at step 2 is not finite: nan" in refused
    assert not list((folder / "run").glob("*.policy"))


def test_an_environment_that_ends_its_process_stops_the_run_with_that_reason(folder, monkeypatch):
    monkeypatch.setattr(local_pool, "MOST_DEATHS", 2)
    refused = error_of(train("--workers", "2", "--env-option", "how=exit", code=1))
    assert refused == (
        "iap: 2 episodes of fragile:Fragile-v0 in a row ended their worker: the worker exited with status 3"
    )
    assert [path.name for path in (folder / "run").iterdir()] == ["first_error.txt"]
    assert "status 3" in (folder / "run" / "first_error.txt").read_text()


def test_some_failures_are_reported_once_and_the_run_goes_on(folder):
    done = train("--pool", "inline", "--env-option", "share=0.4", "--iterations", 4)
    assert done.stdout.count("episodes failed") == 1
    assert "run/first_error.txt" in done.stdout
    rows = RunDirectory(folder / "run").read_metrics()
    assert len(rows) == 4
    assert any(row["failed"] for row in rows)


def test_no_policy_is_written_without_a_finite_return(tmp_path):
    """Each candidate has a failed episode, so that no candidate has a return, but not all episodes fail."""

    class OneFails(InlinePool):
        def evaluate(self, thetas, seeds, normaliser=None):
            results = super().evaluate(thetas, seeds, normaliser)
            return [[replace(own[0], total=float("nan"), error="lost"), *own[1:]] for own in results]

    run = run_here(tiny(iterations=2), tmp_path / "run", OneFails)
    assert not list(run.path.glob("*.policy"))
    assert run.checkpoint_file.exists()
    assert "lost" in run.error_file.read_text()


def test_an_error_in_the_users_module_shows_their_traceback_and_only_theirs(folder):
    (folder / "broken.py").write_text("import fragile\n\n\ndef build():\n    return fragile.Missing\n\n\nbuild()\n")
    lines = iap_here("train", "--env", "broken:Env-v0", code=1).stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert [line for line in lines if "File" in line] == [
        f'  File "{folder / "broken.py"}", line 8, in <module>',
        f'  File "{folder / "broken.py"}", line 5, in build',
    ]
    assert lines[-1] == "iap: AttributeError: module 'fragile' has no attribute 'Missing'"


def test_a_syntax_error_in_the_users_module_shows_the_line(folder):
    (folder / "wrong.py").write_text("x = 1\ny = = 2\n")
    lines = iap_here("train", "--env", "wrong:Env-v0", code=1).stderr.splitlines()
    assert "y = = 2" in lines[1]
    assert lines[-1] == f"iap: {folder / 'wrong.py'} line 2 cannot be read"
    assert not any("iap/" in line for line in lines[:-1])


def test_an_error_in_the_first_step_comes_before_the_run_is_made(folder):
    (folder / "early.py").write_text(MODULE.replace("Fragile-v0", "Early-v0").replace("self.steps == 3", "True"))
    lines = iap_here("train", "--env", "early:Early-v0", "--out", "new", code=1).stderr.splitlines()
    assert 'raise KeyError("no such joint")' in " ".join(lines)
    assert lines[-1] == "iap: KeyError: 'no such joint'"
    assert not (folder / "new").exists()


def test_a_module_that_the_users_module_needs_is_named(folder):
    (folder / "needs.py").write_text("import no_such_package\n")
    lines = iap_here("train", "--env", "needs:Env-v0", code=1).stderr.splitlines()
    assert 'needs.py", line 1' in lines[1]
    assert lines[-1] == "iap: ModuleNotFoundError: No module named 'no_such_package'"


def test_a_package_that_gymnasium_misses_is_one_line_with_the_command_that_installs_it(folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "Box2D", None)
    monkeypatch.delitem(sys.modules, "gymnasium.envs.box2d.car_racing", raising=False)
    monkeypatch.delitem(sys.modules, "gymnasium.envs.box2d", raising=False)
    refused = error_of(iap_here("train", "--env", "CarRacing-v3", code=1))
    assert refused == 'iap: the environment CarRacing-v3 needs Box2D: install it with pip install "iap-rl[box2d]"'


def test_a_module_of_the_current_folder_is_found_in_a_new_process(tmp_path):
    (tmp_path / "fragile.py").write_text(MODULE)
    words = ["describe", "--env", "fragile:Fragile-v0", "--env-option", "share=0", "--json", "-"]
    assert '"part": "controller"' in iap(*words, cwd=tmp_path).stdout
