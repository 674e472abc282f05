"""Measurements in a child process with one core and one thread, which are set before NumPy is imported."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any

ONE_THREAD = {
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
    "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1",
    "JAX_PLATFORMS": "cpu",
}


def run_on_one_core(
    module: str, *arguments: str, request: Any = None, environment: Mapping[str, str] | None = None
) -> Iterator[Any]:
    """Run `python -m module arguments` and yield its results as they arrive.

    Args:
        module: calls `send` with each result.
        arguments: of the command.
        request: sent as JSON on standard input.
        environment: further environment variables.
    """
    command = [sys.executable, "-m", module, *arguments]
    variables = {**os.environ, **ONE_THREAD, **(environment or {})}
    with subprocess.Popen(command, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            if hasattr(os, "sched_setaffinity"):
                os.sched_setaffinity(child.pid, {max(os.sched_getaffinity(child.pid))})
            child.stdin.write(json.dumps(request))
            child.stdin.close()
            yield from map(json.loads, child.stdout)
        except BaseException:
            child.kill()
            raise
    if child.returncode != 0:
        raise RuntimeError(f"the measurement ended with status {child.returncode}; see its message above")


def send(result: Any) -> None:
    """Send a result from the child to the parent."""
    sys.stdout.write(json.dumps(result) + "\n")
    sys.stdout.flush()
