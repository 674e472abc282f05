import struct

import pytest
from tensorboardX.proto.event_pb2 import Event  # pyright: ignore[reportAttributeAccessIssue]
from tensorboardX.record_writer import RecordWriter

from iap.training.tensorboard import EventFile


def record_contents(path) -> list[bytes]:
    """The contents of the records of a file: each lies between its length with a checksum, and a checksum."""
    data, contents = path.read_bytes(), []
    while data:
        (length,) = struct.unpack("<Q", data[:8])
        contents.append(data[12 : 12 + length])
        data = data[16 + length :]
    return contents


def test_metrics_are_read_as_they_were_written(tmp_path):
    events = EventFile(tmp_path / "new")
    events.add(3, {"best": 1.5, "mean": -0.25})
    events.add(4, {"best": 2.0})
    first, *others = [Event.FromString(content) for content in record_contents(events.path)]
    assert first.file_version == "brain.Event:2"
    assert [(e.step, {v.tag: v.simple_value for v in e.summary.value}) for e in others] == [
        (3, {"best": 1.5, "mean": -0.25}),
        (4, {"best": 2.0}),
    ]


def test_records_equal_those_of_tensorboardx_byte_by_byte(tmp_path):
    events = EventFile(tmp_path)
    events.add(1, {"best": 1.0})
    writer = RecordWriter(str(tmp_path / "theirs"))
    for content in record_contents(events.path):
        writer.write(content)
    writer.close()
    assert events.path.read_bytes() == (tmp_path / "theirs").read_bytes()


def test_a_folder_that_cannot_be_written_is_an_error_at_once(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"Not a directory|File exists"):
        EventFile(tmp_path / "file" / "events")
