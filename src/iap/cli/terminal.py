"""What all commands share: a console, a progress bar, and files that are checked before minutes are spent."""

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

WIDTH = 120  # of tables that do not go to a terminal


def console_for(json: Path | None) -> Console:
    """Where people read: standard output, unless that is to be JSON alone."""
    console = Console(stderr=str(json) == "-")
    return console if console.is_terminal else Console(stderr=console.stderr, width=WIDTH)


def check_writable(path: Path | None) -> None:
    """Refuse a file in a folder that is not there or not ours, before minutes are spent on what it is to hold."""
    if path is None or str(path) == "-":
        return
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"cannot write {path}: {path.parent} is not writable")


@contextmanager
def progress_bar(console: Console) -> Iterator[Callable[[str, float], None]]:
    """A bar that is told what is being done and which share of all is done."""
    columns = (
        BarColumn(),
        TextColumn("{task.percentage:3.0f}%"),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=1.0)
        yield lambda doing, share: bar.update(task, description=doing, completed=share)


def save(
    console: Console,
    results: Sequence[Any] | dict[str, Any],
    json: Path | None,
    plot: Path | None = None,
    draw: Callable[..., None] | None = None,
) -> None:
    """Write results as JSON, and as a plot, where asked for, and say so."""
    from iap.cli.tables import write_json

    if json is not None:
        write_json(results, json)
    if plot is not None and draw is not None:
        draw(results, plot)
    for path in (json, plot):
        if path is not None and str(path) != "-":
            console.print(f"wrote {path}")
