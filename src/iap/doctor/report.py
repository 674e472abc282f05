"""Runs the checks, each in its own process, because a broken library can crash or hang the process."""

import json
import os
import signal
import subprocess
import tempfile
import textwrap
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

from iap.doctor.parts import Part, all_parts

PATIENCE = 6  # a check may take about this many times its equal share of the time that is left
LONGEST_DETAIL = 300  # characters


@dataclass(frozen=True)
class Result:
    """The result of a check.

    Attributes:
        name: of the part.
        ok: whether it works.
        required: whether a failure is an error; if not, the part is an extra or an alternative.
        detail: versions and rates, or the reason of the failure.
        fix: the command that repairs it, if one is known.
    """

    name: str
    ok: bool
    required: bool
    detail: str
    fix: str | None = None


def doctor(
    runs: str | Path = "runs",
    progress: Callable[[str, float], None] = lambda _what, _share: None,
    budget_s: float = 55.0,
) -> list[Result]:
    """Check all parts, one after the other, so that checks do not slow each other down.

    Args:
        runs: the folder of runs; it need not exist.
        progress: called with the part that is checked and the share of all checks that is done.
        budget_s: time limit of all checks together, in seconds.
    """
    end, parts, results = time.monotonic() + budget_s, all_parts(runs), []
    for done, part in enumerate(parts):
        progress(part.name, done / len(parts))
        left, waiting = end - time.monotonic(), len(parts) - done
        # a share of the time is kept for the remaining checks, even if several hang
        results.append(run_check(part, limit_s=max(0.0, left * PATIENCE / (waiting + PATIENCE - 1))))
    progress("done", 1.0)
    return results


def table(results: list[Result]) -> Table:
    """A table of the results; below each failure the command that repairs it."""
    shown = Table(box=SIMPLE_HEAD)
    for name in ("part", "works", "found"):
        shown.add_column(name, overflow="fold")
    for result in results:
        failed = ("no", "red") if result.required else ("no, optional", "yellow")
        word, colour = ("yes", "green") if result.ok else failed
        found = Text(result.detail)
        if result.fix is not None:
            found.append(f"\n{result.fix}", "bold")
        shown.add_row(Text(result.name), Text(word, colour), found)
    return shown


def run_check(part: Part, limit_s: float) -> Result:
    """Run the check of a part; an error, a crash or a timeout is a result too."""
    package = f'"iap-rl[{part.extra}]"' if part.extra else "iap-rl"
    install, reinstall = f"pip install {package}", f"pip install --force-reinstall {package}"
    ok, fix = False, part.fix
    try:
        status, output, errors = _run(part, limit_s)
    except subprocess.TimeoutExpired:
        detail = f"no result after {limit_s:.1f} s: it hangs, or the computer is busy"
    except OSError as error:
        detail = f"could not be run: {error}"
    else:
        if status == 0 and output:
            found = json.loads(output)
            ok, detail = found["state"] == "works", found["detail"]
            fix = {"works": None, "missing": install, "broken": reinstall, "failed": found["fix"]}[found["state"]]
        else:
            end = signal.strsignal(-status) if status < 0 else f"status {status}"
            detail, fix = ": ".join(["crashes", str(end), *errors.strip().splitlines()[-1:]]), fix or reinstall
    return Result(part.name, ok, part.required, textwrap.shorten(detail, LONGEST_DETAIL, placeholder=" …"), fix)


def _run(part: Part, limit_s: float) -> tuple[int, str, str]:
    """The exit status, standard output and standard error of a check."""
    # files instead of pipes: a grandchild that survives could keep a pipe open
    with tempfile.TemporaryFile() as output, tempfile.TemporaryFile() as errors:
        child = subprocess.Popen(
            part.command,
            env={**os.environ, **part.environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=errors,
            start_new_session=True,
        )
        try:
            status = child.wait(limit_s)
        finally:
            _kill(child)
        output.seek(0)
        errors.seek(0)
        return status, output.read().decode(), errors.read().decode(errors="replace")


def _kill(child: subprocess.Popen[bytes]) -> None:
    """Kill a child that is still running, with all processes that it started."""
    if child.returncode is None:
        if hasattr(os, "killpg"):
            os.killpg(child.pid, signal.SIGKILL)
        else:
            child.kill()
        child.wait()
