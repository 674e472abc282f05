import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from safetensors.numpy import save_file
from training_cases import iap_here, outcome, run_here, tiny

from iap.policies.serialization import VERSION, file_version, load, save
from iap.training.config import config_from_json
from iap.training.run_directory import RunDirectory
from iap.training.upgrades import CHECKPOINT_VERSION
from iap.training.upgrades import VERSION as CONFIG_VERSION
from iap.zoo import zoo_file

OLD_HEADER = {
    "format": "iap-policy",
    "version": 1,
    "spec": {
        "kind": "policy",
        "image_shape": [4, 4, 1],
        "sensors": 1,
        "actions": 1,
        "vision": {"kind": "blind"},
        "controller": {"kind": "linear"},
    },
    "env_id": "iap/Seek-v0",
    "env_kwargs": {},
    "facts": {"seed": 7, "strategy": "CMAES", "screened": {"seed": 3}},
    "iap_version": "0.0.9",
}
OLD_FACTS = {"iteration": 4, "episodes": 48, "best": 0.5, "begun": {"taught": {"r2_drawn": 0.1, "r2_taught": 0.9}}}


def write_old_policy(path: Path) -> np.ndarray:
    theta = np.array([0.5, -1.0], np.float32)
    save_file({"theta": theta}, path, metadata={"policy": json.dumps(OLD_HEADER)})
    return theta


def write_old_config(path: Path) -> None:
    """The config of a run as version 1 wrote it: no version, and old names."""
    data = json.loads(path.read_text())
    del data["version"]
    renamed = {"random_search": "screen", "pretraining": "teach", "warm_start": "start_from"}
    renamed |= {"freeze_normaliser": "keep_statistics", "sigma_multipliers": "scales"}
    data = {renamed.get(key, key): value for key, value in data.items()}
    data["scales"] = {"kind": "scales", "vision": 1.0, "controller": 1.0, "low": 0.1}
    rank = {"kind": "rank", "patch": 2, "stride": 2, "keep": 16, "order": "pooled"}
    data["policy"] = {"kind": "policy", "image_shape": [32, 32, 3], "sensors": 0, "actions": 2, "vision": rank}
    path.write_text(json.dumps(data))


def contents(folder: Path) -> dict[str, bytes]:
    return {str(file.relative_to(folder)): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def test_a_policy_file_is_rewritten_with_the_same_content(tmp_path):
    file = tmp_path / "old.policy"
    theta = write_old_policy(file)
    before = load(file)
    assert f"{file}: version 1 → {VERSION}" in iap_here("upgrade", file).stdout
    after = load(file)
    assert file_version(file) == VERSION
    assert after.theta.tobytes() == theta.tobytes()
    assert (after.config, after.normaliser, after.facts) == (before.config, None, before.facts)
    assert after.facts == {"seed": 7, "strategy": "cma-es", "random_search": {"seed": 3}}
    assert after.iap_version == "0.0.9"


def test_a_run_is_upgraded_as_a_whole_and_can_be_resumed(tmp_path):
    expected = run_here(tiny(iterations=4), tmp_path / "expected")
    run = run_here(tiny(iterations=2), tmp_path / "runs" / "run")
    shutil.copy(expected.config_file, run.config_file)
    write_old_config(run.config_file)
    loaded = run.load_checkpoint()
    assert loaded is not None
    arrays, facts = loaded
    run.save_checkpoint(arrays, {key: value for key, value in facts.items() if key != "version"})
    shown = iap_here("upgrade", tmp_path / "runs").stdout
    assert f"{run.config_file}: version 1 → {CONFIG_VERSION}" in shown
    assert f"{run.checkpoint_file}: version 1 → {CHECKPOINT_VERSION}" in shown
    assert "2 of 4 files upgraded" in shown
    upgraded, new = (json.loads(config.read_text()) for config in (run.config_file, expected.config_file))
    assert upgraded["policy"].pop("image_format") is None  # which was not known
    del new["policy"]["image_format"]
    assert upgraded == new
    iap_here("train", "--resume", run.path, "--pool", "inline")
    assert outcome(run) == outcome(expected)


def test_the_facts_of_a_checkpoint_are_renamed(tmp_path):
    run = RunDirectory(tmp_path)
    run.save_checkpoint({"x": np.zeros(2, np.float32)}, OLD_FACTS)
    iap_here("upgrade", run.checkpoint_file)
    loaded = run.load_checkpoint()
    assert loaded is not None
    arrays, facts = loaded
    assert arrays["x"].tolist() == [0, 0]
    assert facts["start"] == {"pretrained": {"r2_initial": 0.1, "r2_pretrained": 0.9}}
    assert (facts["version"], facts["iteration"], facts["best"]) == (CHECKPOINT_VERSION, 4, 0.5)


def test_files_of_the_newest_version_are_not_touched(tmp_path):
    run_here(tiny(iterations=1), tmp_path / "run")
    save(tmp_path / "seek.policy", load(zoo_file("seek")))
    before = contents(tmp_path)
    assert "0 of 5 files upgraded" in iap_here("upgrade", tmp_path).stdout
    assert contents(tmp_path) == before


def test_a_file_that_cannot_be_read_is_one_line_and_the_others_are_upgraded(tmp_path):
    (tmp_path / "a.policy").write_bytes(b"nonsense")
    (tmp_path / "config.json").write_text('{"kind": "other"}')
    (tmp_path / "notes.txt").write_text("not a policy")
    write_old_policy(tmp_path / "b.policy")
    done = iap_here("upgrade", tmp_path, tmp_path / "notes.txt", tmp_path / "missing.policy", code=1)
    errors = done.stderr.splitlines()
    assert len(errors) == 4
    for name, line in zip(("a.policy", "config.json", "notes.txt", "missing.policy"), errors, strict=True):
        assert line.startswith("iap: ")
        assert str(tmp_path / name) in line
    assert "1 of 5 files upgraded, 4 not readable" in done.stdout
    assert file_version(tmp_path / "b.policy") == VERSION
    assert (tmp_path / "a.policy").read_bytes() == b"nonsense"


@pytest.mark.parametrize("version", [VERSION + 1])
def test_files_of_a_newer_version_are_refused_and_kept(tmp_path, version):
    file = tmp_path / "new.policy"
    header = OLD_HEADER | {"version": version}
    save_file({"theta": np.zeros(2, np.float32)}, file, metadata={"policy": json.dumps(header)})
    before = file.read_bytes()
    assert "made by a newer version of iap" in iap_here("upgrade", file, code=1).stderr
    assert file.read_bytes() == before


def test_upgraded_configs_are_those_that_are_read_from_the_old_files(tmp_path):
    run = run_here(tiny(iterations=1), tmp_path / "run")
    write_old_config(run.config_file)
    before = config_from_json(json.loads(run.config_file.read_text()))
    iap_here("upgrade", run.config_file)
    assert config_from_json(json.loads(run.config_file.read_text())) == before
