"""The command `iap` in a new process or in this one, small training runs, and the result of a run."""

import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

from iap.evolution import OpenES
from iap.policies.serialization import load
from iap.rollouts import InlinePool
from iap.training.config import TrainConfig, fit_to_env
from iap.training.loop import train
from iap.training.presets import preset
from iap.training.run_directory import RunDirectory

IAP = [sys.executable, "-c", "from iap.cli import main; main()"]
TINY = ["--strategy.population", "6", "--iterations", "4", "--episodes", "2", "--max-steps", "8"]
TINY += ["--evaluate-every", "2", "--evaluate-episodes", "2"]


def without_comparison(words: tuple[object, ...]) -> list[str]:
    """The words of a command; `iap train` without the comparison at its end, unless it is asked for."""
    is_training = words[:1] == ("train",) and not {"--help", "--compare"} & {*map(str, words)}
    return [*map(str, words), *(["--compare", "0"] if is_training else [])]


def iap(*words: object, code: int = 0, **options: Any) -> subprocess.CompletedProcess[str]:
    """The command in a new process."""
    done = subprocess.run([*IAP, *without_comparison(words)], capture_output=True, text=True, check=False, **options)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def iap_here(*words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    """The command in this process, which saves the seconds of a new process's imports."""
    from iap.cli import main

    out, errors, ended = io.StringIO(), io.StringIO(), None
    before, sys.argv = sys.argv, ["iap", *without_comparison(words)]
    try:
        with redirect_stdout(out), redirect_stderr(errors):
            main()
    except SystemExit as error:
        ended = error.code
    finally:
        sys.argv = before
    if isinstance(ended, str):
        ended = errors.write(f"{ended}\n") and 1
    assert (ended or 0) == code, out.getvalue() + errors.getvalue()
    return subprocess.CompletedProcess([*map(str, words)], code, out.getvalue(), errors.getvalue())


def error_of(done: subprocess.CompletedProcess[str]) -> str:
    """The error message, which has to be one line."""
    line = done.stderr.strip()
    assert line.startswith("iap: "), line
    assert "\n" not in line, line
    return line


def tiny(**changes: Any) -> TrainConfig:
    """The config of `iap train seek --strategy open-es TINY`."""
    config = replace(
        preset("seek"),
        strategy=OpenES(population=6),
        iterations=4,
        episodes=2,
        max_steps=8,
        evaluate_every=2,
        evaluate_episodes=2,
    )
    return fit_to_env(replace(config, **changes))


def outcome(run: RunDirectory) -> tuple[list[dict[str, Any]], list[bytes]]:
    """The result of a run: its metrics without the times, and its last and best θ."""
    rows = [{key: value for key, value in row.items() if key != "seconds"} for row in run.read_metrics()]
    thetas = [load(run.policy_file(which)).theta.tobytes() for which in ("last", "best")]
    return rows, thetas


def run_here(config: TrainConfig, path: Path, pool: type = InlinePool, **options: Any) -> RunDirectory:
    """A whole training run in this process."""
    run = RunDirectory.create(path, config)
    with pool(config.job, **options) as opened:
        train(config, opened, run)
    return run
