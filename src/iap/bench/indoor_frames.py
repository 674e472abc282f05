"""Time of a frame and of a whole step in a generated apartment of 100,000 triangles."""

import json
import sys
from collections.abc import Sequence
from time import process_time
from typing import Any

import numpy as np

from iap.bench.frames import milliseconds
from iap.bench.one_core import run_on_one_core, send
from iap.envs.core import make_env
from iap.envs.indoor.scenes.source import generated_folder
from iap.envs.indoor.task import ROBOTS

SIZE, FACES, SCENE = (64, 64), 100_000, 0
STEPS = 200

Row = dict[str, Any]


def bench_indoor_frames(rounds: int = 3) -> list[Row]:
    """Processor time on one core: of a frame alone, and of a step of `iap/PointNav-v0` with its frame.

    The frame is the median of those on the teacher's way; the steps a second are the mean over the same way. Each row
    is the best of `rounds` processes. The first run compiles the scene and finds what can be seen from where, which
    takes about a minute.
    """
    request = {"faces": FACES, "size": list(SIZE), "steps": STEPS}
    results = [next(iter(run_on_one_core(__name__, request=request))) for _ in range(rounds)]
    return [
        {**rows[0], "frame_ms": min(r["frame_ms"] for r in rows), "steps_per_s": max(r["steps_per_s"] for r in rows)}
        for rows in zip(*results, strict=True)
    ]


def measure(faces: int, size: Sequence[int], steps: int) -> list[Row]:
    """The rows, one for each robot."""
    return [_measure(robot, faces, size, steps) for robot in ROBOTS]


def _measure(robot: str, faces: int, size: Sequence[int], steps: int) -> Row:
    scene = str(generated_folder(SCENE, faces))
    env = make_env("iap/PointNav-v0", robot=robot, scene=scene, size=tuple(size), distance_m=(6.0, 20.0))
    task: Any = env.unwrapped
    env.reset(seed=0)
    frames, spent, done = [], 0.0, 0
    while done < steps:
        action = task.label().action
        start = process_time()
        _, _, terminated, truncated, _ = env.step(action)
        spent, done = spent + process_time() - start, done + 1
        frames.append(milliseconds(lambda _: task.robot.image(), range(1), warm_up=0))
        if terminated or truncated:
            env.reset(seed=done)
    env.close()
    shown = "×".join(map(str, size))
    frame_ms = float(np.median(frames))
    return {"robot": robot, "faces": faces, "size": shown, "frame_ms": frame_ms, "steps_per_s": steps / spent}


if __name__ == "__main__":
    send(measure(**json.load(sys.stdin)))
