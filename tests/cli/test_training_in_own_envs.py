"""Training on the command line: other environments, longer runs, the comparison at the end, lists and versions."""

import json
import sys
from pathlib import Path

import pytest
from training_cases import TINY, iap, iap_here, outcome, run_here, tiny

import iap as package
from iap.policies.serialization import load
from iap.rollouts import InlinePool
from iap.training.presets import PRESETS
from iap.training.run_directory import RunDirectory

EXAMPLES = Path(__file__).parents[2] / "examples"
WORDS = ["train", "seek", "--strategy", "open-es", *TINY, "--pool", "inline"]
SMALL = ["--strategy.population", 4, "--iterations", 1, "--episodes", 1, "--random-search", 0, "--max-steps", 4]
SMALL += ["--evaluate-episodes", 1, "--pool", "inline"]


@pytest.fixture
def small_envs(monkeypatch):
    """The module of the five small environments can be imported."""
    monkeypatch.syspath_prepend(EXAMPLES)
    import small_envs

    return small_envs


def test_the_version_is_printed():
    assert iap_here("--version").stdout == iap_here("-V").stdout == f"iap {package.__version__}\n"


def test_the_presets_are_listed_with_their_environments():
    rows = json.loads(iap_here("presets", "--json", "-").stdout)
    assert [row["name"] for row in rows] == list(PRESETS)
    assert all(row["parameters"] > 0 for row in rows)
    shown = iap_here("presets", "--env", "Seek").stdout
    assert "seek" in shown
    assert "walker" not in shown


def test_a_preset_trains_in_another_environment(tmp_path, small_envs):
    words = ["train", "seek", "--env", "small_envs:small/Dot-v0", *TINY, "--iterations", 1, "--pool", "inline"]
    iap_here(*words, "--out", tmp_path / "run")
    policy = load(tmp_path / "run" / "last.policy")
    assert policy.env_id == "small_envs:small/Dot-v0"
    assert policy.config.encoder == PRESETS["seek"].policy.encoder


@pytest.mark.parametrize("name", ["GridGoal", "Dot", "Catch", "TwoCameras", "Lander"])
def test_every_small_environment_trains_with_the_config_for_its_spaces(name, tmp_path, small_envs):
    env = f"small_envs:small/{name}-v0"
    iap_here("train", "--env", env, *SMALL, "--out", tmp_path / "run")
    result = json.loads(
        iap_here("eval", tmp_path / "run", "--env", env, "--episodes", 1, "--pool", "inline", "--json", "-").stdout
    )
    assert result["failed"] == 0


def test_describe_and_probe_take_an_environment(small_envs):
    rows = json.loads(iap_here("describe", "--env", "small_envs:small/Dot-v0", "--json", "-").stdout)
    assert {row["part"] for row in rows} >= {"encoder", "controller"}
    words = ["probe", "seek", "--env", "iap/Seek-v0", "--env-option", "distractors=2", "--steps", 100, "--draws", 1]
    assert len(json.loads(iap_here(*words, "--json", "-").stdout)) == 1


def test_ablations_run_in_another_environment():
    words = ["ablate", "zoo:seek", "--env", "iap/Seek-v0", "--env-option", "distractors=3", "--episodes", 2]
    rows = json.loads(iap_here(*words, "--pool", "inline", "--json", "-").stdout)
    assert rows[0]["ablation"] == "trained"


def test_a_finished_run_is_extended_to_the_result_of_a_longer_one(tmp_path):
    expected = run_here(tiny(iterations=6), tmp_path / "expected")
    out = tmp_path / "run"
    iap_here(*WORDS, "--out", out)
    iap_here("train", "--resume", out, "--iterations", 6, "--pool", "inline")
    assert outcome(RunDirectory(out)) == outcome(expected)
    command = load(out / "last.policy").facts["command"]
    assert command.split("--iterations ")[1].split()[0] == "6"
    assert RunDirectory.open(out)[1].iterations == 6


