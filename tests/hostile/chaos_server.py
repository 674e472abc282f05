"""A process that has imported everything and forks a training for each request, which saves the seconds of imports.

A request is a line of JSON: the folder, the kind of run, the number of worker processes (0 for none), and how it dies:
at call number `count` of a function of `os`, or `after_s` seconds after its start. Worker processes are killed every
`kill_workers_s` seconds on average. The answer is the exit status, the number of calls, and what was left.
"""

import importlib
import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent / "distillation" / "dagger")]
COUNTED = ("fsync", "replace", "open")


def config_of(kind: str) -> Any:
    """A tiny run: evolution on Seek, or a distillation of two rounds."""
    from iap.evolution import OpenES
    from iap.policies import MLP, Blind
    from iap.training.config import TrainConfig, fit_to_env
    from iap.training.presets import preset

    if kind == "dagger":
        from dot import dot_config  # pyright: ignore[reportMissingImports] # of the tests of distillation

        from iap.distillation import DAgger

        short = DAgger(steps=(40, 30), teacher_share=(1.0, 0.0), updates=(12, 12), batch=8, noise=(0.0, 0.5))
        return replace(dot_config(short), evaluate_episodes=1)
    seek = preset("seek")
    policy = replace(seek.policy, encoder=Blind(), controller=MLP((4,)))
    once = TrainConfig(seek.env, policy, OpenES(population=4), evaluate_every=2, evaluate_episodes=1)
    return fit_to_env(replace(once, iterations=6, episodes=1, max_steps=4))


def train_once(request: dict[str, Any]) -> None:
    """In the child: start or resume the run."""
    from iap.rollouts import InlinePool, LocalPool
    from iap.training.loop import train
    from iap.training.run_directory import RunDirectory

    path = Path(request["path"])
    if (path / "config.json").exists():
        run = RunDirectory(path)
        config = config_of(request["kind"]) if request["kind"] == "dagger" else RunDirectory.open(path)[1]
    else:
        config = config_of(request["kind"])
        run = RunDirectory.create(path, config, "iap train")
    workers = request["workers"]
    with LocalPool(config.job, workers) if workers else InlinePool(config.job) as pool:
        train(config, pool, run, command="iap train")


def count_calls(request: dict[str, Any], report: int) -> Callable[[], None]:
    """Count the calls of the functions of `os` that write, and die at the one that the request names."""
    calls: dict[str, int] = dict.fromkeys(COUNTED, 0)

    def counted(name: str, function: Any) -> Any:
        def call(*arguments: Any, **options: Any) -> Any:
            calls[name] += 1
            if name == request.get("at") and calls[name] == request["count"]:
                os.kill(os.getpid(), signal.SIGKILL)
            return function(*arguments, **options)

        return call

    for name in COUNTED:
        setattr(os, name, counted(name, getattr(os, name)))

    def finish() -> None:
        os.write(report, json.dumps(calls).encode())

    return finish


def serve(request: dict[str, Any]) -> dict[str, Any]:
    """Fork a training, kill it as requested, and wait until all its processes are gone."""
    rng, (read, write) = random.Random(request.get("seed", 0)), os.pipe()
    started = time.monotonic()
    pid = os.fork()
    if pid == 0:
        os.close(read)
        status = 1
        try:
            finish = count_calls(request, write)
            train_once(request)
            finish()
            status = 0
        except BaseException as error:
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
        finally:
            os._exit(status)
    os.close(write)
    killed_workers, family = 0, set[int]()
    next_kill_s = rng.expovariate(1 / request["kill_workers_s"]) if "kill_workers_s" in request else float("inf")
    while True:
        ended, code = os.waitpid(pid, os.WNOHANG)
        if ended:
            break
        passed_s = time.monotonic() - started
        workers = [child.pid for child in psutil.Process(pid).children(recursive=True)] if request["workers"] else []
        family |= {*workers}
        if passed_s > request.get("after_s", float("inf")):
            os.kill(pid, signal.SIGKILL)
        elif passed_s > next_kill_s and workers:
            os.kill(rng.choice(workers), signal.SIGKILL)
            killed_workers += 1
            next_kill_s = passed_s + rng.expovariate(1 / request["kill_workers_s"])
        time.sleep(0.1 if workers else 0.02)
    deadline = time.monotonic() + 20
    while (orphans := [one for one in family if psutil.pid_exists(one)]) and time.monotonic() < deadline:
        time.sleep(0.02)
    with os.fdopen(read) as file:
        calls = file.read()
    seconds = time.monotonic() - started
    return {
        "status": os.waitstatus_to_exitcode(code),
        "calls": json.loads(calls) if calls else None,
        "killed_workers": killed_workers,
        "orphans": len(orphans),
        "seconds": seconds,
    }


def main() -> None:
    """Answer requests until the input ends."""
    for module in ("iap.policies.policy", "iap.rollouts.local_pool", "iap.training.loop"):
        importlib.import_module(module)  # before the forks
    for line in sys.stdin:
        answer = serve(json.loads(line))
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
