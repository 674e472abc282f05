"""The progress of training: a live table on a terminal, plain lines elsewhere, and TensorBoard events."""

import math
import time
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import NamedTuple

from rich.console import Console, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from iap.training.config import TrainConfig
from iap.training.run_directory import Row, RunDirectory
from iap.training.sac.config import SAC

COLUMNS = ("iteration", "best", "mean", "held-out", "episodes/s", "time left")
MOST_ROWS = 12  # of the live table
LINE_INTERVAL_S = 5.0  # least time between two lines where there is no terminal
CURVES = ("best", "mean", "held_out", "failed", "episodes")


class Report(NamedTuple):
    """What training calls: `row` with each row of metrics, `start` with the progress before the first iteration.

    `warn` is called with a line about the first episode that fails.
    """

    row: Callable[[Row], None]
    start: Callable[[str, float], None]
    warn: Callable[[str], None]


@contextmanager
def training_report(console: Console, config: TrainConfig | SAC, run: RunDirectory) -> Iterator[Report]:
    """Print the progress of a run until the `with` block ends."""
    recent: deque[list[str]] = deque(maxlen=MOST_ROWS)
    last_line = -math.inf
    rows = run.read_metrics()
    episodes_before = rows[-1]["episodes"] if rows else 0
    events = run.open_events()
    with Live(console=console, refresh_per_second=4, transient=False) as live:
        if not console.is_terminal:
            live.stop()

        def show(table: RenderableType, line: str, *, always: bool) -> None:
            nonlocal last_line
            if console.is_terminal:
                live.update(table)
            elif always or time.monotonic() - last_line > LINE_INTERVAL_S:
                last_line = time.monotonic()
                console.print(line, highlight=False, soft_wrap=True)

        def report_row(row: Row) -> None:
            nonlocal episodes_before
            with run.explained():
                events.add(row["iteration"], {name: row[name] for name in CURVES if row[name] is not None})
            recent.append(_cells(config, row, row["episodes"] - episodes_before))
            episodes_before = row["episodes"]
            line = "  ".join(f"{name} {cell}" for name, cell in zip(COLUMNS, recent[-1], strict=True) if cell)
            last = row["iteration"] == config.iterations
            show(_table(recent, run), line, always=last or row["held_out"] is not None)

        def report_start(what: str, share: float) -> None:
            line = f"{what}, {share:.0%} done"
            show(Text(line), line, always=False)

        def warn(line: str) -> None:
            console.print(line, style="yellow", highlight=False, markup=False, soft_wrap=True)

        yield Report(report_row, report_start, warn)


def _cells(config: TrainConfig | SAC, row: Row, episodes: int) -> list[str]:
    left_s = (config.iterations - row["iteration"]) * row["seconds"]
    is_timed = row["iteration"] > 0 and row["seconds"] > 0  # row 0 is not an iteration
    return [
        f"{row['iteration']}/{config.iterations}",
        _short(row["best"]),
        _short(row["mean"]) + (f" ({row['failed']} failed)" if row["failed"] else ""),
        _short(row["held_out"]),
        f"{episodes / row['seconds']:.1f}" if episodes and row["seconds"] > 0 else "",
        f"{left_s / 60:.1f} min" if is_timed else "",
    ]


def _short(x: float | None) -> str:
    return "" if x is None else f"{x:.4g}"


def _table(rows: Sequence[list[str]] | deque[list[str]], run: RunDirectory) -> RenderableType:
    table = Table(caption=Text(f"{run.path} · Ctrl-C stops; the run can be resumed"), caption_justify="left")
    for name in COLUMNS:
        table.add_column(name, justify="right")
    for row in rows:
        table.add_row(*row)
    return table