def test_a_run_is_extended_in_python(tmp_path):
    options = {"workers": 0, "out": tmp_path / "run", "episodes": 1, "max_steps": 4, "evaluate_episodes": 1}
    package.train("seek", iterations=1, **options)
    assert [row["iteration"] for row in package.train("seek", iterations=2, **options).metrics] == [1, 2]


def test_training_ends_with_the_baselines_on_the_same_seeds_and_the_next_commands(tmp_path):
    out = tmp_path / "run"
    shown = " ".join(iap_here(*WORDS, "--out", out, "--compare", 4).stdout.split())
    rows = json.loads((out / "comparison.json").read_text())
    assert [row["policy"] for row in rows] == ["trained", "zero action", "random actions", "blind, 2 iterations"]
    assert all(row["± (95 %) "] is not None for row in rows[1:])
    assert "seeds 0 to 3" in shown
    assert "uses its images" in shown
    for words in (
        f"iap eval {out}",
        f"iap ablate {out} --blind {out}/blind",
        f"iap train --resume {out} --iterations 8",
    ):
        assert words in shown
    blind = load(out / "blind" / "best.policy")
    assert not blind.config.encoder.uses_image
    assert blind.env_id == "iap/Seek-v0"
    again = iap_here("ablate", out, "--blind", out / "blind", "--episodes", 2, "--pool", "inline").stdout
    assert "blind" in again


def test_the_trained_row_is_its_evaluation_and_differences_are_by_episode(tmp_path):
    from iap.cli.baselines import compare_with_baselines
    from iap.evaluation.evaluate import evaluate

    config = tiny(iterations=1)
    run = run_here(config, tmp_path / "run")
    rows = compare_with_baselines(run, config, InlinePool, 3)
    with InlinePool(config.job) as pool:
        assert rows[0]["return"] == evaluate(load(run.policy_file("best")), pool, 3).mean
    zero = rows[1]
    assert zero["difference"] == pytest.approx(rows[0]["return"] - zero["return"])


@pytest.mark.slow
def test_an_environment_registered_in_the_main_script_runs_in_worker_processes(tmp_path):
    code = """
import gymnasium, numpy as np, iap
from iap.evolution import OpenES
from iap.policies import Blind, PolicyConfig
from iap.training.config import TrainConfig

class Cell(gymnasium.Env):
    observation_space = gymnasium.spaces.Box(0, 255, (8, 8, 3), np.uint8)
    action_space = gymnasium.spaces.Discrete(2)
    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros((8, 8, 3), np.uint8), {}
    def step(self, action):
        return np.zeros((8, 8, 3), np.uint8), float(action), False, False, {}

if __name__ == "__main__":
    gymnasium.register("Cell-v0", Cell, max_episode_steps=3)
    gymnasium.register("Named-v0", "__main__:Cell", max_episode_steps=3)
    policy = PolicyConfig((8, 8, 3), 0, 2, encoder=Blind())
    for id in ("Cell-v0", "Named-v0"):
        config = TrainConfig(iap.EnvConfig(id), policy, strategy=OpenES(population=2), iterations=1, episodes=1)
        run = iap.train(config, workers=2, out=id, evaluate_episodes=1)
        print(id, run.metrics[-1]["failed"])
"""
    import subprocess

    (tmp_path / "notebook.py").write_text(code)
    words = [sys.executable, "-W", "error", "notebook.py"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.stdout == "Cell-v0 0\nNamed-v0 0\n", done.stderr


def test_help_of_train_is_short_and_that_of_a_preset_complete():
    short, long = (iap_here("train", *words, "--help").stdout for words in ([], ["seek"]))
    assert "--policy.encoder.patch" not in short
    assert "--policy.encoder.patch" in long
    assert "--strategy.sigma" in long
    assert len(short.splitlines()) < 0.6 * len(long.splitlines())


def test_the_overview_starts_without_heavy_modules():
    assert "presets" in iap("--help").stdout
