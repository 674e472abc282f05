import json
import os
import signal
import subprocess
import time
from dataclasses import replace

import docstring_parser
import numpy as np
import pytest
from training_cases import IAP, TINY, error_of, iap, iap_here, outcome, run_here, tiny

from iap.attention import Softmax
from iap.envs.core import EnvConfig
from iap.evolution import STRATEGIES, OpenES
from iap.policies import CONTROLLERS, ENCODERS, Hierarchy, PolicyConfig, Rank
from iap.policies.serialization import load, save
from iap.rollouts import InlinePool
from iap.training.config import fit_to_env
from iap.training.loop import train
from iap.training.presets import config_for_env, with_parts
from iap.training.run_directory import RunDirectory, RunError


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    return outcome(run_here(tiny(), tmp_path_factory.mktemp("run") / "inline"))


class StopEarlyError(Exception):
    pass


def _stop(_row):
    raise StopEarlyError


@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_run_stopped_after_any_iteration_resumes_to_the_same_result(uninterrupted, tmp_path, after):
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


def test_a_run_killed_at_any_time_resumes_to_the_same_result(uninterrupted, tmp_path):
    out = tmp_path / "run"
    words = [*IAP, "train", "seek", "--strategy", "open-es", *TINY, "--out", out, "--workers", "1"]
    process = subprocess.Popen([*map(str, words)], stdout=subprocess.DEVNULL, start_new_session=True)
    metrics = out / "metrics.jsonl"
    deadline = time.monotonic() + 300  # the process may have to compile
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
    command = "iap train seek --strategy open-es " + " ".join(TINY)
    assert load(out / "last.policy").facts["command"] == command  # the resumed run records the first command


def test_another_seed_gives_other_metrics(uninterrupted, tmp_path):
    assert outcome(run_here(tiny(seed=1), tmp_path / "run"))[0] != uninterrupted[0]


@pytest.mark.parametrize("strategy", sorted(STRATEGIES))
def test_every_strategy_trains_and_resumes(tmp_path, strategy):
    config = with_parts(tiny(iterations=2), strategy=strategy)
    config = replace(config, strategy=STRATEGIES[strategy](population=6))  # pyright: ignore[reportCallIssue]
    run = run_here(config, tmp_path / "run")
    longer = replace(config, iterations=3)
    with InlinePool(config.job) as pool:
        train(longer, pool, run)
    assert [row["iteration"] for row in run.read_metrics()] == [1, 2, 3]


def _trains_in_seek(path, **parts):
    config = with_parts(config_for_env(EnvConfig.of("iap/Seek-v0")), **parts)
    config = replace(
        config,
        strategy=OpenES(population=2),
        random_search=0,
        iterations=1,
        episodes=1,
        max_steps=5,
        evaluate_episodes=1,
    )
    if parts.get("encoder") == "multi-head-rank":
        config = replace(config, policy=replace(config.policy, encoder=replace(config.policy.encoder, top_k=8)))
    return run_here(fit_to_env(config), path).policy_file("best").exists()


@pytest.mark.parametrize("encoder", ENCODERS)
def test_every_encoder_trains_with_default_options(tmp_path, encoder):
    assert _trains_in_seek(tmp_path / "run", encoder=encoder)


@pytest.mark.parametrize("controller", CONTROLLERS)
def test_every_controller_trains_with_default_options(tmp_path, controller):
    encoder = "blind" if controller == "quadratic" else "cnn"  # squares of many features would be many parameters
    assert _trains_in_seek(tmp_path / "run", encoder=encoder, controller=controller)


def test_training_continues_from_the_winner_of_a_random_search_which_is_a_baseline_of_its_own(tmp_path):
    run = run_here(tiny(random_search=15), tmp_path / "run")
    row = run.read_metrics()[0]
    winner = load(run.policy_file("random_search"))
    facts = winner.facts["random_search"]
    assert [row["iteration"] for row in run.read_metrics()] == [0, 1, 2, 3, 4]
    assert row["episodes"] > 2 * 15
    assert (row["best"], row["held_out"]) == (facts["best"], facts["held_out"])
    assert row["best"] > row["mean"]
    assert load(run.policy_file("last")).facts["random_search"] == facts
    assert run.read_metrics()[-1]["held_out_best"] >= facts["held_out"]
    result = json.loads(
        iap_here("eval", run.policy_file("random_search"), "--episodes", 2, "--json", "-", "--pool", "inline").stdout
    )
    assert result["failed"] == 0


