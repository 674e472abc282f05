"""A tiny environment with faults on purpose: `hazards:Hazard-v0`, imported by workers."""

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
FAULT_STEP = 4


class Hazard(gymnasium.Env):
    """A point moved by noise and by the actions. The image shows its position, the sensors hold its velocity.

    Args:
        faults: pairs of a seed and the name of a fault. The fault occurs at the fourth step of the episode of that
            seed; for seed −1, when the environment is built.
        markers: folder of marker files. With a folder, each fault occurs once and leaves a file; without, every time.
        pause_s: duration of a step.
    """

    def __init__(self, faults: tuple[tuple[int, str], ...] = (), markers: str = "", pause_s: float = 0.0) -> None:
        self.observation_space = spaces.Dict(
            image=spaces.Box(0, 255, (SIDE, SIDE, 1), np.uint8),
            sensors=spaces.Box(-np.inf, np.inf, (SENSORS,), np.float32),
        )
        self.action_space = spaces.Box(-1, 1, (ACTIONS,), np.float32)
        self.rendering_calls: list[bool] = []
        self._is_rendering = True
        self._faults, self._markers, self._pause_s = dict(faults), markers, pause_s
        self._cause_fault(-1)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None):
        super().reset(seed=seed)
        assert seed is not None
        self._seed, self._steps = seed, 0
        self._position, self._velocity = self.np_random.uniform(0, SIDE, 2), self.np_random.normal(size=2)
        self.rendering_calls = []
        self._image = self._render()
        return self._observe(), {}

    def step(self, action: np.ndarray):
        self._steps += 1
        time.sleep(self._pause_s)
        reward = 1.0
        if self._steps == FAULT_STEP:
            reward = self._cause_fault(self._seed)
        self._velocity = 0.9 * self._velocity + action + 0.3 * self.np_random.normal(size=2)
        self._position = (self._position + self._velocity) % SIDE
        centre = SIDE / 2
        reward -= float(np.hypot(*(self._position - centre)))
        return self._observe(), reward, False, self._steps >= 6 + self._seed % 5, {}

    def set_rendering(self, enabled: bool) -> None:
        self._is_rendering = enabled
        self.rendering_calls.append(enabled)

    def _observe(self) -> dict[str, np.ndarray]:
        if self._is_rendering:
            self._image = self._render()
        return {"image": self._image, "sensors": np.array([*self._velocity, self._steps], np.float32)}

    def _render(self) -> np.ndarray:
        image = np.zeros((SIDE, SIDE, 1), np.uint8)
        image[tuple(self._position.astype(int) % SIDE)] = 255
        return image

    def _cause_fault(self, seed: int) -> float:
        """Cause the fault of this seed, if there is one, and return the reward."""
        if (fault := self._faults.get(seed)) is None:
            return 1.0
        if self._markers:
            try:
                with (Path(self._markers) / str(seed)).open("x") as marker:
                    marker.write(json.dumps(describe_process()))
            except FileExistsError:
                return 1.0
        sys.stdout.write(f"about to {fault}\n")
        reward = FAULTS[fault]()
        return 1.0 if reward is None else reward


def describe_process() -> dict[str, Any]:
    """Facts about the process of a worker."""
    return {
        "pid": os.getpid(),
        "memory_bytes": psutil.Process().memory_info().rss,
        "loaded": sorted({name.partition(".")[0] for name in sys.modules}),
        "cores": len(os.sched_getaffinity(0)),
        "limits": {name: value for name, value in os.environ.items() if name.endswith("_THREADS")},
    }


def _raise() -> None:
    raise LookupError("fault of the environment")


def _hang_in_c() -> None:
    ctypes.PyDLL(None).sleep(1000)  # PyDLL, unlike CDLL, holds Python's global lock


def _segfault() -> None:
    ctypes.string_at(0)


def _spawn_child() -> None:
    subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1000)"])
    time.sleep(1000)


FAULTS: dict[str, Callable[[], float | None]] = {
    "continue": lambda: None,
    "raise": _raise,
    "hang": lambda: time.sleep(1000),
    "hang in C": _hang_in_c,
    "segfault": _segfault,
    "exit": lambda: os._exit(3),
    "kill": lambda: os.kill(os.getpid(), signal.SIGKILL),
    "spawn a child": _spawn_child,
    "return NaN": lambda: float("nan"),
    "return infinity": lambda: float("inf"),
}

gymnasium.register("Hazard-v0", "hazards:Hazard")
