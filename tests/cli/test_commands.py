"""The commands that show or convert policies and runs, and errors of the command line."""

import json
from dataclasses import dataclass

import pytest
from training_cases import TINY, error_of, iap, iap_here

from iap._extras import MissingExtraError
from iap.cli import COMMANDS, main, parse
from iap.cli.console import Command
from iap.cli.tables import number
from iap.zoo import zoo_names

INLINE = ["--pool", "inline"]


def as_json(*words: object):
    """What a command writes to standard output, which has to be nothing but JSON."""
    return json.loads(iap_here(*words, "--json", "-").stdout)


def test_the_zoo_lists_all_policies():
    rows = json.loads(iap("zoo", "--json", "-").stdout)
    assert [row["name"] for row in rows] == zoo_names()
    assert all(row["parameters"] > 0 and row["return"] is not None for row in rows)
    assert "zoo:NAME" in iap_here("zoo").stdout


def test_describe_lists_the_parameters_of_a_preset_and_of_its_trained_policy():
    rows = as_json("describe", "seek")
    assert rows == as_json("describe", "zoo:seek")
    assert sum(row["parameters"] for row in rows if "shape" in row) == 162
    assert {row["part"] for row in rows if row["name"] == "baseline"} == {"CNN, encoder", "CNN, all"}


def test_ablate_compares_with_every_ablation_and_a_blind_policy(tmp_path):
    words = ["train", "seek", "--encoder", "blind", "--strategy", "open-es", *TINY, "--iterations", 1]
    iap_here(*words, "--out", tmp_path / "blind", *INLINE)
    rows = as_json("ablate", "zoo:seek", "--blind", tmp_path / "blind", "--episodes", 2, *INLINE)
    names = ["trained", "zero action", "initial", "replayed frames", "shuffled frames", "blind", "random attention"]
    assert [row["ablation"] for row in rows] == names
    assert all(row["episodes"] == 2 for row in rows)


def test_eval_counts_what_selected_patches_show():
    words = ["eval", "zoo:seek", "--episodes", 1, "--attention", 1, *INLINE]
    assert "Segmentation" in error_of(iap_here(*words, code=1))
    words = ["eval", "zoo:cheetah-run-plain", "--episodes", 1, "--env-option", "max_episode_steps=20", *INLINE]
    result = as_json(*words, "--attention", 1)
    assert {"class", "attention", "area", "times_chance"} == set(result["attention"][0])


def test_eval_reports_mean_interval_and_seeds():
    shown = iap_here("eval", "zoo:seek", "--episodes", 3, "--seed", 7, *INLINE).stdout
    assert shown.startswith("iap/Seek-v0: ")
    assert "(95 %), 3 episodes, seeds 7 to 9" in " ".join(shown.split())


def test_probe_has_a_row_for_each_random_policy():
    rows = as_json("probe", "seek", "--steps", 100, "--draws", 2)
    assert [row["draw"] for row in rows] == [0, 1]


def test_sweep_trains_every_point_once_and_draws_a_heat_map(tmp_path):
    axes = ["policy.encoder.patch=2,4", "episodes=1,2", "strategy.population=4", "iterations=1", "max_steps=4"]
    words = ["sweep", "seek", "--grid", *axes, "evaluate_episodes=1", "--out", tmp_path, *INLINE]
    iap_here(*words)
    rows = json.loads((tmp_path / "sweep.json").read_text())
    assert [(row["policy.encoder.patch"], row["episodes"]) for row in rows] == [(2, 4), (2, 8), (4, 4), (4, 8)]
    assert (tmp_path / "sweep.png").exists()
    iap_here(*words)
    assert json.loads((tmp_path / "sweep.json").read_text()) == rows


