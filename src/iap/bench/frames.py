"""Time of a control-suite step with its frame, compared with dm_control's own renderer."""

import json
import sys
from collections.abc import Callable, Sequence
from statistics import median
from time import process_time
from typing import Any

import numpy as np

from iap.bench.one_core import run_on_one_core, send
from iap.envs.control_suite.frames import CAMERA
from iap.envs.control_suite.loading import loaded
from iap.envs.core import make_env

SIZES = ((100, 100), (240, 320))
DISTRACTIONS: dict[str, dict[str, Any]] = {
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
    """Processor time of one step and its frame in milliseconds: medians, the best of `rounds` processes each.

    dm_control steps and renders with its default settings, without distractions. Each renderer has its own process on
    one core, since two renderers in one process change each other's pixels.

    Args:
        tasks: names of control-suite tasks.
        sizes: (height, width) of the frames.
        rounds: number of processes for each renderer, in turn.
    """
    request = {"tasks": list(tasks), "sizes": [list(size) for size in sizes]}
    measured: dict[str, list[list[Row]]] = {"dm_control": [], "iap": []}
    for _ in range(rounds):
        for method, results in measured.items():
            [rows] = run_on_one_core(__name__, method, request=request)
            results.append(rows)
    theirs, ours = ([_best(each) for each in zip(*results, strict=True)] for results in measured.values())
    their_ms = {(row["task"], row["size"]): row["frame_ms"] for row in theirs}
    return [_compared(row, their_ms[row["task"], row["size"]]) for row in ours]


def measure(method: str, tasks: Sequence[str], sizes: Sequence[Sequence[int]]) -> list[Row]:
    """The rows of one renderer."""
    measure_one = _measure_dm_control if method == "dm_control" else _measure_iap
    return [row for task in tasks for size in sizes for row in measure_one(task, size)]


def _measure_dm_control(task: str, size: Sequence[int]) -> list[Row]:
    with loaded(task, seed=0) as env:
        env.reset()
        spec = env.action_spec()
        actions = np.random.default_rng(0).uniform(spec.minimum, spec.maximum, (FRAMES["dm_control"], *spec.shape))

        def frame(action: np.ndarray) -> None:
            env.step(action)
            env.physics.render(height=size[0], width=size[1], camera_id=CAMERA)

        return [{"task": task, "size": _name(size), "frame_ms": milliseconds(frame, actions)}]


def _measure_iap(task: str, size: Sequence[int]) -> list[Row]:
    return [
        {"task": task, "size": _name(size), "distractions": name, **_times_ms(task, size, options)}
        for name, options in DISTRACTIONS.items()
    ]


def _times_ms(task: str, size: Sequence[int], options: dict[str, Any]) -> dict[str, float]:
    env = make_env(f"iap/{task}-v0", size=size, action_repeat=1, **options)
    reset_ms = milliseconds(lambda seed: env.reset(seed=int(seed)), range(RESETS))
    space: Any = env.action_space
    actions = np.random.default_rng(0).uniform(space.low, space.high, (FRAMES["iap"], *space.shape))
    frame_ms = milliseconds(env.step, actions.astype(np.float32))
    env.close()
    return {"reset_ms": reset_ms, "frame_ms": frame_ms}


def _compared(row: Row, dm_control_ms: float) -> Row:
    return {**row, "dm_control_ms": dm_control_ms, "ratio": dm_control_ms / row["frame_ms"]}


def _name(size: Sequence[int]) -> str:
    return "×".join(map(str, size))


def milliseconds(call: Callable[[Any], object], arguments: Sequence[Any] | np.ndarray, warm_up: int = WARM_UP) -> float:
    """The median processor time of a call, without the first ones."""
    times = []
    for argument in arguments:
        start = process_time()
        call(argument)
        times.append(process_time() - start)
    return 1000 * median(times[warm_up:])


def _best(rows: Sequence[Row]) -> Row:
    fastest = {key: min(row[key] for row in rows) for key in rows[0] if key.endswith("_ms")}
    return {**rows[0], **fastest}


if __name__ == "__main__":
    send(measure(sys.argv[1], **json.load(sys.stdin)))
