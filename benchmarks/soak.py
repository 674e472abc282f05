"""A long training whose workers are killed at random: does memory, open files or disk use grow?

    python benchmarks/soak.py FOLDER --minutes 60

A worker is killed every 20 seconds on average, but never the first one, which shows whether a worker grows. Every ten
seconds the memory, the open files and the folder of the run are measured. At the end, straight lines are fitted from
minute 10 on, and written to FOLDER/soak.json and FOLDER/soak.md.
"""

import argparse
import json
import math
import os
import random
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
from pages import markdown

KILLS_EVERY_S = 20.0
SAMPLES_EVERY_S = 10.0
WARM_UP_MIN = 10.0
WORKER = "iap.rollouts.worker"
MEASURED = {
    "driver_mb": "memory of the driver, MB",
    "first_worker_mb": "memory of the worker that is never killed, MB",
    "other_workers_mb": "memory of the other workers, MB (mean)",
    "driver_files": "open files of the driver",
    "processes": "processes",
    "disk_mb": "folder of the run, MB",
    "disk_mb_without_logs": "folder of the run without its logs of rows, MB",
    "temporary_files": "temporary files",
}
LOGS = ("metrics.jsonl", "tensorboard")  # one row an iteration: they grow by design


def start(folder: Path, workers: int) -> subprocess.Popen:
    """A training that would not end by itself: a small policy, few short episodes an iteration."""
    command = "from iap.cli import main; main()"
    words = ["train", "--env", "soak_env:PausingSeek-v0", "--iterations", "1000000"]
    words += ["--strategy", "open-es", "--strategy.population", "8"]
    words += ["--episodes", "1", "--evaluate-every", "20", "--evaluate-episodes", "2", "--compare", "0"]
    words += ["--workers", str(workers), "--out", str(folder / "run")]
    with (folder / "output.txt").open("w") as output:
        path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONPATH": path}
        return subprocess.Popen([sys.executable, "-c", command, *words], stdout=output, stderr=output, env=environment)


def sample(driver: psutil.Process, first: psutil.Process | None, run: Path) -> dict[str, float]:
    """What is measured at one time; memory is what a process does not share (USS)."""
    workers = [child for child in driver.children() if is_worker(child) and child != first]
    memories = [memory for child in workers if (memory := memory_mb(child)) is not None]
    files = [path for path in run.rglob("*") if path.is_file()]
    sizes = {path: size for path in files if (size := size_mb(path)) is not None}
    return {
        "driver_mb": memory_mb(driver) or 0.0,
        "first_worker_mb": math.nan if first is None else memory_mb(first) or math.nan,
        "other_workers_mb": statistics.fmean(memories) if memories else math.nan,
        "driver_files": driver.num_fds(),
        "processes": 1 + len(driver.children(recursive=True)),
        "disk_mb": sum(sizes.values()),
        "disk_mb_without_logs": sum(size for path, size in sizes.items() if not {*LOGS} & {*path.parts}),
        "temporary_files": sum(path.name.startswith(".") and ".part" in path.name for path in files),
    }


def is_worker(process: psutil.Process) -> bool:
    """Whether it is a worker that runs episodes for at least ten seconds: a new one is still growing."""
    try:
        return time.time() - process.create_time() > 10 and WORKER in " ".join(process.cmdline())
    except psutil.Error:
        return False


def memory_mb(process: psutil.Process) -> float | None:
    """The memory that the process does not share; None if it is gone."""
    try:
        return process.memory_full_info().uss / 2**20
    except psutil.Error:
        return None


def size_mb(path: Path) -> float | None:
    """The size of a file; None if it is gone."""
    try:
        return path.stat().st_size / 2**20
    except FileNotFoundError:
        return None


def soak(folder: Path, minutes: float, workers: int, seed: int) -> dict[str, Any]:
    """Train, kill workers, measure."""
    rng, samples, kills = random.Random(seed), list[dict[str, float]](), 0
    training = start(folder, workers)
    driver, started = psutil.Process(training.pid), time.monotonic()
    first: psutil.Process | None = None
    next_kill_s = next_sample_s = 0.0
    while (passed_s := time.monotonic() - started) < 60 * minutes:
        if training.poll() is not None:
            raise RuntimeError(f"the training ended with status {training.returncode}: see {folder / 'output.txt'}")
        if first is None and passed_s > 120:
            first = next(child for child in driver.children() if is_worker(child))
        if passed_s >= next_sample_s:
            samples.append({"minute": passed_s / 60, **sample(driver, first, folder / "run")})
            (folder / "samples.json").write_text(json.dumps(samples))
            next_sample_s = passed_s + SAMPLES_EVERY_S
        if passed_s >= next_kill_s:
            candidates = [child for child in driver.children() if child != first]
            if candidates and first is not None:
                os.kill(rng.choice(candidates).pid, signal.SIGKILL)
                kills += 1
            next_kill_s = passed_s + rng.expovariate(1 / KILLS_EVERY_S)
        time.sleep(0.2)
    training.kill()
    training.wait(60)
    metrics = (folder / "run" / "metrics.jsonl").read_text()
    iterations = max(0, metrics.count("\n") - 1)
    return {"minutes": minutes, "workers": workers, "kills": kills, "iterations": iterations, "samples": samples}


def fitted(samples: list[dict[str, float]]) -> list[dict[str, Any]]:
    """A straight line through each quantity after the warm-up: its start, its end and its slope an hour."""
    late = [row for row in samples if row["minute"] >= WARM_UP_MIN] or samples
    rows = []
    for name, label in MEASURED.items():
        points = [(row["minute"] / 60, row[name]) for row in late if not math.isnan(row[name])]
        hours = [hour for hour, _ in points]
        slope, at_0 = statistics.linear_regression(hours, [value for _, value in points])
        ends = [at_0 + slope * hour for hour in (hours[0], hours[-1])]
        rows.append({"quantity": label, "start": ends[0], "end": ends[1], "growth in an hour": slope})
    return rows


def main() -> None:
    """Run and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    options.folder.mkdir(parents=True)
    result = soak(options.folder, options.minutes, options.workers, options.seed)
    rows = fitted(result["samples"])
    (options.folder / "soak.json").write_text(json.dumps(result | {"fitted": rows}, indent=1))
    table = markdown(list(rows[0]), [[*row.values()] for row in rows])
    facts = f"{result['iterations']:,} iterations, {result['kills']} workers killed, {result['minutes']:g} minutes"
    (options.folder / "soak.md").write_text(f"{facts}\n\n{table}")


if __name__ == "__main__":
    main()
