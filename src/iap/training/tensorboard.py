"""Metrics as TensorBoard events, written at once by the calling thread, so that a full disk raises an error here."""

import os
import struct
import time
from collections.abc import Mapping
from pathlib import Path

from tensorboardX.proto.event_pb2 import Event  # pyright: ignore[reportAttributeAccessIssue]
from tensorboardX.proto.summary_pb2 import Summary  # pyright: ignore[reportAttributeAccessIssue]
from tensorboardX.record_writer import masked_crc32c

FORMAT = "brain.Event:2"


class EventFile:
    """A file of events; every process that resumes a run starts another one."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"events.out.tfevents.{int(time.time()):010d}.{os.getpid()}"
        self._append(Event(wall_time=time.time(), file_version=FORMAT))

    def add(self, step: int, values: Mapping[str, float]) -> None:
        """Add the values of curves at a step."""
        points = [Summary.Value(tag=name, simple_value=value) for name, value in values.items()]
        self._append(Event(wall_time=time.time(), step=step, summary=Summary(value=points)))

    def _append(self, event: Event) -> None:
        content = event.SerializeToString()
        length = struct.pack("<Q", len(content))
        sums = [struct.pack("<I", masked_crc32c(part)) for part in (length, content)]
        with self.path.open("ab") as file:
            file.write(b"".join([length, sums[0], content, sums[1]]))
