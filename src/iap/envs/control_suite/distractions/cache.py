"""A cache of decoded images, shared by all environments of a process."""

from collections import OrderedDict
from collections.abc import Callable, Hashable
from threading import Lock

import numpy as np
from jaxtyping import UInt8

CAPACITY_BYTES = 256 * 2**20

Picture = UInt8[np.ndarray, "... side side 3"]


class Cache:
    """The most recently used images, up to a number of bytes."""

    def __init__(self, capacity_bytes: int = CAPACITY_BYTES) -> None:
        self._capacity_bytes = capacity_bytes
        self._used_bytes = 0
        self._pictures: OrderedDict[Hashable, Picture] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, make: Callable[[], Picture]) -> Picture:
        """The image with this key, made if it is not cached; it is read-only."""
        with self._lock:
            if key not in self._pictures:
                picture = make()
                picture.flags.writeable = False
                self._pictures[key] = picture
                self._used_bytes += picture.nbytes
                while self._used_bytes > self._capacity_bytes and len(self._pictures) > 1:
                    self._used_bytes -= self._pictures.popitem(last=False)[1].nbytes
            self._pictures.move_to_end(key)
            return self._pictures[key]


PICTURES = Cache()
