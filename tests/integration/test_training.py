import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from iap.evolution import STRATEGIES, OpenES
from iap.experiments.config import TrainConfig, config_from_json, config_to_json, fitted_to_env
from iap.experiments.presets import PRESETS, for_env, preset, with_parts
from iap.experiments.run_directory import RunDirectory, RunError
from iap.experiments.train import train
from iap.policies.files import load
from iap.rollouts import EnvSpec, InlinePool, LocalPool

IAP = [sys.executable, "-c", "from iap.cli import main; main()"]
TINY = ["--strategy.population", "6", "--iterations", "4", "--episodes", "2", "--max-steps", "8"]
TINY += ["--evaluate-every", "2", "--evaluate-episodes", "2"]


def iap(*words, code=0):
    done = subprocess.run([*IAP, *map(str, words)], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def tiny(**changes) -> TrainConfig:
    config = replace(
        preset("seek"),
        strategy=OpenES(population=6),
        iterations=4,
        episodes=2,
        max_steps=8,
        evaluate_every=2,
        evaluate_episodes=2,
    )
    return fitted_to_env(replace(config, **changes))


def outcome(run: RunDirectory):
    """All that a run decides: its metrics but for the times, and its last and best θ."""
    rows = [{key: value for key, value in row.items() if key != "seconds"} for row in run.read_metrics()]
    thetas = [load(run.policy_file(which)).theta.tobytes() for which in ("last", "best")]
    return rows, thetas


def run_here(config, path, pool: type = InlinePool, **options):
    run = RunDirectory.create(path, config)
    with pool(config.job, **options) as opened:
        train(config, opened, run)
    return run


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    return outcome(run_here(tiny(), tmp_path_factory.mktemp("run") / "inline"))


@pytest.mark.parametrize("workers", [1, 2])
def test_metrics_and_theta_are_the_same_whatever_the_number_of_workers(uninterrupted, tmp_path, workers):
    assert outcome(run_here(tiny(), tmp_path / "local", LocalPool, workers=workers)) == uninterrupted


class StopEarlyError(Exception):
    pass


@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_run_stopped_after_any_iteration_resumes_to_the_same_end(uninterrupted, tmp_path, after):
    config = tiny()
    run = RunDirectory.create(tmp_path / "run", config)

    def stop(row):
        if row["iteration"] == after:
            raise StopEarlyError

    with InlinePool(config.job) as pool:
        with pytest.raises(StopEarlyError):
            train(config, pool, run, stop)
        run, config = RunDirectory.open(run.path)
        train(config, pool, run)
    assert outcome(run) == uninterrupted


def test_a_run_killed_at_any_moment_resumes_to_the_same_end(uninterrupted, tmp_path):
    out = tmp_path / "run"
    words = [*IAP, "train", "seek", "--strategy", "open-es", *TINY, "--out", out, "--workers", "1"]
    process = subprocess.Popen([*map(str, words)], stdout=subprocess.DEVNULL, start_new_session=True)
    metrics = out / "metrics.jsonl"
    deadline = time.monotonic() + 120
    while not (metrics.exists() and metrics.read_text().count("\n") >= 2):
        assert time.monotonic() < deadline
        assert process.poll() is None or metrics.read_text().count("\n") == 4
        time.sleep(0.005)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    with metrics.open("a") as file:
        file.write('{"iteration": 3, "epis')  # a row that was being written
    iap("train", "--resume", out)
    assert outcome(RunDirectory(out)) == uninterrupted


def test_another_seed_gives_other_metrics(uninterrupted, tmp_path):
    assert outcome(run_here(tiny(seed=1), tmp_path / "run"))[0] != uninterrupted[0]


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_every_strategy_trains_and_resumes(tmp_path, strategy):
    config = with_parts(tiny(iterations=2), strategy=strategy)
    config = replace(config, strategy=replace(config.strategy, population=6))
    run = run_here(config, tmp_path / "run")
    longer = replace(config, iterations=3)
    with InlinePool(config.job) as pool:
        train(longer, pool, run)
    assert [row["iteration"] for row in run.read_metrics()] == [1, 2, 3]


@pytest.mark.parametrize("vision", ["rank", "trans", "cnn", "blind"])
def test_every_vision_trains_in_any_environment(tmp_path, vision):
    config = with_parts(for_env(EnvSpec.of("iap/Seek-v0")), vision=vision, controller="lstm")
    config = replace(config, strategy=OpenES(population=2), iterations=1, episodes=1, max_steps=5, evaluate_episodes=1)
    run = run_here(fitted_to_env(config), tmp_path / "run")
    assert run.policy_file("best").exists()


def test_screening_starts_from_the_best_of_several_random_policies(tmp_path):
    run = run_here(tiny(screen=8, iterations=1, evaluate_every=1), tmp_path / "run")
    assert run.read_metrics()[0]["iteration"] == 1
    assert outcome(run)[1] != outcome(run_here(tiny(iterations=1, evaluate_every=1), tmp_path / "other"))[1]


@pytest.mark.parametrize("name", PRESETS)
def test_configs_survive_json(name):
    config = PRESETS[name]
    assert config_from_json(json.loads(json.dumps(config_to_json(config)))) == config


def test_a_folder_with_a_run_is_not_written_over(tmp_path):
    RunDirectory.create(tmp_path / "run", tiny())
    with pytest.raises(RunError, match="holds a run already: resume it"):
        RunDirectory.create(tmp_path / "run", tiny())


def test_a_checkpoint_that_is_damaged_is_told(tmp_path):
    run = run_here(tiny(iterations=1), tmp_path / "run")
    run.checkpoint_file.write_bytes(run.checkpoint_file.read_bytes()[:-20])
    with pytest.raises(RunError, match=r"checkpoint\.safetensors cannot be read"):
        run.load_checkpoint()


def test_train_then_evaluate_then_watch(tmp_path):
    out = tmp_path / "run"
    shown = iap("train", "seek", "--strategy", "open-es", *TINY, "--out", out, "--pool", "inline").stdout
    assert "best.policy" in shown
    assert {path.name for path in out.iterdir()} >= {"config.json", "metrics.jsonl", "curve.png", "best.policy"}
    assert list((out / "tensorboard").iterdir())
    result = json.loads(iap("eval", out, "--episodes", 3, "--seed", 5, "--json", "-", "--pool", "inline").stdout)
    assert result["episodes"] == len(result["returns"]) == 3
    assert result["mean"] == pytest.approx(np.mean(result["returns"]))
    again = json.loads(iap("eval", out / "best.policy", "--episodes", 1, "--seed", 6, "--json", "-").stdout)
    assert again["returns"] == result["returns"][1:2]
    iap("watch", out, "--out", tmp_path / "film.mp4", "--max-steps", 4)
    assert (tmp_path / "film.mp4").stat().st_size > 1000
    iap("plot", out, "--out", tmp_path / "curves.png")
    assert (tmp_path / "curves.png").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train"], "say what to train"),
        (["train", "walk"], "there is no preset 'walk'"),
        (["train", "seek", "--env", "CartPole-v1"], "not both"),
        (["train", "--env", "Nowhere-v0"], "Nowhere"),
        (["train", "seek", "--vision", "eagle"], "vision must be one of"),
        (["train", "seek", "--env-option", "size"], "must be KEY=VALUE"),
        (["train", "--resume", "nowhere"], "holds no run"),
        (["eval", "nowhere.policy"], "nowhere.policy"),
        (["eval", "zoo:nothing"], "there is no 'nothing' in the zoo"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(words, message):
    told = iap(*words, code=1).stderr.strip()
    assert told.startswith("iap: ")
    assert message in told
    assert "\n" not in told
