import pytest
from training_cases import TINY, error_of, iap_here

from iap.cli import parse
from iap.cli.commands.training.resume import Resume
from iap.cli.commands.training.train import Train, recorded_command
from iap.evolution import SNES
from iap.policies.serialization import load
from iap.training.config import config_to_json
from iap.training.presets import PRESETS, preset

WORDS = ["train", "seek", "--strategy", "open-es", *TINY]


def parsed(*words: str) -> Train:
    command = parse(["train", *words])
    assert isinstance(command, Train)
    return command


@pytest.mark.parametrize("name", PRESETS)
def test_without_options_the_config_is_that_of_the_preset(name):
    command = parsed(name)
    assert command.config == preset(name)
    assert str(command.folder) == f"runs/{name}-seed0"


def test_the_warm_start_of_a_preset_is_kept_replaced_or_removed():
    name = "cheetah-run-no-pretraining"
    assert parsed(name).config.warm_start == "zoo:cheetah-run-plain"
    assert parsed(name, "--seed", "3").config.warm_start == "zoo:cheetah-run-plain"
    assert parsed(name, "--warm-start", "runs/a").config.warm_start == "runs/a"
    assert parsed(name, "--warm-start", "none").config.warm_start is None


def test_an_environment_that_needs_a_module_is_not_imported_by_parsing():
    command = parsed("--env", "nowhere:Env-v0", "--env-option", "size=[4,5]", "--env-option", "name=a", "--seed", "2")
    assert (command.config.env.id, dict(command.config.env.kwargs)) == ("nowhere:Env-v0", {"size": (4, 5), "name": "a"})
    assert str(command.folder) == "runs/Env-v0-seed2"


@pytest.mark.parametrize(
    ("words", "recorded"),
    [
        (["seek"], "iap train seek"),
        (["seek", "--seed", "1", "--out", "a b", "--workers", "2"], "iap train seek --seed 1"),
        (["seek", "--pool=ray", "--address", "x:1", "--timeout_s", "9", "--episodes=3"], "iap train seek --episodes=3"),
        (["--env", "a/B-v0", "--env-option", "x=[1, 2]"], "iap train --env a/B-v0 --env-option 'x=[1, 2]'"),
        (["seek", "--timeout-s=9", "--strategy", "snes"], "iap train seek --strategy snes"),
    ],
)
def test_the_recorded_command_has_no_options_that_do_not_change_the_result(words, recorded):
    assert recorded_command("train", words) == recorded


def test_policy_files_have_the_command_and_a_resumed_run_keeps_it(tmp_path):
    out = tmp_path / "run"
    iap_here(*WORDS, "--out", out, "--pool", "inline")
    expected = "iap " + " ".join(WORDS)
    assert [load(out / f"{which}.policy").facts["command"] for which in ("best", "last")] == [expected] * 2
    config = out / "config.json"
    config.write_text(config.read_text().replace('"iterations": 4', '"iterations": 5'))
    iap_here("train", "--resume", out, "--pool", "inline")
    last = load(out / "last.policy")
    assert (last.facts["iterations"], last.facts["command"]) == (5, expected)


def test_a_run_that_was_killed_before_its_first_checkpoint_keeps_its_command(tmp_path):
    out = tmp_path / "run"
    iap_here(*WORDS, "--out", out, "--pool", "inline")
    for file in out.iterdir():
        if file.name not in ("config.json", "command.txt", "tensorboard"):
            file.unlink()
    iap_here("train", "--resume", out, "--pool", "inline")
    assert load(out / "last.policy").facts["command"] == "iap " + " ".join(WORDS)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--workers", "0"], "workers must be at least 1, not 0"),
        (["--timeout-s", "0"], "timeout_s must be more than 0"),
        (["--iterations", "0"], "iterations must be at least 1"),
        (["--warm-start", "zoo:nothing"], "there is no 'nothing' in the zoo"),
        (["--encoder", "eagle"], "there is no encoder 'eagle'"),
        (["--controller", "pid"], "there is no controller 'pid'"),
        (["--kernel", "cosine"], "there is no kernel 'cosine'"),
        (["--strategy", "adam"], "there is no strategy 'adam'"),
        (["--hierarchy", "three"], "hierarchy must be one of one, two, two-mlp, not 'three'"),
        (["--env-option", "colour=3"], "iap/Seek-v0 has no option colour"),
        (["--policy.encoder.patch", "99"], "patch"),
    ],
)
def test_nothing_is_written_before_all_options_are_valid(tmp_path, words, message):
    out = tmp_path / "run"
    assert message in error_of(iap_here("train", "seek", *words, "--out", out, code=1))
    assert not out.exists()


def test_a_teacher_that_does_not_fit_is_refused_before_anything_is_written(tmp_path):
    out = tmp_path / "run"
    words = ["train", "cartpole-swingup", "--pretraining.teacher", "zoo:reacher-easy-teacher", "--out", out]
    assert "pretraining.teacher must be a blind policy with 3 sensors" in error_of(iap_here(*words, code=1))
    assert not out.exists()


def test_a_folder_that_holds_a_run_is_refused(tmp_path):
    out = tmp_path / "run"
    iap_here(*WORDS, "--iterations", 1, "--out", out, "--pool", "inline")
    before = {file.name: file.read_bytes() for file in out.iterdir() if file.is_file()}
    assert f"resume it with --resume {out}" in error_of(iap_here(*WORDS, "--out", out, "--pool", "inline", code=1))
    assert {file.name: file.read_bytes() for file in out.iterdir() if file.is_file()} == before


def test_resume_has_the_options_of_the_pool_iterations_and_no_others(tmp_path):
    command = parse(["train", "--resume", str(tmp_path), "--workers", "3"])
    assert isinstance(command, Resume)
    assert (command.resume, command.pool.workers) == (tmp_path, 3)
    iap_here("train", "--resume", tmp_path, "--episodes", 3, code=2)
    iap_here("train", "seek", "--resume", tmp_path, code=2)
    assert "holds no run" in error_of(iap_here("train", "--resume", tmp_path / "nowhere", code=1))


def test_parts_are_chosen_by_their_registered_names():
    words = ["--encoder", "trans", "--controller", "lstm", "--kernel", "favor++", "--hierarchy", "two-mlp"]
    command = parsed("seek", *words, "--strategy", "snes", "--strategy.population", "8")
    policy = config_to_json(command.config)["policy"]
    assert policy["encoder"]["kind"] == "trans"
    assert policy["encoder"]["kernel"]["features"] == "favor++"
    assert policy["controller"]["kind"] == "lstm"
    assert policy["hierarchy"]["low_level"]["kind"] == "mlp"
    assert command.config.strategy == SNES(population=8)
    assert command.command == " ".join(["iap train seek", *words, "--strategy snes --strategy.population 8"])
