"""Jobs in the environment with faults, thetas for them, and exact comparison of results."""

import json
import math
import re
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from hazards import ACTIONS, SENSORS, SIDE

from iap.policies import MLP, Blind, Normaliser, PolicyConfig, Rank, blocks
from iap.rollouts import EnvConfig, Episode, Job

ENCODER = Rank(patch=2, stride=2, top_k=3)
SEEDS = [[0, 1], [2, 3], [4, 5], [6, 7]]


def policy_config(**options: Any) -> PolicyConfig:
    return PolicyConfig(
        **{"image_shape": (SIDE, SIDE, 1), "sensors": SENSORS, "actions": ACTIONS, "encoder": ENCODER} | options
    )


def blind_job(faults: Mapping[int, str] | None = None, markers: Path | str = "", **options: Any) -> Job:
    """A job with a blind policy, which starts fast; faults and options are those of the environment."""
    env = EnvConfig.of("hazards:Hazard-v0", faults=tuple((faults or {}).items()), markers=str(markers), **options)
    return Job(env, policy_config(encoder=Blind(), controller=MLP((4,))))


def draw_thetas(job: Job, count: int = len(SEEDS)) -> np.ndarray:
    size = blocks(job.policy)[-1].stop
    return np.random.default_rng(1).normal(size=(count, size)).astype(np.float32)


def draw_normaliser(job: Job) -> Normaliser:
    rng = np.random.default_rng(2)
    size = job.policy.inputs_size
    return Normaliser(50, rng.normal(size=size), 50 * rng.uniform(0.5, 2, size))


def to_bits(episodes: list[list[Episode]]) -> list[list[tuple]]:
    """The whole content of the episodes, for exact comparison."""
    return [
        [
            (e.seed, e.total.hex(), e.steps, e.moments.count, e.moments.mean.tobytes(), e.moments.m2.tobytes(), e.error)
            for e in own
        ]
        for own in episodes
    ]


def check_failures(found: list[list[Episode]], expected: list[list[tuple]], errors: Mapping[int, str]) -> None:
    """Check that exactly these seeds failed, with errors that match, and that the others are as expected."""
    for episodes, rows, expected_rows in zip(found, to_bits(found), expected, strict=True):
        for episode, row, expected_row in zip(episodes, rows, expected_rows, strict=True):
            if episode.seed in errors:
                assert math.isnan(episode.total)
                assert (episode.steps, episode.moments.count) == (0, 0)
                assert re.match(errors[episode.seed], str(episode.error), re.DOTALL), episode.error
            else:
                assert row == expected_row


def wait_for(condition: Callable[[], Any], timeout_s: float = 30.0) -> Any:
    """Wait until the condition is true, and return its value."""
    end = time.monotonic() + timeout_s
    while not (value := condition()):
        assert time.monotonic() < end, "timed out"
        time.sleep(0.02)
    return value


def wait_for_marker(folder: Path, seed: int) -> dict[str, Any]:
    """Wait for the fault of that seed, and return the facts about the process of the worker."""
    text = wait_for(lambda: (folder / str(seed)).exists() and (folder / str(seed)).read_text())
    return json.loads(text)


def is_running(pid: int) -> bool:
    """Return whether the process exists and is not a zombie."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def descendants(pid: int) -> list[int]:
    """Return the ids of all processes that this one started, directly or not."""
    return [child.pid for child in psutil.Process(pid).children(recursive=True)]
