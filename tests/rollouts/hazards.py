"""A tiny environment in which things go wrong on purpose: `hazards:Hazard-v0`, for workers to import."""

import ctypes
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import psutil
from gymnasium import spaces

SIDE, SENSORS, ACTIONS = 8, 3, 2


class Hazard(gymnasium.Env):
    """A point that is pushed about at random and by the actions; the image shows its place, sensors its velocity.

    In episodes whose seed has one of the `troubles`, the fourth step does what it says: once in all, if there is a
    folder for `marks`, else every time. The trouble of seed −1 comes in building.
    """

    def __init__(self, troubles: tuple[tuple[int, str], ...] = (), marks: str = "", pause_s: float = 0.0) -> None:
        self.observation_space = spaces.Dict(
            image=spaces.Box(0, 255, (SIDE, SIDE, 1), np.uint8),
            sensors=spaces.Box(-np.inf, np.inf, (SENSORS,), np.float32),
        )
        self.action_space = spaces.Box(-1, 1, (ACTIONS,), np.float32)
        self.looks: list[bool] = []
        self._looking = True
        self._troubles, self._marks, self._pause_s = dict(troubles), marks, pause_s
        self._strike(-1)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        assert seed is not None
        self._seed, self._steps = seed, 0
        self._place, self._velocity = self.np_random.uniform(0, SIDE, 2), self.np_random.normal(size=2)
        self.looks = []
        self._image = self._draw()
        return self._observe(), {}

    def step(self, action: np.ndarray):
        self._steps += 1
        time.sleep(self._pause_s)
        reward = 1.0
        if self._steps == 4:
            reward = self._strike(self._seed)
        self._velocity = 0.9 * self._velocity + action + 0.3 * self.np_random.normal(size=2)
        self._place = (self._place + self._velocity) % SIDE
        centre = SIDE / 2
        reward -= float(np.hypot(*(self._place - centre)))
        return self._observe(), reward, False, self._steps >= 6 + self._seed % 5, {}

    def look(self, wanted: bool) -> None:
        self._looking = wanted
        self.looks.append(wanted)

    def _observe(self) -> dict[str, np.ndarray]:
        if self._looking:
            self._image = self._draw()
        return {"image": self._image, "sensors": np.array([*self._velocity, self._steps], np.float32)}

    def _draw(self) -> np.ndarray:
        image = np.zeros((SIDE, SIDE, 1), np.uint8)
        image[tuple(self._place.astype(int) % SIDE)] = 255
        return image

    def _strike(self, seed: int) -> float:
        """Do what is to be done, and give the reward for it."""
        if (trouble := self._troubles.get(seed)) is None:
            return 1.0
        if self._marks:
            try:
                with (Path(self._marks) / str(seed)).open("x") as mark:
                    mark.write(json.dumps(self_portrait()))
            except FileExistsError:
                return 1.0
        sys.stdout.write(f"about to {trouble}\n")
        result = TROUBLES[trouble]()
        return 1.0 if result is None else result


def self_portrait() -> dict[str, Any]:
    """What a worker has to say about itself."""
    return {
        "pid": os.getpid(),
        "memory_bytes": psutil.Process().memory_info().rss,
        "loaded": sorted({name.partition(".")[0] for name in sys.modules}),
        "cores": len(os.sched_getaffinity(0)),
        "limits": {name: value for name, value in os.environ.items() if name.endswith("_THREADS")},
    }


def _raise() -> None:
    raise LookupError("the env has lost its way")


def _wait_in_c() -> None:
    ctypes.PyDLL(None).sleep(1000)  # which, unlike CDLL, keeps Python's lock


def _segfault() -> None:
    ctypes.string_at(0)


def _leave_a_child() -> None:
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
    time.sleep(1000)


TROUBLES: dict[str, Callable[[], float | None]] = {
    "tell": lambda: None,
    "raise": _raise,
    "wait": lambda: time.sleep(1000),
    "wait in C": _wait_in_c,
    "segfault": _segfault,
    "exit": lambda: os._exit(3),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "leave a child": _leave_a_child,
    "give NaN": lambda: float("nan"),
    "give infinity": lambda: float("inf"),
}

gymnasium.register("Hazard-v0", "hazards:Hazard")
