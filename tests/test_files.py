import os
import secrets
from pathlib import Path

import pytest

from iap._files import append_text, open_regular, remove_leftovers, write_whole


def test_a_link_at_a_temporary_name_is_not_followed(tmp_path, monkeypatch):
    """A link at the name that versions before used, and at the random one if somebody guessed it."""
    target = tmp_path / "target"
    target.write_text("kept")
    for name in (f".a.txt.{os.getpid()}.part", f".{'0' * 16}.part"):
        (tmp_path / name).symlink_to(target)
    write_whole(tmp_path / "a.txt", b"written")
    assert target.read_text() == "kept"
    monkeypatch.setattr(secrets, "token_hex", lambda size: "00" * size)
    with pytest.raises(FileExistsError):
        write_whole(tmp_path / "a.txt", b"again")
    assert (target.read_text(), (tmp_path / "a.txt").read_bytes()) == ("kept", b"written")


def test_a_link_in_place_of_the_file_is_replaced_and_not_followed(tmp_path):
    (tmp_path / "target").write_text("kept")
    (tmp_path / "link").symlink_to(tmp_path / "target")
    with pytest.raises(OSError, match="symbolic links"):
        append_text(tmp_path / "link", "more")
    write_whole(tmp_path / "link", b"new")
    assert ((tmp_path / "target").read_text(), (tmp_path / "link").read_text()) == ("kept", "new")


def test_leftovers_of_this_and_of_older_versions_are_removed_and_nothing_else(tmp_path):
    left = [f".{'a1' * 8}.part", f".{'a1' * 8}.part.mp4", ".best.policy.4711.part", ".clip.12.part.gif"]
    kept = ["best.policy", ".part", ".notes.part", "a.part", ".hidden"]
    for name in left + kept:
        (tmp_path / name).touch()
    remove_leftovers(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(kept)


def test_the_file_and_its_folder_are_brought_to_the_disk(tmp_path, monkeypatch):
    synced, fsync = [], os.fsync

    def note(descriptor: int) -> None:
        synced.append(Path(f"/proc/self/fd/{descriptor}").readlink())
        fsync(descriptor)

    monkeypatch.setattr(os, "fsync", note)
    write_whole(tmp_path / "a.txt", b"x")
    assert [path.name.endswith(".part") for path in synced] == [True, False]
    assert synced[1] == tmp_path


def test_a_pipe_is_refused_without_waiting_for_it(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ValueError, match="not a regular file"), open_regular(tmp_path / "pipe", 100):
        pass
