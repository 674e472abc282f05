"""What works here: each part that `iap` needs is tried for real, in a process of its own that may crash or hang."""

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

from iap.doctor.parts import Trial, all_trials

PATIENCE = 6  # how many times its share of the time a part may take, about, before it counts as hanging
LONGEST_DETAIL = 300  # characters


@dataclass(frozen=True)
class Check:
    """What was found out about one part.

    Attributes:
        name: of the part.
        ok: whether it works.
        required: whether `iap` needs it; if not, it is an extra or an alternative.
        detail: versions, rates, or what went wrong.
        fix: the command that mends it, if one is known.
    """

    name: str
    ok: bool
    required: bool
    detail: str
    fix: str | None = None


def doctor(
    runs: str | Path = "runs", progress: Callable[[str, float], None] = lambda _, __: None, budget_s: float = 55.0
) -> list[Check]:
    """Try every part, one after the other, so that rates are those of a core of its own.

    Args:
        runs: the folder that runs go to, which need not be there yet.
        progress: told what is being tried and which share of all is done.
        budget_s: seconds after which this ends, whatever hangs.
    """
    end, trials, checks = time.monotonic() + budget_s, all_trials(runs), []
    for done, trial in enumerate(trials):
        progress(trial.name, done / len(trials))
        left, waiting = end - time.monotonic(), len(trials) - done
        # those still waiting keep a part of what is left, however many hang before them
        checks.append(examine(trial, limit_s=max(0.0, left * PATIENCE / (waiting + PATIENCE - 1))))
    progress("done", 1.0)
    return checks


def table(checks: list[Check]) -> Table:
    """The checks for people, with the command that mends it below what does not work."""
    shown = Table(box=SIMPLE_HEAD)
    for name in ("part", "works", "found"):
        shown.add_column(name, overflow="fold")
    for check in checks:
        word, colour = ("yes", "green") if check.ok else ("no", "red") if check.required else ("no, optional", "yellow")
        found = Text(check.detail)
        if check.fix is not None:
            found.append(f"\n{check.fix}", "bold")
        shown.add_row(Text(check.name), Text(word, colour), found)
    return shown


def examine(trial: Trial, limit_s: float) -> Check:
    """Run a trial; an error, a crash or a hang is a finding like any other."""
    package = f'"iap-rl[{trial.extra}]"' if trial.extra else "iap-rl"
    install, anew = f"pip install {package}", f"pip install --force-reinstall {package}"
    ok, fix = False, trial.remedy
    try:
        status, answer, complaints = _run(trial, limit_s)
    except subprocess.TimeoutExpired:
        detail = f"no answer in {limit_s:.1f} s: it hangs, or the machine is busy"
    except OSError as error:
        detail = f"could not be tried: {error}"
    else:
        if status == 0 and answer:
            told = json.loads(answer)
            ok, detail = told["state"] == "works", told["local_contrast_fine"]
            fix = {"works": None, "missing": install, "broken": anew, "unfit": told["fix"]}[told["state"]]
        else:
            end = signal.strsignal(-status) if status < 0 else f"status {status}"
            detail, fix = ": ".join(["crashes", str(end), *complaints.strip().splitlines()[-1:]]), fix or anew
    return Check(trial.name, ok, trial.required, textwrap.shorten(detail, LONGEST_DETAIL, placeholder=" …"), fix)


def _run(trial: Trial, limit_s: float) -> tuple[int, str, str]:
    """The status that a trial ends with, its answer and what else it wrote."""
    # files and not pipes: a grandchild that lives on could hold a pipe open
    with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as complaints:
        child = subprocess.Popen(
            trial.command,
            env={**os.environ, **trial.environment},
            stdin=subprocess.DEVNULL,
            stdout=answer,
            stderr=complaints,
            start_new_session=True,
        )
        try:
            status = child.wait(limit_s)
        finally:
            _end(child)
        answer.seek(0)
        complaints.seek(0)
        return status, answer.read().decode(), complaints.read().decode(errors="replace")


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kill a child that still runs, and all that it started."""
    if child.returncode is None:
        if hasattr(os, "killpg"):
            os.killpg(child.pid, signal.SIGKILL)
        else:
            child.kill()
        child.wait()
