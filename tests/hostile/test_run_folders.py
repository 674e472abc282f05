"""Run folders that were damaged or written by somebody else are refused with one documented error, or opened."""

import json
import random
from dataclasses import replace
from pathlib import Path

import pytest
from measured import Measured
from mutations import VALUES, cases, edited_bytes, edited_tensors, edited_tree, sealed

from iap.envs.registration import require_named
from iap.evolution import CMAES, OpenES
from iap.policies.serialization import PolicyFileError, load
from iap.rollouts import InlinePool
from iap.training.checkpoints import resume
from iap.training.config import TrainConfig, fit_to_env
from iap.training.loop import train
from iap.training.presets import preset
from iap.training.run_directory import RunDirectory, RunError

FILES = ("config.json", "checkpoint.safetensors", "metrics.jsonl", "command.txt", "best.policy")
COMMAND = "iap train seek --iterations 2"


def tiny(strategy) -> TrainConfig:
    """A run of two short iterations."""
    seek = preset("seek")
    once = TrainConfig(seek.env, seek.policy, strategy, evaluate_every=1, evaluate_episodes=1)
    return fit_to_env(replace(once, iterations=2, episodes=1, max_steps=2))


@pytest.fixture(scope="module", params=[OpenES(population=4), CMAES(population=4)], ids=["open-es", "cma-es"])
def contents(request, tmp_path_factory) -> dict[str, bytes]:
    """The files of a finished run."""
    path = tmp_path_factory.mktemp("run")
    config = tiny(request.param)
    run = RunDirectory.create(path, config, COMMAND)
    with InlinePool(config.job) as pool:
        train(config, pool, run, command=COMMAND)
    return {name: (path / name).read_bytes() for name in FILES}


def written(path: Path, contents: dict[str, bytes]) -> RunDirectory:
    path.mkdir(exist_ok=True)
    for name, content in contents.items():
        (path / name).write_bytes(content)
    return RunDirectory(path)


def open_all(path: Path) -> None:
    """All that `iap train --resume` and `iap eval` read before the first episode."""
    run, config = RunDirectory.open(path)
    try:
        require_named(config.env.id, None)
    except ValueError as error:  # which the command prints as it is
        raise RunError(str(error)) from error
    assert run.command is not None
    run.extend(config)
    progress = resume(config, run)
    assert progress is not None
    run.truncate_metrics(progress.iteration)
    load(run.policy_file("best"))


def mutated(rng: random.Random, name: str, content: bytes) -> bytes:
    """One file with random changes; half of the time consistent ones."""
    if rng.random() < 0.5 or name == "command.txt":
        return edited_bytes(rng, content)
    if name == "config.json":
        return json.dumps(edited_tree(rng, json.loads(content))).encode()
    if name == "metrics.jsonl":
        lines = content.decode().splitlines()
        at = rng.randrange(len(lines))
        lines[at] = json.dumps(edited_tree(rng, json.loads(lines[at])))
        return ("\n".join(lines) + "\n").encode()
    return edited_tensors(rng, content)


def test_mutated_run_folders_are_refused_with_one_documented_error_or_opened(contents, tmp_path):
    measured = Measured("run folders", (RunError, PolicyFileError))
    for seed in cases(200):
        rng = random.Random(seed)
        names = rng.sample(FILES, k=rng.choice([1, 1, 2]))
        changed = contents | {name: mutated(rng, name, contents[name]) for name in names}
        run = written(tmp_path / "run", changed)
        measured.run(seed, lambda path=run.path: open_all(path))
    measured.finish()
    assert measured.accepted > 0
    assert len(measured.reasons) > 20


def test_an_unchanged_folder_is_opened(contents, tmp_path):
    open_all(written(tmp_path / "run", contents).path)


@pytest.mark.parametrize("name", ["checkpoint.safetensors", "best.policy"])
def test_every_flipped_bit_of_a_checkpoint_and_of_a_policy_is_found(contents, name, tmp_path):
    content = contents[name]
    rng = random.Random(0)
    for seed in cases(60):
        at = rng.randrange(len(content))
        flipped = bytearray(content)
        flipped[at] ^= 1 << rng.randrange(8)
        run = written(tmp_path / "run", contents | {name: bytes(flipped)})
        with pytest.raises((RunError, PolicyFileError)):
            open_all(run.path)
        assert seed >= 0


def test_an_edited_iteration_of_a_checkpoint_is_refused_with_and_without_its_checksum(contents, tmp_path):
    content = contents["checkpoint.safetensors"]
    length = int.from_bytes(content[:8], "little")
    header, data = json.loads(content[8 : 8 + length]), content[8 + length :]
    facts = json.loads(header["__metadata__"]["facts"])
    header["__metadata__"]["facts"] = json.dumps(facts | {"iteration": 1})
    edited = sealed(header, data)
    run = written(tmp_path / "run", contents | {"checkpoint.safetensors": edited})
    with pytest.raises(RunError, match="iteration must be that of its search, 2, not 1"):
        open_all(run.path)
    unsealed = content.replace(b'\\"iteration\\": 2', b'\\"iteration\\": 1')
    assert unsealed != content
    run = written(tmp_path / "run", contents | {"checkpoint.safetensors": unsealed})
    with pytest.raises(RunError, match="is damaged: its content does not have its checksum"):
        open_all(run.path)


def test_messages_about_a_folder_are_printable_and_short(contents, tmp_path):
    data = json.loads(contents["config.json"])
    for value in VALUES:
        changed = json.dumps(data | {"strategy": value, "\x1b[31m" + "y" * 100_000: value}).encode()
        with pytest.raises(RunError) as caught:
            open_all(written(tmp_path / "run", contents | {"config.json": changed}).path)
        assert str(caught.value).isprintable()
        assert len(str(caught.value)) < len(str(tmp_path)) + 400


def test_a_module_that_a_config_names_is_not_imported_unless_it_is_named(contents, tmp_path, monkeypatch):
    (tmp_path / "trap.py").write_text("raise SystemExit('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))
    data = json.loads(contents["config.json"])
    data["env"]["id"] = "trap:Trap-v0"
    run = written(tmp_path / "run", contents | {"config.json": json.dumps(data).encode()})
    with pytest.raises(RunError, match="not imported because of a file"):
        open_all(run.path)
    with pytest.raises(ValueError, match="--env must be trap:Trap-v0, the environment of the run"):
        require_named("trap:Trap-v0", "iap/Seek-v0")
    with pytest.raises(SystemExit, match="imported"):
        require_named("trap:Trap-v0", "trap:Trap-v0")
