"""`iap probe`: what random encoders of a preset know about the simulator's state."""

from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.console import Console

from iap.cli.console import Command, progress_bar, save
from iap.cli.env_options import chosen_config


@dataclass(frozen=True)
class Probe(Command):
    """Measure, before any training, how much of the simulator's state random encoders of a preset explain.

    A ridge regression maps the controller's inputs to the state; R² is 1 at best. Takes seconds.
    Example: iap probe seek
    """

    preset: tyro.conf.Positional[str | None] = None
    """A preset's name."""
    env: str | None = None
    """The environment of the preset instead of its own; or, without a preset, one to probe the default policy in."""
    env_option: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """KEY=VALUE, an option of the environment; can be repeated."""
    steps: int = 2_000
    """Number of states."""
    draws: int = 4
    """Number of random policies."""
    json: Path | None = None
    """Write the rows to this file as JSON; - for standard output."""

    def outputs(self) -> tuple[Path | None, ...]:
        """The JSON file."""
        return (self.json,)

    def run(self, console: Console) -> None:
        """Collect states, fit the regressions and print a table."""
        from iap.cli.tables import plain_table
        from iap.evaluation.probe import probe
        from iap.training.config import fit_to_env

        config = fit_to_env(chosen_config(self.preset, self.env, self.env_option))
        with progress_bar(console) as progress:
            rows = probe(
                config.env, config.policy, steps=self.steps, draws=self.draws, seed=config.seed, progress=progress
            )
        shown = [{key: value for key, value in row.items() if key != "each"} for row in rows]
        title = f"{self.preset or self.env}: share of the state's variance that the controller's inputs explain (R²)"
        console.print(plain_table(shown, title))
        save(console, rows, self.json)
