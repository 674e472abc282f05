"""How long it takes from an image to the scores of its patches, by each method, on one core, in one run.

Measured in child processes bound to one core and one thread before NumPy is loaded: one for the times, and one for the
memory, whose allocator gives every large block back at once, so that a peak is a peak.
"""

import gc
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

import numpy as np

from iap.attention import (
    KERNELS,
    Kernel,
    Positions,
    as_pixels,
    exact_scores,
    extract,
    featurise,
    grid_of,
    place,
    project,
    rank_scores,
)
from iap.bench.one_core import answer, on_one_core

Method = Literal["exact", "numpy", "jax", "torch", "compiled"]
METHODS: tuple[Method, ...] = get_args(Method)
D = 4  # dimensions of queries and keys
SECONDS_PER_ROW = 0.7
MOST_REPEATS, FEWEST_REPEATS = 100, 5
SLOW_MS = 300.0  # what takes longer is run once

GIVE_BACK = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}


class Case(NamedTuple):
    """An RGB image and how it is cut into patches."""

    height: int
    width: int
    patch: int
    stride: int


class Job(NamedTuple):
    """One row to measure."""

    method: Method
    kernel: str
    patches: int


_CUTS = (Case(96, 96, 7, 4), Case(100, 100, 2, 2), Case(240, 320, 4, 4), Case(240, 320, 2, 2), Case(240, 320, 1, 1))
CASES = {grid_of(*case).patches: case for case in _CUTS}


def bench_attention(
    sizes: Sequence[int] = tuple(CASES),
    kernels: Sequence[str] = tuple(KERNELS),
    methods: Sequence[Method] = METHODS,
    progress: Callable[[str, float], None] = lambda _what, _share: None,
) -> list[dict[str, Any]]:
    """Rows `{"method", "kernel", "patches", "ms", "extra_mb"}`; PyTorch's only if it is installed.

    Exact softmax needs no feature map: it is measured once a size and listed under each softmax kernel.
    `extra_mb` is null where the system does not tell a process its peak memory.
    """
    for name, given, known in (("sizes", sizes, CASES), ("kernels", kernels, KERNELS), ("methods", methods, METHODS)):
        for value in given:
            if value not in known:
                raise ValueError(f"{name} must be of {', '.join(map(str, known))}, not {value}")
    jobs = [Job(method, kernel, size) for kernel in kernels for size in sizes for method in methods]
    jobs = [job for job in jobs if job.method != "torch" or find_spec("torch")]
    needed = list(dict.fromkeys(map(_measured_as, jobs)))
    measured: dict[str, dict[Job, float | None]] = {"time": {}, "memory": {}}
    for number, kind in enumerate(measured):
        answers = on_one_core(__name__, kind, question=needed, environment=GIVE_BACK if kind == "memory" else {})
        for job, result in zip(needed, answers, strict=True):
            measured[kind][job] = result
            done = (number + len(measured[kind]) / len(needed)) / len(measured)
            progress(f"{kind}: {job.method}, {job.kernel}, {job.patches:,} patches", done)
    return [
        {
            **job._asdict(),
            "ms": measured["time"][_measured_as(job)],
            "extra_mb": measured["memory"][_measured_as(job)],
        }
        for job in jobs
    ]


def _measured_as(job: Job) -> Job:
    return job._replace(kernel="positive") if job.method == "exact" and job.kernel != "relu" else job


def _work(kind: str) -> None:
    measure = {"time": _time_ms, "memory": _extra_mb}[kind]
    for job in json.load(sys.stdin):
        answer(measure(Job(*job)))


def _time_ms(job: Job) -> float:
    """The median time of a call, the first ones not counted."""
    run = _prepare(job)
    run()
    times = [_timed(run)]
    if times[0] < SLOW_MS:
        repeats = int(np.clip(1e3 * SECONDS_PER_ROW / times[0], FEWEST_REPEATS, MOST_REPEATS))
        times = [_timed(run) for _ in range(repeats)]
    return statistics.median(times)


def _timed(run: Callable[[], Any]) -> float:
    begun = time.perf_counter()
    run()
    return 1e3 * (time.perf_counter() - begun)


def _extra_mb(job: Job) -> float | None:
    """How far a call, with all that it keeps for the next one, raises the process's memory."""
    status, forget = Path("/proc/self/status"), Path("/proc/self/clear_refs")
    if not (status.exists() and os.access(forget, os.W_OK)):
        return None
    small = job._replace(patches=min(CASES)) if job.method == "exact" else job  # enough to load all code
    _prepare(small)()
    gc.collect()
    forget.write_text("5")  # sets the peak back to the present
    before = _status_kb(status, "VmRSS")
    _prepare(job)()
    return max(0, _status_kb(status, "VmHWM") - before) / 1024


def _status_kb(status: Path, name: str) -> int:
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith(name))


def _prepare(job: Job) -> Callable[[], Any]:
    """A call from image to scores, with what depends on the parameters alone done before."""
    case, kernel = CASES[job.patches], KERNELS[job.kernel]
    rng = np.random.default_rng(0)
    image = rng.integers(0, 256, (case.height, case.width, 3), dtype=np.uint8)
    c = case.patch**2 * 3
    query, key = (rng.standard_normal((2, c, D)) / np.sqrt(c)).astype(np.float32)
    match job.method:
        case "exact":
            return partial(_exact, kernel, case, image, query, key)
        case "numpy":
            return partial(_generic, kernel, case, image, query, key)
        case "jax":
            jitted = _jitted(kernel, case)
            return lambda: jitted(image, query, key).block_until_ready()
        case "torch":
            import torch

            torch.set_num_threads(1)
            weights = torch.from_numpy(query), torch.from_numpy(key)
            return lambda: _generic(kernel, case, torch.from_numpy(image), *weights)
        case "compiled":
            from iap.attention.kernels.ranker import Layer, compile_ranker

            return partial(
                compile_ranker(kernel, Layer(query), Layer(key), image.shape, patch=case.patch, stride=case.stride),
                image,
            )


@cache
def _jitted(kernel: Kernel, case: Case) -> Any:
    import jax

    return jax.jit(partial(_generic, kernel, case))


def _place(case: Case, image: Any) -> Any:
    return place(extract(as_pixels(image), case.patch, case.stride), grid_of(*case), Positions())


def _generic(kernel: Kernel, case: Case, image: Any, query: Any, key: Any) -> Any:
    placed = _place(case, image)
    return rank_scores(*featurise(kernel, project(placed, query), project(placed, key))).values


def _exact(kernel: Kernel, case: Case, image: Any, query: Any, key: Any) -> Any:
    placed = _place(case, image)
    return exact_scores(kernel, project(placed, query), project(placed, key)).values


if __name__ == "__main__":
    _work(sys.argv[1])
