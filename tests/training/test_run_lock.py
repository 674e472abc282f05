import json
import socket
import subprocess
import sys

import pytest

from iap.training.config import config_to_json
from iap.training.presets import preset
from iap.training.run_directory import RunDirectory, RunError
from iap.training.run_lock import FILE, LockedError, lock_folder

HOLDER = """
import sys, time
from pathlib import Path
from iap.training.run_lock import lock_folder
with lock_folder(Path(sys.argv[1])):
    print("locked", flush=True)
    time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lock of `tmp_path / "run"`."""
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "run")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "locked\n"
        yield process
        process.kill()


def test_a_second_process_is_refused_with_the_first_ones_id_and_host_until_it_is_killed(tmp_path, holder):
    run = RunDirectory(tmp_path / "run")
    with pytest.raises(RunError, match=rf"in use by process {holder.pid} on {socket.gethostname()}"):
        RunDirectory.create(run.path, preset("seek"))
    assert [path.name for path in run.path.iterdir()] == [FILE]
    holder.kill()
    holder.wait()
    with run.locked():
        RunDirectory.create(run.path, preset("seek"))
    assert [path.name for path in run.path.iterdir()] == ["config.json"]


def test_a_lock_of_another_host_is_refused_with_what_to_do(tmp_path):
    (tmp_path / FILE).write_text(json.dumps({"pid": 12, "host": "elsewhere.example"}))
    with pytest.raises(LockedError, match=r"process 12 on the host elsewhere.example.*delete"), lock_folder(tmp_path):
        pass
    (tmp_path / FILE).write_bytes(b"\0damaged")
    with lock_folder(tmp_path):
        assert json.loads((tmp_path / FILE).read_text())["host"] == socket.gethostname()


def test_the_process_that_holds_a_lock_may_take_it_again(tmp_path):
    with lock_folder(tmp_path / "a"), lock_folder(tmp_path / "a" / ".." / "a"):
        pass
    assert not (tmp_path / "a").exists()


def test_a_link_in_place_of_the_lock_is_not_followed(tmp_path):
    (tmp_path / "target").write_text("kept")
    (tmp_path / FILE).symlink_to(tmp_path / "target")
    with pytest.raises(RunError, match="cannot be written"), RunDirectory(tmp_path).locked():
        pass
    assert (tmp_path / "target").read_text() == "kept"


def test_temporary_files_of_a_killed_writer_are_removed(tmp_path):
    RunDirectory.create(tmp_path / "run", preset("seek"))
    (tmp_path / "run" / "distillation").mkdir()
    for folder in (tmp_path / "run", tmp_path / "run" / "distillation"):
        (folder / f".{'0' * 16}.part").touch()
    with RunDirectory(tmp_path / "run").locked():
        assert sorted(path.name for path in (tmp_path / "run").rglob("*")) == ["config.json", "distillation", FILE]


def test_configs_that_ask_for_more_than_any_run_needs_are_refused(tmp_path):
    data = config_to_json(preset("seek"))
    run = RunDirectory.create(tmp_path / "run", preset("seek"))
    too_much = [
        {"iterations": 10**12},
        {"max_steps": 10**12},
        {"strategy": data["strategy"] | {"population": 10**6 * 2}},
        {"env": {"kind": "env", "id": "iap/Seek-v0", "kwargs": [["max_episode_steps", 10**12]]}},
        {"policy": data["policy"] | {"controller": {"kind": "mlp", "hidden": [10**5, 10**5]}}},
    ]
    for change in too_much:
        run.config_file.write_text(json.dumps(data | change))
        with pytest.raises(RunError, match=r"config\.json cannot be used: .*at most|from -1000000 to 1000000"):
            RunDirectory.open(run.path)
