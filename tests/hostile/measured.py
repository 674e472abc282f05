"""A case in which only documented errors may occur, and time and memory are measured if asked for."""

import json
import os
import resource
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

REPORT = os.environ.get("IAP_FUZZ_REPORT")  # a file that gets one line of JSON a test: cases, slowest, memory


def report(row: dict[str, Any]) -> None:
    """Add a line to the file for measurements, if there is one."""
    if REPORT:
        with Path(REPORT).open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")


class Measured:
    """Runs cases and keeps what they took."""

    def __init__(self, what: str, errors: tuple[type[Exception], ...]) -> None:
        self._what, self._errors = what, errors
        self.accepted, self.reasons = 0, set[str]()
        self._cases, self._slowest_s = 0, 0.0
        self._before_kb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def run(self, seed: int, case: Callable[[], Any]) -> None:
        """One case; another error than the documented ones is raised with the seed that repeats it."""
        started = time.perf_counter()
        try:
            case()
            self.accepted += 1
        except self._errors as error:
            message = str(error)
            assert message.isprintable(), (self._what, seed, message[:300])
            assert len(message) < 6000, (self._what, seed, len(message))
            self.reasons.add(message)
        except Exception as error:
            raise AssertionError(f"{self._what}, seed {seed}: {type(error).__name__}: {error}") from error
        self._cases += 1
        self._slowest_s = max(self._slowest_s, time.perf_counter() - started)

    def finish(self) -> None:
        """Check the memory of all cases together, and report."""
        grown_mb = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - self._before_kb) / 1024
        row = {"what": self._what, "cases": self._cases, "accepted": self.accepted, "reasons": len(self.reasons)}
        report(row | {"slowest_s": round(self._slowest_s, 3), "memory_mb": round(grown_mb, 1)})
        assert grown_mb < 200
