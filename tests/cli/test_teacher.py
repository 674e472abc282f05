import pytest
from training_cases import error_of, iap_here

from iap.cli import parse
from iap.cli.commands.training.teacher import Teacher
from iap.policies.serialization import load
from iap.training.sac.presets import TEACHERS, teacher

TINY = ["cartpole-swingup", "--iterations", "1", "--decisions", "1", "--evaluate-episodes", "1", "--hidden", "8"]


def parsed(*words: str) -> Teacher:
    command = parse(["teacher", *words])
    assert isinstance(command, Teacher)
    return command


@pytest.mark.parametrize("name", TEACHERS)
def test_without_options_the_config_is_that_of_the_preset(name):
    assert parsed(name).config() == parsed(name.removesuffix("-state-teacher")).config() == teacher(name)


def test_options_replace_those_of_the_preset_and_are_recorded():
    words = [
        "walker-walk",
        "--env-option",
        "action_repeat=4",
        "--hidden",
        "32",
        "16",
        "--seed",
        "2",
        "--discount",
        "0.9",
    ]
    command = parsed(*words, "--out", "somewhere")
    config = command.config()
    assert (config.hidden, config.seed, config.discount) == ((32, 16), 2, 0.9)
    assert dict(config.env.kwargs)["action_repeat"] == 4
    assert config.batch == teacher("walker-walk").batch
    assert parsed(*command.recorded_command().split()[2:]).config() == config
    assert "somewhere" not in command.recorded_command()


@pytest.mark.slow
def test_a_teacher_is_trained_and_its_run_continues(tmp_path):
    out = tmp_path / "run"
    shown = iap_here("teacher", *TINY, "--out", out).stdout
    assert "held-out" in shown
    assert load(out / "best.policy").facts["command"] == "iap teacher " + " ".join(
        [TINY[0], "--hidden", "8", *TINY[1:-2]]
    )
    assert (out / "curve.png").exists()
    assert "already holds a run" in error_of(iap_here("teacher", *TINY, "--out", out, code=1))
    config = out / "config.json"
    config.write_text(config.read_text().replace('"iterations": 1', '"iterations": 2'))
    iap_here("teacher", "--resume", out)
    assert load(out / "last.policy").facts["iterations"] == 2


def test_one_task_or_one_environment_is_needed():
    assert "give either a task or --env ID" in error_of(iap_here("teacher", code=1))
    assert "give either a task or --env ID" in error_of(iap_here("teacher", "walker-walk", "--env", "x", code=1))
    assert "there is no teacher 'walk-state-teacher'" in error_of(iap_here("teacher", "walk", code=1))
