"""Time and memory of the computation from an image to the scores of its patches, by several methods, in one run.

Measured in two child processes with one core and one thread: one for times and one for memory. In the second, the
allocator returns large blocks to the system as soon as they are freed, so that the peak memory is that of one call.
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
from iap.bench.one_core import run_on_one_core, send

Method = Literal["exact", "numpy", "jax", "torch", "compiled"]
METHODS: tuple[Method, ...] = get_args(Method)
D = 4  # dimensions of queries and keys
SECONDS_PER_ROW = 0.7
MOST_REPEATS, FEWEST_REPEATS = 100, 5
SLOW_MS = 300.0  # a call that takes longer is run once

# glibc: return freed blocks of 64 kB or more to the system at once
RETURN_MEMORY = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536"}


class Case(NamedTuple):
    """The size of an RGB image, and the side and stride of its patches."""

    height: int
    width: int
    patch: int
    stride: int


class Job(NamedTuple):
    """One measurement."""

    method: str
    kernel: str
    patches: int


_CASES = (Case(96, 96, 7, 4), Case(100, 100, 2, 2), Case(240, 320, 4, 4), Case(240, 320, 2, 2), Case(240, 320, 1, 1))
CASES = {grid_of(*case).patches: case for case in _CASES}


def bench_attention(
    sizes: Sequence[int] = tuple(CASES),
    kernels: Sequence[str] = tuple(KERNELS),
    methods: Sequence[str] = METHODS,
    progress: Callable[[str, float], None] = lambda _what, _share: None,
) -> list[dict[str, Any]]:
    """Rows `{"method", "kernel", "patches", "ms", "extra_mb"}`; those of PyTorch only if it is installed.

    Exact softmax does not depend on the feature map: it is measured once per size and listed under each softmax kernel.
    `extra_mb` is None on systems that do not report the peak memory of a process.

    Args:
        sizes: numbers of patches, of `CASES`.
        kernels: names of kernels.
        methods: of `METHODS`.
        progress: called with what is being measured and the share that is done.
    """
    for name, given, known in (("sizes", sizes, CASES), ("kernels", kernels, KERNELS), ("methods", methods, METHODS)):
        for value in given:
            if value not in known:
                raise ValueError(f"{name} must be among {', '.join(map(str, known))}, not {value}")
    available = [method for method in methods if method != "torch" or find_spec("torch")]
    jobs = [Job(method, kernel, size) for kernel in kernels for size in sizes for method in available]
    needed = list(dict.fromkeys(map(_measured_as, jobs)))
    measured: dict[str, dict[Job, float | None]] = {"time": {}, "memory": {}}
    for number, kind in enumerate(measured):
        environment = RETURN_MEMORY if kind == "memory" else {}
        results = run_on_one_core(__name__, kind, request=needed, environment=environment)
        for job, result in zip(needed, results, strict=True):
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
    """The measurement that a row takes its numbers from: exact softmax is measured for one kernel only."""
    return job._replace(kernel="positive") if job.method == "exact" and job.kernel != "relu" else job


def _measure_all(kind: str) -> None:
    measure = {"time": _time_ms, "memory": _extra_mb}[kind]
    for job in json.load(sys.stdin):
        send(measure(Job(*job)))


def _time_ms(job: Job) -> float:
    """The median time of a call, after one call to warm up."""
    run = _prepare(job)
    run()
    times = [_timed(run)]
    if times[0] < SLOW_MS:
        repeats = int(np.clip(1e3 * SECONDS_PER_ROW / times[0], FEWEST_REPEATS, MOST_REPEATS))
        times = [_timed(run) for _ in range(repeats)]
    return statistics.median(times)


def _timed(run: Callable[[], Any]) -> float:
    start = time.perf_counter()
    run()
    return 1e3 * (time.perf_counter() - start)


def _extra_mb(job: Job) -> float | None:
    """The increase of the process's memory by the preparation and one call, at its peak."""
    status, reset = Path("/proc/self/status"), Path("/proc/self/clear_refs")
    if not (status.exists() and os.access(reset, os.W_OK)):
        return None
    small = job._replace(patches=min(CASES)) if job.method == "exact" else job
    _prepare(small)()  # loads all code; for the L×L matrix a small case is enough
    gc.collect()
    reset.write_text("5")  # resets the peak to the current value
    before = _status_kb(status, "VmRSS")
    _prepare(job)()
    return max(0, _status_kb(status, "VmHWM") - before) / 1024


def _status_kb(status: Path, name: str) -> int:
    return next(int(line.split()[1]) for line in status.read_text().splitlines() if line.startswith(name))


def _prepare(job: Job) -> Callable[[], Any]:
    """A function from image to scores; what depends on the parameters only is computed beforehand."""
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
            from iap.attention.kernels.folding import Layer
            from iap.attention.kernels.ranker import compile_ranker

            return partial(
                compile_ranker(kernel, Layer(query), Layer(key), image.shape, patch=case.patch, stride=case.stride),
                image,
            )
    raise ValueError(f"method must be one of {', '.join(METHODS)}, not {job.method!r}")


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
    _measure_all(sys.argv[1])
