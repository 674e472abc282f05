"""`iap fidelity`: how close linear-time rankings are to exact softmax attention."""

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from iap.cli.console import Command, save

TITLES = {
    "features": "rankings by random features, compared with exact softmax",
    "hash": "rankings by hashed features, compared with the same features",
    "tree": "samples from a tree and direct samples, compared with the scores",
}


@dataclass(frozen=True)
class Fidelity(Command):
    """Measure how well the ranking of each feature map agrees with exact softmax attention.

    On Gaussian data and on rendered frames. Takes about a minute.
    Example: iap fidelity --json fidelity.json --plot fidelity.png
    """

    json: Path | None = None
    """Write the rows to this file as JSON; - for standard output."""
    plot: Path | None = None
    """Write a plot of the overlap over the number of projections to this PNG file."""
    draws: int = 12
    """Number of scenes and of draws of the projections in each mean."""

    def outputs(self) -> tuple[Path | None, ...]:
        """The JSON file and the plot."""
        return self.json, self.plot

    def run(self, console: Console) -> None:
        """Measure, then print a table for each kind of ranking."""
        from rich.progress import track

        from iap.bench.fidelity import fidelity
        from iap.cli.tables import plain_table
        from iap.viz.plots import plot_fidelity

        rows = fidelity(
            draws=self.draws, progress=lambda cases: track(cases, "comparing", console=console, transient=True)
        )
        for kind, title in TITLES.items():
            console.print(plain_table([row for row in rows if row["kind"] == kind], title))
        save(console, rows, self.json, self.plot, plot_fidelity)
