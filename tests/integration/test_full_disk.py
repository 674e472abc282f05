"""A full disk and folders that cannot be written: one line of error, and nothing that was saved is lost."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from training_cases import TINY, error_of, iap, iap_here, outcome, run_here, tiny

from iap.training.run_directory import RunDirectory

FULL = "No space left on device"
WORDS = ["train", "seek", "--strategy", "open-es", *TINY, "--pool", "inline"]


@pytest.fixture
def small_disk(tmp_path) -> Iterator[Path]:
    """A file system of 200 kB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=200k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("only root can mount a small disk, and not in every container")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Use all free space."""
    filler, free = folder / "filler", os.statvfs(folder)
    filler.write_bytes(bytes(free.f_bavail * free.f_frsize))
    return filler


def test_a_run_on_a_full_disk_stops_with_one_line_and_resumes_when_there_is_space(small_disk, tmp_path):
    expected = outcome(run_here(tiny(), tmp_path / "expected"))
    config = tiny(iterations=2)
    run = run_here(config, small_disk / "run")
    (small_disk / "run" / "config.json").write_bytes((tmp_path / "expected" / "config.json").read_bytes())
    checkpoint = run.checkpoint_file.read_bytes()

    filler = fill(small_disk)
    refused = error_of(iap("train", "--resume", run.path, "--pool", "inline", code=1))
    assert FULL in refused
    assert str(run.path) in refused
    assert run.checkpoint_file.read_bytes() == checkpoint
    assert not [path for path in run.path.iterdir() if path.suffix == ".part"]

    filler.unlink()
    iap_here("train", "--resume", run.path, "--pool", "inline")
    assert outcome(run) == expected


def test_a_disk_that_is_full_from_the_start_gives_one_line(small_disk):
    fill(small_disk)
    assert FULL in error_of(iap_here(*WORDS, "--out", small_disk / "run", code=1))


@pytest.mark.parametrize(
    "free_bytes", [pytest.param(8_000, marks=pytest.mark.slow), 20_000, pytest.param(40_000, marks=pytest.mark.slow)]
)
def test_a_run_can_be_resumed_whenever_the_disk_becomes_full(small_disk, tmp_path, free_bytes):
    expected = outcome(run_here(tiny(), tmp_path / "expected"))
    filler = fill(small_disk)
    os.truncate(filler, filler.stat().st_size - free_bytes)
    out = small_disk / "run"
    error_of(iap_here(*WORDS, "--out", out, code=1))
    filler.unlink()
    has_started = (out / "config.json").exists()
    iap_here(*(["train", "--resume", out, "--pool", "inline"] if has_started else [*WORDS, "--out", out]))
    assert outcome(RunDirectory(out)) == expected


def test_a_folder_that_cannot_be_made_gives_one_line(tmp_path):
    (tmp_path / "file").touch()
    refused = error_of(iap_here(*WORDS, "--out", tmp_path / "file" / "run", code=1))
    assert f"{tmp_path / 'file' / 'run'} cannot be written (Not a directory)" in refused


def test_a_folder_that_becomes_read_only_keeps_its_checkpoint(small_disk, tmp_path):
    run = run_here(tiny(), small_disk / "run")
    checkpoint = run.checkpoint_file.read_bytes()
    longer = (small_disk / "run" / "config.json").read_text().replace('"iterations": 4', '"iterations": 6')
    (small_disk / "run" / "config.json").write_text(longer)
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    refused = error_of(iap_here("train", "--resume", run.path, "--pool", "inline", code=1))
    assert f"{run.path} cannot be written (Read-only file system)" in refused
    assert run.checkpoint_file.read_bytes() == checkpoint
