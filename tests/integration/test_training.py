import json
import os
import signal
import subprocess
import time
from dataclasses import replace

import numpy as np
import pytest
from training_cases import IAP, TINY, iap, iap_here, outcome, run_here, tiny, told

from iap.attention import Softmax
from iap.evolution import STRATEGIES, OpenES
from iap.policies import Hierarchy, Rank
from iap.policies.serialization import load, save
from iap.rollouts import EnvConfig, InlinePool
from iap.training.config import config_from_json, config_to_json, fitted_to_env
from iap.training.loop import train
from iap.training.presets.registry import PRESETS, for_env, with_parts
from iap.training.run_directory import RunDirectory, RunError


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    return outcome(run_here(tiny(), tmp_path_factory.mktemp("run") / "inline"))


class StopEarlyError(Exception):
    pass


def _stop(_row):
    raise StopEarlyError


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


@pytest.mark.parametrize("encoder", ["rank", "trans", "cnn", "blind"])
def test_every_vision_trains_in_any_environment(tmp_path, encoder):
    config = with_parts(for_env(EnvConfig.of("iap/Seek-v0")), encoder=encoder, controller="lstm")
    config = replace(config, strategy=OpenES(population=2), iterations=1, episodes=1, max_steps=5, evaluate_episodes=1)
    run = run_here(fitted_to_env(config), tmp_path / "run")
    assert run.policy_file("best").exists()


def test_screening_is_a_baseline_of_its_own_and_evolution_goes_on_from_it(tmp_path):
    run = run_here(tiny(random_search=15), tmp_path / "run")
    row = run.read_metrics()[0]
    screened = load(run.policy_file("screened"))
    facts = screened.facts["screened"]
    assert [row["iteration"] for row in run.read_metrics()] == [0, 1, 2, 3, 4]
    assert row["episodes"] > 2 * 15
    assert (row["best"], row["held_out"]) == (facts["best"], facts["held_out"])
    assert row["best"] > row["mean"]
    assert load(run.policy_file("last")).facts["screened"] == facts
    assert run.read_metrics()[-1]["held_out_best"] >= facts["held_out"]
    result = json.loads(
        iap_here("eval", run.policy_file("screened"), "--episodes", 2, "--json", "-", "--pool", "inline").stdout
    )
    assert result["failed"] == 0


def test_statistics_that_are_kept_stay_those_of_the_policy_that_evolution_started_from(tmp_path):
    runs = {top_k: run_here(tiny(random_search=8, freeze_normaliser=top_k), tmp_path / str(top_k)) for keep in (True, False)}

    def rows_seen(top_k: bool, which: str) -> int:
        normaliser = load(runs[top_k].policy_file(which)).normaliser
        assert normaliser is not None
        return normaliser.count

    assert rows_seen(True, "last") == rows_seen(True, "screened")
    assert rows_seen(False, "last") > rows_seen(False, "screened")


def test_a_run_killed_after_screening_does_not_screen_again(tmp_path):
    config = tiny(random_search=8)
    whole = outcome(run_here(config, tmp_path / "whole"))
    run = RunDirectory.create(tmp_path / "run", config)
    with InlinePool(config.job) as pool:
        with pytest.raises(StopEarlyError):
            train(config, pool, run, _stop)
        done = []
        train(config, pool, run, doing=lambda what, share: done.append((what, share)))
    assert not done
    assert outcome(run) == whole


def test_screening_tells_how_far_it_is(tmp_path):
    config = tiny(random_search=13, iterations=1)
    run = RunDirectory.create(tmp_path / "run", config)
    done = []
    with InlinePool(config.job) as pool:
        train(config, pool, run, doing=lambda what, share: done.append((what, share)))
    assert [share for _, share in done] == [0, 0, 6 / 13, 12 / 13, 1]
    assert done[-2][0].startswith("screening 13 random policies, best ")


