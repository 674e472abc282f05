"""`iap plot`, `probe`, `sweep`: before a training run, over many, and after."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal

import tyro
from rich.console import Console

from iap.cli.terminal import progress_bar, save
from iap.cli.where import Where
from iap.training.config import TrainConfig


@dataclass(frozen=True)
class Plot:
    """Draw learning curves; runs that differ in their seed alone become one line with a band.

    Example: iap plot runs/seek-seed0 runs/seek-seed1 --out curves.png
    """

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Folders of runs."""
    out: Path = Path("curves.png")
    """The picture."""
    over: Literal["episodes", "iteration"] = "episodes"
    """What the axis counts."""
    json = None

    @property
    def plot(self) -> Path | None:
        """The picture, to be checked like every other file."""
        return self.out

    def run(self, console: Console) -> None:
        """Read the runs and draw."""
        from iap.training.run_directory import RunDirectory
        from iap.viz.curves import plot_curves

        if not self.runs:
            raise ValueError("name at least one run's folder")
        groups: dict[TrainConfig, list[tuple[Path, list[dict[str, Any]]]]] = {}
        for path in self.runs:
            run, config = RunDirectory.open(path)
            groups.setdefault(replace(config, seed=0), []).append((path, run.read_metrics()))
        labelled = {group[0][0].name.split("-seed")[0]: [rows for _, rows in group] for group in groups.values()}
        if len(labelled) < len(groups):  # different runs of one name
            labelled = {str(group[0][0]): [rows for _, rows in group] for group in groups.values()}
        plot_curves(labelled, self.out, over=self.over)
        console.print(f"wrote {self.out}")


@dataclass(frozen=True)
class Probe:
    """Tell in seconds whether a preset's readout can work: how much of the simulator's state it explains.

    Random attention looks at random states; a ridge regression from what the controller receives gives R², 1 at best.
    Example: iap probe seek
    """

    preset: tyro.conf.Positional[str]
    """A preset's name."""
    steps: int = 2_000
    """How many states."""
    draws: int = 4
    """How many random policies."""
    json: Path | None = None
    """Write the rows here as JSON; - for standard output."""
    plot = None

    def run(self, console: Console) -> None:
        """Collect, fit and tell."""
        from iap.cli.tables import plain_table
        from iap.evaluation.probe import probe
        from iap.training.presets.registry import preset

        with progress_bar(console) as progress:
            rows = probe(preset(self.preset), self.steps, self.draws, progress)
        table = [{key: value for key, value in row.items() if key != "each"} for row in rows]
        console.print(
            plain_table(table, f"{self.preset}: share of the state's variance that the controller's inputs explain")
        )
        save(console, rows, self.json)


@dataclass(frozen=True)
class Sweep:
    """Train a preset at every point of a grid of its options; what is trained already is not trained again.

    Example: iap sweep seek --grid policy.encoder.patch=1,2,4 seed=0,1 --out runs/sweep
    """

    preset: tyro.conf.Positional[str]
    """A preset's name."""
    grid: tuple[str, ...]
    """Axes, each NAME=VALUE,VALUE,… with a name as in `iap train`."""
    out: Path = Path("runs/sweep")
    """The folder of all runs, of the table and of the heat map."""
    where: Annotated[Where, tyro.conf.arg(name="")] = Where()  # noqa: RUF009
    json = plot = None

    def run(self, console: Console) -> None:
        """Train what is missing, then show all."""
        from iap.cli.tables import plain_table, write_json
        from iap.training.presets.registry import preset
        from iap.training.sweep import parse_grid, sweep
        from iap.viz.plots import plot_heat_map

        grid = parse_grid(self.grid)

        def report(name: str, row: dict[str, Any]) -> None:
            if row["held_out"] is not None:
                console.print(f"{name}: iteration {row['iteration']}, held-out {row['held_out']:.4g}", highlight=False)

        rows = sweep(preset(self.preset), grid, self.out, self.where.open, report)
        console.print(plain_table(rows, f"{self.preset}: best held-out return at each point"))
        write_json(rows, self.out / "sweep.json")
        varied = [name for name in grid if len(grid[name]) > 1]
        axes = sorted(varied, key=lambda name: name == "seed")[:2]  # where there is a choice, seeds are averaged over
        if len(axes) == 2:  # noqa: PLR2004
            others = [name for name in varied if name not in axes]
            title = f"{self.preset}: best held-out return" + (f", mean over {', '.join(others)}" if others else "")
            plot_heat_map(rows, axes[0], axes[1], "held_out_best", self.out / "sweep.png", title=title)
            console.print(f"wrote {self.out / 'sweep.png'}", soft_wrap=True)
