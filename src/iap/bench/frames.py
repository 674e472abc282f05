"""How much faster a step with its frame is here than through dm_control's own renderer."""

import json
import sys
from collections.abc import Callable, Sequence
from statistics import median
from time import process_time
from typing import Any

import numpy as np

from iap.bench.one_core import answer, on_one_core
from iap.envs.control_suite.frames import CAMERA
from iap.envs.control_suite.loading import loaded
from iap.envs.core import make_env

SIZES = ((100, 100), (240, 320))
LOOKS: dict[str, dict[str, Any]] = {
    "none": {},
    "medium static": {"difficulty": "medium"},
    "medium dynamic": {"difficulty": "medium", "dynamic": True},
}
FRAMES, RESETS = {"dm_control": 30, "iap": 300}, 10
WARM_UP = 5

Row = dict[str, Any]


def bench_frames(
    tasks: Sequence[str] = ("cheetah-run",), sizes: Sequence[tuple[int, int]] = SIZES, rounds: int = 3
) -> list[Row]:
    """Milliseconds of the processor for one step of the task and its frame: medians, the best of `rounds` turns each.

    dm_control steps and renders as it does by default, without distractions; each turn is a process of its own on one
    core, since two renderers in one process would change each other's pixels.
    """
    question = {"tasks": list(tasks), "sizes": [list(size) for size in sizes]}
    turns: dict[str, list[list[Row]]] = {"dm_control": [], "iap": []}
    for _ in range(rounds):
        for method, answers in turns.items():
            [rows] = on_one_core(__name__, method, question=question)
            answers.append(rows)
    theirs, ours = ([_best(each) for each in zip(*answers, strict=True)] for answers in turns.values())
    their_ms = {(row["task"], row["size"]): row["frame_ms"] for row in theirs}
    return [_compared(row, their_ms[row["task"], row["size"]]) for row in ours]


def measure(method: str, tasks: Sequence[str], sizes: Sequence[Sequence[int]]) -> list[Row]:
    """What one method takes in each case."""
    measured = _dm_control if method == "dm_control" else _iap
    return [row for task in tasks for size in sizes for row in measured(task, size)]


def _dm_control(task: str, size: Sequence[int]) -> list[Row]:
    with loaded(task, seed=0) as env:
        env.reset()
        spec = env.action_spec()
        actions = np.random.default_rng(0).uniform(spec.minimum, spec.maximum, (FRAMES["dm_control"], *spec.shape))

        def frame(action: np.ndarray) -> None:
            env.step(action)
            env.physics.render(height=size[0], width=size[1], camera_id=CAMERA)

        return [{"task": task, "size": _name(size), "frame_ms": _milliseconds(frame, actions)}]


def _iap(task: str, size: Sequence[int]) -> list[Row]:
    return [{"task": task, "size": _name(size), "distractions": look, **_look_ms(task, size, look)} for look in LOOKS]


def _look_ms(task: str, size: Sequence[int], look: str) -> dict[str, float]:
    env = make_env(f"iap/{task}-v0", size=size, action_repeat=1, **LOOKS[look])
    reset_ms = _milliseconds(lambda seed: env.reset(seed=int(seed)), range(RESETS))
    space: Any = env.action_space
    actions = np.random.default_rng(0).uniform(space.low, space.high, (FRAMES["iap"], *space.shape))
    frame_ms = _milliseconds(env.step, actions.astype(np.float32))
    env.close()
    return {"reset_ms": reset_ms, "frame_ms": frame_ms}


def _compared(row: Row, dm_control_ms: float) -> Row:
    return {**row, "dm_control_ms": dm_control_ms, "ratio": dm_control_ms / row["frame_ms"]}


def _name(size: Sequence[int]) -> str:
    return "×".join(map(str, size))


def _milliseconds(call: Callable[[Any], object], arguments: Sequence[Any] | np.ndarray) -> float:
    times = []
    for argument in arguments:
        begun = process_time()
        call(argument)
        times.append(process_time() - begun)
    return 1000 * median(times[WARM_UP:])


def _best(rows: Sequence[Row]) -> Row:
    fastest = {key: min(row[key] for row in rows) for key in rows[0] if key.endswith("_ms")}
    return {**rows[0], **fastest}


if __name__ == "__main__":
    answer(measure(sys.argv[1], **json.load(sys.stdin)))
