"""Jobs in the hazardous environment, candidates for them, and what it means that results are the same."""

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

VISION = Rank(patch=2, stride=2, top_k=3)
SEEDS = [[0, 1], [2, 3], [4, 5], [6, 7]]


def spec_of(**options: Any) -> PolicyConfig:
    return PolicyConfig(
        **{"image_shape": (SIDE, SIDE, 1), "sensors": SENSORS, "actions": ACTIONS, "encoder": VISION} | options
    )


def policy_job(troubles: Mapping[int, str] | None = None, marks: Path | str = "", **options: Any) -> Job:
    """Blind, and so quickly started; the troubles are those of the environment."""
    env = EnvConfig.of("hazards:Hazard-v0", troubles=tuple((troubles or {}).items()), marks=str(marks), **options)
    return Job(env, spec_of(encoder=Blind(), controller=MLP((4,))))


def thetas_of(job: Job, count: int = len(SEEDS)) -> np.ndarray:
    size = blocks(job.policy)[-1].stop
    return np.random.default_rng(1).normal(size=(count, size)).astype(np.float32)


def normaliser_of(job: Job) -> Normaliser:
    rng = np.random.default_rng(2)
    size = job.policy.inputs_size
    return Normaliser(50, rng.normal(size=size), 50 * rng.uniform(0.5, 2, size))


def bits(episodes: list[list[Episode]]) -> list[list[tuple]]:
    """All that an episode holds, to the last bit."""
    return [
        [
            (e.seed, e.total.hex(), e.steps, e.moments.count, e.moments.mean.tobytes(), e.moments.m2.tobytes(), e.error)
            for e in own
        ]
        for own in episodes
    ]


def check_failures(found: list[list[Episode]], truth: list[list[tuple]], said: Mapping[int, str]) -> None:
    """These seeds failed with errors like these, and the others came out as ever."""
    for episodes, rows, expected in zip(found, bits(found), truth, strict=True):
        for episode, row, wanted in zip(episodes, rows, expected, strict=True):
            if episode.seed in said:
                assert math.isnan(episode.total)
                assert (episode.steps, episode.moments.count) == (0, 0)
                assert re.match(said[episode.seed], str(episode.error), re.DOTALL), episode.error
            else:
                assert row == wanted


def wait_for(what: Callable[[], Any], within_s: float = 30.0) -> Any:
    """What is found once it is there."""
    end = time.monotonic() + within_s
    while not (found := what()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)
    return found


def mark_of(folder: Path, seed: int) -> dict[str, Any]:
    """What a worker wrote about itself when it came to the trouble of that seed."""
    text = wait_for(lambda: (folder / str(seed)).exists() and (folder / str(seed)).read_text())
    return json.loads(text)


def is_running(pid: int) -> bool:
    """Whether there is such a process, and no one has ended it."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def children_of(pid: int) -> list[int]:
    """The processes that it started, and those that they did."""
    return [child.pid for child in psutil.Process(pid).children(recursive=True)]