def test_a_frozen_normaliser_stays_that_of_the_initial_policy(tmp_path):
    runs = {
        frozen: run_here(tiny(random_search=8, freeze_normaliser=frozen), tmp_path / str(frozen))
        for frozen in (True, False)
    }

    def rows_of_normaliser(frozen: bool, which: str) -> int:
        normaliser = load(runs[frozen].policy_file(which)).normaliser
        assert normaliser is not None
        return normaliser.count

    assert rows_of_normaliser(True, "last") == rows_of_normaliser(True, "random_search")
    assert rows_of_normaliser(False, "last") > rows_of_normaliser(False, "random_search")


def test_a_run_killed_after_its_random_search_does_not_repeat_it(tmp_path):
    config = tiny(random_search=8)
    whole = outcome(run_here(config, tmp_path / "whole"))
    run = RunDirectory.create(tmp_path / "run", config)
    with InlinePool(config.job) as pool:
        with pytest.raises(StopEarlyError):
            train(config, pool, run, _stop)
        done = []
        train(config, pool, run, on_start=lambda what, share: done.append((what, share)))
    assert not done
    assert outcome(run) == whole


def test_a_random_search_reports_its_progress(tmp_path):
    config = tiny(random_search=13, iterations=1)
    run = RunDirectory.create(tmp_path / "run", config)
    done = []
    with InlinePool(config.job) as pool:
        train(config, pool, run, on_start=lambda what, share: done.append((what, share)))
    assert [share for _, share in done] == [0, 0, 6 / 13, 12 / 13, 1]
    assert done[-2][0].startswith("random search over 13 policies, best ")


def test_a_warm_start_begins_at_a_policy_of_the_same_shapes(tmp_path):
    first = run_here(tiny(), tmp_path / "first")
    start = load(first.policy_file("best"))
    out = tmp_path / "second"
    words = ["--warm-start", first.path, "--out", out, "--pool", "inline"]
    iap_here("train", "seek", "--strategy", "open-es", *TINY, *words)
    second = RunDirectory(out)
    assert load(second.policy_file("start")).theta.tobytes() == start.theta.tobytes()
    assert second.read_metrics()[0]["held_out"] == first.read_metrics()[-1]["held_out_best"]
    assert second.read_metrics()[-1]["held_out_best"] >= first.read_metrics()[-1]["held_out_best"]
    assert load(second.policy_file("last")).facts["warm_start"]["facts"] == dict(start.facts)


def test_a_warm_start_from_a_policy_of_other_shapes_is_refused_before_anything_is_written(tmp_path):
    words = ["train", "seek", "--policy.encoder.d", 3, "--warm-start", "zoo:seek", "--out", tmp_path / "run"]
    assert "warm_start zoo:seek has other shapes: encoder key.weight" in error_of(iap_here(*words, code=1))
    assert not (tmp_path / "run").exists()


def test_hierarchy_kernel_and_patches_are_chosen_on_the_command_line(tmp_path):
    words = ["train", "seek", "--strategy", "open-es", "--hierarchy", "two", "--policy.hierarchy.latent_size", 3]
    words += ["--kernel", "favor++", "--policy.encoder.kernel.projections", 8]
    words += ["--policy.encoder.patch", 1, "--policy.encoder.stride", 1]
    iap_here(*words, *TINY, "--out", tmp_path / "run", "--pool", "inline")
    config = load(tmp_path / "run" / "last.policy").config
    assert config.hierarchy == Hierarchy(latent_size=3)
    assert isinstance(config.encoder, Rank)
    assert (config.encoder.patch, config.encoder.kernel) == (1, Softmax("favor++", projections=8))


