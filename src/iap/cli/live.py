"""Training as it goes: a live table on a terminal, plain lines elsewhere, and TensorBoard's events."""

import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text
from tensorboardX import SummaryWriter

from iap.experiments.config import TrainConfig
from iap.experiments.run_directory import Row, RunDirectory

COLUMNS = ("iteration", "best", "mean", "held-out", "episodes/s", "time left")
SHOWN = 12  # rows of the live table
SECONDS_A_LINE = 5.0  # at least, where there is no terminal
CURVES = ("best", "mean", "held_out", "failed", "episodes")


@contextmanager
def training_report(console: Console, config: TrainConfig, run: RunDirectory) -> Iterator[Callable[[Row], None]]:
    """Something to be called with each row of metrics."""
    recent: deque[list[str]] = deque(maxlen=SHOWN)
    last_line = 0.0
    before = run.read_metrics()[-1]["episodes"] if run.read_metrics() else 0
    with (
        SummaryWriter(str(run.path / "tensorboard"), write_to_disk=True) as events,
        Live(console=console, refresh_per_second=4, transient=False) as live,
    ):
        if not console.is_terminal:
            live.stop()

        def report(row: Row) -> None:
            nonlocal last_line, before
            for name in CURVES:
                if row[name] is not None:
                    events.add_scalar(name, row[name], row["iteration"])
            events.flush()
            recent.append(_cells(config, row, row["episodes"] - before))
            before = row["episodes"]
            if console.is_terminal:
                live.update(_table(recent, run))
            elif (
                time.monotonic() - last_line > SECONDS_A_LINE
                or row["held_out"] is not None
                or row["iteration"] == config.iterations
            ):
                last_line = time.monotonic()
                pairs = zip(COLUMNS, recent[-1], strict=True)
                console.print("  ".join(f"{name} {cell}" for name, cell in pairs if cell), highlight=False)

        yield report


def _cells(config: TrainConfig, row: Row, episodes: int) -> list[str]:
    left_s = (config.iterations - row["iteration"]) * row["seconds"]
    return [
        f"{row['iteration']}/{config.iterations}",
        _short(row["best"]),
        _short(row["mean"]) + (f" ({row['failed']} failed)" if row["failed"] else ""),
        _short(row["held_out"]),
        f"{episodes / max(row['seconds'], 1e-9):.1f}",
        f"{left_s / 60:.1f} min",
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