def test_plot_labels_runs_of_the_same_name_by_their_paths(tmp_path):
    folders = [tmp_path / name / "run" for name in ("a", "b")]
    for seed, folder in enumerate(folders):
        words = ["train", "seek", "--strategy", "open-es", *TINY, "--episodes", seed + 1, "--iterations", 1]
        iap_here(*words, "--out", folder, *INLINE)
    iap_here("plot", *folders, "--out", tmp_path / "curves.png", "--over", "iteration")
    assert (tmp_path / "curves.png").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["controls", "zoo:seek"], "there is no command 'controls'"),
        (["abblate", "zoo:seek"], "did you mean 'ablate'?"),
        (["describe", "nowhere.policy"], "nowhere.policy"),
        (["eval", "zoo:seek", "--episodes", "0"], "episodes must be at least 1, not 0"),
        (["eval", "zoo:seek", "--env-option", "size"], "--env-option must be KEY=VALUE, not 'size'"),
        (["ablate", "zoo:nothing"], "there is no 'nothing' in the zoo"),
        (["watch", "zoo:seek", "--out", "nowhere/seek.mp4"], "there is no folder nowhere"),
        (["plot"], "runs must be at least one folder"),
        (["plot", "nowhere"], "nowhere holds no run"),
        (["probe", "walk"], "there is no preset 'walk'"),
        (["sweep", "seek", "--grid", "patch"], "--grid must be NAME=VALUE,VALUE,…, not 'patch'"),
        (["import", "attention-agent", "nowhere.npz"], "nowhere.npz"),
        (["bench", "rollouts", "--preset", "seek", "--json", "nowhere/a.json"], "there is no folder nowhere"),
        (["bench", "rollouts", "--preset", "cartpole-swingup"], "encoder must be Rank, not MultiHeadRank"),
        (["bench", "attention", "--sizes", "5"], "sizes must be among 529, 2500, 4800, 19200, 76800, not 5"),
        (["bench", "attention", "--kernels", "cosine"], "kernels must be among relu, positive"),
        (["bench", "attention", "--methods", "fused"], "methods must be among exact, numpy"),
        (["fidelity", "--draws", "0"], "draws must be at least 1, not 0"),
        (["upgrade"], "paths must be at least one file or folder"),
    ],
)
def test_an_invalid_command_gives_an_error_of_one_line(words, message):
    assert message in error_of(iap_here(*words, code=1))


@pytest.mark.parametrize("words", [["eval"], ["eval", "zoo:seek", "--episods", "3"], ["bench", "nothing"]])
def test_unknown_or_missing_options_exit_with_status_2(words):
    assert iap_here(*words, code=2).stderr


def test_another_package_can_register_a_command(monkeypatch):
    @dataclass(frozen=True)
    class Greet(Command):
        """Print a greeting.

        Example: iap greet --name you
        """

        name: str = "world"

        def run(self, console):
            console.print(f"hello {self.name}")

    monkeypatch.setitem(COMMANDS._entries, "greet", Greet)
    assert iap_here("greet", "--name", "you").stdout == "hello you\n"
    assert "greet     Print a greeting." in iap_here().stdout
    assert isinstance(parse(["greet"]), Greet)


def test_a_missing_extra_is_an_error_of_one_line_with_the_command_that_installs_it(monkeypatch, capsys):
    class Broken(Command):
        @classmethod
        def parse(cls, name, arguments):
            raise ModuleNotFoundError("No module named 'mujoco'", name="mujoco")

        def run(self, console):
            raise AssertionError

    monkeypatch.setitem(COMMANDS._entries, "broken", Broken)
    monkeypatch.setattr("sys.argv", ["iap", "broken"])
    with pytest.raises(SystemExit, match=r'iap: iap broken needs mujoco: install it with pip install "iap-rl\[envs\]"'):
        main()
    assert issubclass(MissingExtraError, ImportError)


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, ""), (True, "yes"), (False, "no"), (1234, "1,234"), (1234.56, "1,235"), (0.012345, "0.0123"), ("a", "a")],
)
def test_cells_show_three_digits_of_a_measurement_and_all_digits_of_a_count(value, shown):
    assert number(value) == shown
