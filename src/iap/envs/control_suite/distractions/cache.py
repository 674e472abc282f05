"""Pictures that were decoded, kept as long as there is room; one for all environments of a process."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock

import numpy as np
from jaxtyping import UInt8

ROOM_BYTES = 256 * 2**20

Picture = UInt8[np.ndarray, "... side side 3"]


class Cache:
    """The last pictures asked for, up to so many bytes."""

    def __init__(self, room_bytes: int = ROOM_BYTES) -> None:
        self._room_bytes = room_bytes
        self._taken_bytes = 0
        self._pictures: OrderedDict[Hashable, Picture] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], Picture]) -> Picture:
        """The picture of this name, made if it is not there; not to be written to."""
        with self._lock:
            if key not in self._pictures:
                picture = make()
                picture.flags.writeable = False
                self._pictures[key] = picture
                self._taken_bytes += picture.nbytes
                while self._taken_bytes > self._room_bytes and len(self._pictures) > 1:
                    self._taken_bytes -= self._pictures.popitem(last=False)[1].nbytes
            self._pictures.move_to_end(key)
            return self._pictures[key]


PICTURES = Cache()
