"""What all commands share: the base class, the console, a progress bar, and checks of output files."""

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import tyro
from rich.console import Console

WIDTH = 120  # of tables that are not printed to a terminal
STANDARD_OUTPUT = Path("-")


class Command(ABC):
    """A command: a frozen dataclass whose fields are its options and whose docstring is its help."""

    @classmethod
    def parse(cls, name: str, arguments: Sequence[str]) -> "Command":
        """The command with the options of a command line."""
        return cls._parse(f"iap {name}", arguments)

    @classmethod
    def _parse(cls, program: str, arguments: Sequence[str]) -> Self:
        config = (tyro.conf.OmitSubcommandPrefixes, tyro.conf.OmitArgPrefixes)
        return tyro.cli(cls, args=arguments, prog=program, config=config)

    @abstractmethod
    def run(self, console: Console) -> None:
        """Run the command; messages for people go to the console."""

    def outputs(self) -> Sequence[Path | None]:
        """The files that will be written; they are checked before the command runs."""
        return ()


def console_for(outputs: Sequence[Path]) -> Console:
    """A console on standard output, or on standard error if results are written to standard output."""
    console = Console(stderr=STANDARD_OUTPUT in outputs)
    return console if console.is_terminal else Console(stderr=console.stderr, width=WIDTH)


def check_writable(path: Path) -> None:
    """Refuse an output file whose folder does not exist or cannot be written, before any work is done."""
    if path == STANDARD_OUTPUT:
        return
    if not path.parent.is_dir():
        raise FileNotFoundError(f"cannot write {path}: there is no folder {path.parent}")
    if not os.access(path.parent, os.W_OK):
        raise PermissionError(f"cannot write {path}: {path.parent} is not writable")


@contextmanager
def progress_bar(console: Console) -> Iterator[Callable[[str, float], None]]:
    """A progress bar, as a function of what is being done and the share that is done."""
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        BarColumn(),
        TextColumn("{task.percentage:3.0f}%"),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("starting", total=1.0)
        yield lambda what, share: bar.update(task, description=what, completed=share)


def save(
    console: Console,
    results: Sequence[Any] | dict[str, Any],
    json: Path | None,
    plot: Path | None = None,
    draw: Callable[..., None] | None = None,
) -> None:
    """Write results as JSON and as a plot, where a file is given for it."""
    from iap.cli.tables import write_json

    if json is not None:
        write_json(results, json)
    if plot is not None and draw is not None:
        draw(results, plot)
    for path in (json, plot):
        if path is not None and path != STANDARD_OUTPUT:
            console.print(f"wrote {path}", soft_wrap=True)
