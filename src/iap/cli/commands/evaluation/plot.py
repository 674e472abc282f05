"""`iap plot`: learning curves."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import tyro
from rich.console import Console

from iap.cli.console import Command


@dataclass(frozen=True)
class Plot(Command):
    """Plot learning curves; runs that differ only in their seed become one line with a band.

    Example: iap plot runs/seek-seed0 runs/seek-seed1 --out curves.png
    """

    runs: tyro.conf.Positional[tuple[Path, ...]]
    """Folders of runs."""
    out: Path = Path("curves.png")
    """The image file."""
    over: Literal["episodes", "iteration"] = "episodes"
    """Quantity on the horizontal axis."""

    def outputs(self) -> tuple[Path | None, ...]:
        """The image file."""
        return (self.out,)

    def run(self, console: Console) -> None:
        """Read the metrics of the runs and plot them."""
        from iap.training.config import TrainConfig
        from iap.training.run_directory import RunDirectory
        from iap.training.sac.config import SAC
        from iap.viz.curves import plot_curves

        if not self.runs:
            raise ValueError("runs must be at least one folder of a run, not none")
        if self.out.suffix.lower() != ".png":
            raise ValueError(f"--out must end in .png, not {self.out.name!r}")
        kinds: Any = TrainConfig | SAC
        groups: dict[TrainConfig | SAC, list[tuple[Path, list[dict[str, Any]]]]] = {}
        for path in self.runs:
            run, config = RunDirectory.open(path, kinds)
            groups.setdefault(replace(config, seed=0), []).append((path, run.read_metrics()))
        labelled = {group[0][0].name.split("-seed")[0]: [rows for _, rows in group] for group in groups.values()}
        if len(labelled) < len(groups):  # different configs in folders of the same name
            labelled = {str(group[0][0]): [rows for _, rows in group] for group in groups.values()}
        plot_curves(labelled, self.out, over=self.over)
        console.print(f"wrote {self.out}", soft_wrap=True)
