"""`iap presets`: the presets of `iap train`."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from iap.cli.console import Command, save


@dataclass(frozen=True)
class Presets(Command):
    """List the presets: what iap train NAME trains.

    Example: iap presets
    """

    env: str = ""
    """Only presets whose environment contains this text."""
    json: Path | None = None
    """Write the list to this file as JSON; - for standard output."""

    def outputs(self) -> tuple[Path | None, ...]:
        """The JSON file."""
        return (self.json,)

    def run(self, console: Console) -> None:
        """Print the list."""
        from iap.cli.tables import plain_table
        from iap.training.presets import PRESETS

        rows = [_row(name) for name in PRESETS if self.env in PRESETS[name].env.id]
        if not rows:
            ids = sorted({config.env.id for config in PRESETS.values()})
            raise ValueError(f"--env must be part of an environment's id, such as {', '.join(ids)}, not {self.env!r}")
        console.print(plain_table(rows, "presets: iap train NAME; iap train --env ID takes any other environment"))
        save(console, rows, self.json)


def _row(name: str) -> dict[str, Any]:
    from iap.evolution import STRATEGIES
    from iap.policies import CONTROLLERS, ENCODERS, count_params
    from iap.training.presets import PRESETS
    from iap.zoo import zoo_names

    config = PRESETS[name]
    return {
        "name": name,
        "env": config.env.id,
        "encoder": ENCODERS.name_of(type(config.policy.encoder)),
        "controller": CONTROLLERS.name_of(type(config.policy.controller)),
        "parameters": count_params(config.policy),
        "strategy": STRATEGIES.name_of(type(config.strategy)),
        "candidates": config.strategy.population * config.iterations,
        "in the zoo": name in zoo_names(),
    }
