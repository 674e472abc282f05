"""The command `iap` as users run it, small training runs, and what it means that two of them are the same."""

import io
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from typing import Any

from iap.cli import main
from iap.evolution import OpenES
from iap.policies.serialization import load
from iap.rollouts import InlinePool
from iap.training.config import TrainConfig, fitted_to_env
from iap.training.loop import train
from iap.training.presets.registry import preset
from iap.training.run_directory import RunDirectory

IAP = [sys.executable, "-c", "from iap.cli import main; main()"]
TINY = ["--strategy.population", "6", "--iterations", "4", "--episodes", "2", "--max-steps", "8"]
TINY += ["--evaluate-every", "2", "--evaluate-episodes", "2"]


def iap(*words: object, code: int = 0, **options: Any) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([*IAP, *map(str, words)], capture_output=True, text=True, check=False, **options)
    assert done.returncode == code, done.stdout + done.stderr
    return done


def iap_here(*words: object, code: int = 0) -> subprocess.CompletedProcess[str]:
    """The same in this process, which has loaded already what takes seconds to load."""
    out, errors, ended = io.StringIO(), io.StringIO(), None
    before, sys.argv = sys.argv, ["iap", *map(str, words)]
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


def told(done: subprocess.CompletedProcess[str]) -> str:
    """What went wrong, which is one line."""
    line = done.stderr.strip()
    assert line.startswith("iap: "), line
    assert "\n" not in line, line
    return line


def tiny(**changes: Any) -> TrainConfig:
    """What `iap train seek --strategy open-es TINY` trains."""
    config = replace(
        preset("seek"),
        strategy=OpenES(population=6),
        iterations=4,
        episodes=2,
        max_steps=8,
        evaluate_every=2,
        evaluate_episodes=2,
    )
    return fitted_to_env(replace(config, **changes))


def outcome(run: RunDirectory) -> tuple[list[dict[str, Any]], list[bytes]]:
    """All that a run decides: its metrics but for the times, and its last and best θ."""
    rows = [{key: value for key, value in row.items() if key != "seconds"} for row in run.read_metrics()]
    thetas = [load(run.policy_file(which)).theta.tobytes() for which in ("last", "best")]
    return rows, thetas


def run_here(config: TrainConfig, path: Path, pool: type = InlinePool, **options: Any) -> RunDirectory:
    run = RunDirectory.create(path, config)
    with pool(config.job, **options) as opened:
        train(config, opened, run)
    return run