def _described(config: type, field: str) -> str:
    described = docstring_parser.parse(config.__doc__ or "").params
    return next(attribute.description or "" for attribute in described if attribute.arg_name == field)


def test_what_the_environment_decides_is_not_an_option():
    shown = " ".join(iap_here("train", "seek", "--help").stdout.split())
    assert "--policy.frames" in shown
    assert " ".join(_described(PolicyConfig, "frames").split()[:4]) in shown  # from the docstring of the config
    for hidden in ("--env.id", "--policy.image-shape", "--policy.sensors", "--policy.actions", "--config"):
        assert hidden not in shown


def test_a_folder_with_a_run_is_not_overwritten(tmp_path):
    RunDirectory.create(tmp_path / "run", tiny())
    with pytest.raises(RunError, match="already holds a run: resume it"):
        RunDirectory.create(tmp_path / "run", tiny())


def test_a_damaged_checkpoint_is_an_error(tmp_path):
    run = run_here(tiny(iterations=1), tmp_path / "run")
    run.checkpoint_file.write_bytes(run.checkpoint_file.read_bytes()[:-20])
    with pytest.raises(RunError, match=r"checkpoint\.safetensors cannot be used: is damaged"):
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
    again = json.loads(iap_here("eval", out / "best.policy", "--episodes", 1, "--seed", 6, "--json", "-").stdout)
    assert again["returns"] == result["returns"][1:2]
    iap_here("watch", out, "--out", tmp_path / "film.mp4", "--max-steps", 4)
    assert (tmp_path / "film.mp4").stat().st_size > 1000
    iap_here("plot", out, "--out", tmp_path / "curves.png")
    assert (tmp_path / "curves.png").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["train"], "give a preset's name, --env ID or --resume DIR"),
        (["train", "walk"], "there is no preset 'walk'"),
        (["train", "seek", "--env", "CartPole-v1"], 'use image_from="render"'),
        (["train", "--env", "Nowhere-v0"], "there is no environment 'Nowhere-v0'"),
        (["train", "seek", "--encoder", "eagle"], "there is no encoder 'eagle'"),
        (["train", "seek", "--env-option", "size"], "must be KEY=VALUE"),
        (["train", "seek", "--env-option", "colour=3"], "iap/Seek-v0 has no option colour"),
        (["train", "cheetah-run", "--env-option", "task=walker-run"], "iap/cheetah-run-v0"),
        (["train", "seek", "--hierarchy", "three"], "hierarchy must be one of one, two, two-mlp, not 'three'"),
        (["train", "seek", "--encoder", "blind", "--kernel", "relu"], "kernel is an option of attention encoders"),
        (["train", "seek", "--warm-start", "zoo:seek", "--random-search", "4"], "exclude each other"),
        (["train", "seek", "--freeze-normaliser"], "freeze_normaliser must be False without random_search"),
        (["train", "--resume", "nowhere"], "holds no run"),
        (["eval", "nowhere.policy"], "nowhere.policy"),
        (["eval", "zoo:nothing"], "there is no 'nothing' in the zoo"),
    ],
)
def test_an_invalid_command_gives_an_error_of_one_line(words, message):
    assert message in error_of(iap_here(*words, code=1))


def test_no_module_is_imported_because_a_policy_file_names_it(tmp_path):
    run = run_here(tiny(iterations=1), tmp_path / "run")
    (tmp_path / "surprise.py").write_text("raise SystemExit('imported')")
    save(tmp_path / "a.policy", replace(load(run.policy_file("last")), env_id="surprise:Seek-v0"))
    for command in ("eval", "watch"):
        refused = error_of(iap(command, "a.policy", code=1, cwd=tmp_path))
        assert "surprise" in refused
        assert "import" in refused
    trusted = iap("eval", "a.policy", "--env", "surprise:Seek-v0", code=1, cwd=tmp_path)
    assert trusted.stderr.strip() == "imported"
    result = iap("eval", "a.policy", "--env", "iap/Seek-v0", "--episodes", 1, "--pool", "inline", cwd=tmp_path)
    assert "iap/Seek-v0" in result.stdout