def test_evolution_starts_from_a_policy_of_the_same_shapes(tmp_path):
    first = run_here(tiny(), tmp_path / "first")
    start = load(first.policy_file("best"))
    out = tmp_path / "second"
    iap_here("train", "seek", "--strategy", "open-es", *TINY, "--from", first.path, "--out", out, "--pool", "inline")
    second = RunDirectory(out)
    assert load(second.policy_file("start")).theta.tobytes() == start.theta.tobytes()
    assert second.read_metrics()[0]["held_out"] == first.read_metrics()[-1]["held_out_best"]
    assert second.read_metrics()[-1]["held_out_best"] >= first.read_metrics()[-1]["held_out_best"]
    assert load(second.policy_file("last")).facts["started_from"]["facts"] == dict(start.facts)


def test_a_policy_of_other_shapes_cannot_be_started_from(tmp_path):
    words = ["train", "seek", "--policy.encoder.d", 3, "--from", "zoo:seek", "--out", tmp_path / "run"]
    assert "zoo:seek cannot be started from, its shapes differ in encoder key.weight" in told(iap_here(*words, code=1))
    assert not (tmp_path / "run").exists()


def test_levels_kernels_and_patches_are_chosen_on_the_command_line(tmp_path):
    words = ["train", "seek", "--strategy", "open-es", "--level", "two", "--policy.hierarchy.latent_size", 3]
    words += ["--kernel", "favor++", "--policy.encoder.kernel.projections", 8]
    words += ["--policy.encoder.patch", 1, "--policy.encoder.stride", 1]
    iap_here(*words, *TINY, "--out", tmp_path / "run", "--pool", "inline")
    spec = load(tmp_path / "run" / "last.policy").spec
    assert spec.hierarchy == Hierarchy(latent_size=3)
    assert isinstance(spec.encoder, Rank)
    assert (spec.encoder.patch, spec.encoder.kernel) == (1, Softmax("favor++", projections=8))


def test_what_the_environment_decides_is_no_option():
    shown = iap_here("train", "seek", "--help").stdout
    assert "--policy.frames" in shown
    assert "how many looks' readouts the controller sees" in shown
    for hidden in ("--env.id", "--policy.image-shape", "--policy.sensors", "--policy.actions", "--start-from"):
        assert hidden not in shown


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
        (["train", "--env", "Nowhere-v0"], "there is no environment 'Nowhere-v0'"),
        (["train", "seek", "--encoder", "eagle"], "encoder must be one of"),
        (["train", "seek", "--env-option", "size"], "must be KEY=VALUE"),
        (["train", "seek", "--env-option", "colour=3"], "iap/Seek-v0 has no option colour"),
        (["train", "cheetah-run", "--env-option", "task=walker-run"], "iap/cheetah-run-v0 decides task itself"),
        (["train", "seek", "--level", "three"], "level must be one of one, two, two-mlp, not 'three'"),
        (["train", "seek", "--encoder", "blind", "--kernel", "relu"], "kernel is of attention, and Blind has none"),
        (["train", "seek", "--from", "zoo:seek", "--screen", "4"], "three ways to begin"),
        (["train", "seek", "--keep-statistics"], "freeze_normaliser must be False without screen, teach or warm_start"),
        (["train", "--resume", "nowhere"], "holds no run"),
        (["eval", "nowhere.policy"], "nowhere.policy"),
        (["eval", "zoo:nothing"], "there is no 'nothing' in the zoo"),
    ],
)
def test_what_is_wrong_is_told_in_one_line(words, message):
    assert message in told(iap_here(*words, code=1))


def test_no_policy_file_has_a_module_imported(tmp_path):
    run = run_here(tiny(iterations=1), tmp_path / "run")
    (tmp_path / "surprise.py").write_text("raise SystemExit('imported')")
    save(tmp_path / "a.policy", replace(load(run.policy_file("last")), env_id="surprise:Seek-v0"))
    for command in ("eval", "watch"):
        refused = told(iap(command, "a.policy", code=1, cwd=tmp_path))
        assert "no file may have a module imported" in refused
    trusted = iap("eval", "a.policy", "--env", "surprise:Seek-v0", code=1, cwd=tmp_path)
    assert trusted.stderr.strip() == "imported"
    result = iap("eval", "a.policy", "--env", "iap/Seek-v0", "--episodes", 1, "--pool", "inline", cwd=tmp_path)
    assert "iap/Seek-v0" in result.stdout
