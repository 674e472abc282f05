"""Measuring in a child process that has one core and one thread, set before NumPy is loaded."""

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


def on_one_core(
    module: str, *arguments: str, question: Any = None, environment: Mapping[str, str] | None = None
) -> Iterator[Any]:
    """Run `python -m module arguments`, with `question` as JSON on standard input; yield its answers as they come."""
    command = [sys.executable, "-m", module, *arguments]
    variables = {**os.environ, **ONE_THREAD, **(environment or {})}
    with subprocess.Popen(command, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            if hasattr(os, "sched_setaffinity"):
                os.sched_setaffinity(child.pid, {max(os.sched_getaffinity(child.pid))})
            child.stdin.write(json.dumps(question))
            child.stdin.close()
            yield from map(json.loads, child.stdout)
        except BaseException:
            child.kill()
            raise
    if child.returncode != 0:
        raise RuntimeError(f"the measuring process ended with status {child.returncode}; its message stands above")


def answer(result: Any) -> None:
    """Hand a result to the parent, from within the child."""
    sys.stdout.write(json.dumps(result) + "\n")
    sys.stdout.flush()
