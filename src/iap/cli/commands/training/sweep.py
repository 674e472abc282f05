"""`iap sweep`: training runs over a grid of options."""

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console

from iap.cli.console import Command
from iap.cli.env_options import chosen_config
from iap.cli.pool_options import LOCAL_POOL, PoolOptions


@dataclass(frozen=True)
class Sweep(Command):
    """Train a preset at every point of a grid of its options.

    Points that are already trained are not trained again; an interrupted sweep continues.
    Example: iap sweep seek --grid policy.encoder.patch=1,2,4 seed=0,1 --out runs/sweep
    """

    grid: tuple[str, ...]
    """Axes of the grid, each NAME=VALUE,VALUE,… with the name of an option of iap train."""
    preset: tyro.conf.Positional[str | None] = None
    """A preset's name."""
    env: str | None = None
    """The environment of the preset instead of its own; or, without a preset, one to train the default policy in."""
    env_option: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """KEY=VALUE, an option of the environment; can be repeated."""
    out: Path = Path("runs/sweep")
    """Folder of the runs, of the table sweep.json and of the heat map sweep.png."""
    pool: Annotated[PoolOptions, tyro.conf.arg(name="")] = LOCAL_POOL

    def run(self, console: Console) -> None:
        """Train the points that are missing, then print the table of all."""
        from iap.cli.tables import plain_table, write_json
        from iap.training.sweep import parse_grid, sweep

        grid = parse_grid(self.grid)

        def report(name: str, row: dict[str, Any]) -> None:
            if row["held_out"] is not None:
                console.print(f"{name}: iteration {row['iteration']}, held-out {row['held_out']:.4g}", highlight=False)

        config = chosen_config(self.preset, self.env, self.env_option)
        rows = sweep(config, grid, self.out, self.pool.open, report)
        console.print(plain_table(rows, f"{self.preset or self.env}: best held-out return at each point"))
        write_json(rows, self.out / "sweep.json")
        self._plot(console, rows, [name for name in grid if len(grid[name]) > 1])

    def _plot(self, console: Console, rows: list[dict[str, Any]], varied: list[str]) -> None:
        """A heat map over two axes, the mean over the others; seeds are an axis only if there is no other."""
        from iap.viz.plots import plot_heat_map

        if len(varied) < 2:  # noqa: PLR2004
            return
        x, y, *others = sorted(varied, key=lambda name: name == "seed")
        title = f"{self.preset or self.env}: best held-out return" + (
            f", mean over {', '.join(others)}" if others else ""
        )
        plot_heat_map(rows, x, y, "held_out_best", self.out / "sweep.png", title=title)
        console.print(f"wrote {self.out / 'sweep.png'}", soft_wrap=True)
