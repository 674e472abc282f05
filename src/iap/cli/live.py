"""Training as it goes: a live table on a terminal, plain lines elsewhere, and TensorBoard's events."""

import math
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import NamedTuple

from rich.console import Console, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from iap.training.config import TrainConfig
from iap.training.run_directory import Row, RunDirectory

COLUMNS = ("iteration", "best", "mean", "held-out", "episodes/s", "time left")
SHOWN = 12  # rows of the live table
SECONDS_A_LINE = 5.0  # at least, where there is no terminal
CURVES = ("best", "mean", "held_out", "failed", "episodes")


class Report(NamedTuple):
    """What training calls: with each row of metrics, and with what is done before the first."""

    row: Callable[[Row], None]
    doing: Callable[[str, float], None]


@contextmanager
def training_report(console: Console, config: TrainConfig, run: RunDirectory) -> Iterator[Report]:
    """Training as it goes, until the `with` block ends."""
    recent: deque[list[str]] = deque(maxlen=SHOWN)
    last_line = -math.inf
    before = run.read_metrics()[-1]["episodes"] if run.read_metrics() else 0
    events = run.open_events()
    with Live(console=console, refresh_per_second=4, transient=False) as live:
        if not console.is_terminal:
            live.stop()

        def show(picture: RenderableType, line: str, *, always: bool) -> None:
            nonlocal last_line
            if console.is_terminal:
                live.update(picture)
            elif always or time.monotonic() - last_line > SECONDS_A_LINE:
                last_line = time.monotonic()
                console.print(line, highlight=False, soft_wrap=True)

        def row(row: Row) -> None:
            nonlocal before
            with run.explained():
                events.add(row["iteration"], {name: row[name] for name in CURVES if row[name] is not None})
            recent.append(_cells(config, row, row["episodes"] - before))
            before = row["episodes"]
            cells = "  ".join(f"{name} {cell}" for name, cell in zip(COLUMNS, recent[-1], strict=True) if cell)
            last = row["iteration"] == config.iterations
            show(_table(recent, run), cells, always=last or row["held_out"] is not None)

        def doing(what: str, share: float) -> None:
            line = f"{what}, {share:.0%} done"
            show(Text(line), line, always=False)

        yield Report(row, doing)


def _cells(config: TrainConfig, row: Row, episodes: int) -> list[str]:
    left_s = (config.iterations - row["iteration"]) * row["seconds"]
    known = row["iteration"] > 0 and row["seconds"] > 0  # how long an iteration takes
    return [
        f"{row['iteration']}/{config.iterations}",
        _short(row["best"]),
        _short(row["mean"]) + (f" ({row['failed']} failed)" if row["failed"] else ""),
        _short(row["held_out"]),
        f"{episodes / row['seconds']:.1f}" if episodes and row["seconds"] > 0 else "",
        f"{left_s / 60:.1f} min" if known else "",
    ]


def _short(x: float | None) -> str:
    return "" if x is None else f"{x:.4g}"


def _table(rows: "deque[list[str]]", run: RunDirectory) -> RenderableType:
    table = Table(caption=Text(f"{run.path} · Ctrl-C stops, and it can be resumed"), caption_justify="left")
    for name in COLUMNS:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*row)
    return table
