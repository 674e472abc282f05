"""`iap zoo`: the trained policies of the package."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from iap.cli.console import Command, save


@dataclass(frozen=True)
class Zoo(Command):
    """List the trained policies that come with the package, with their measured returns.

    Example: iap zoo
    """

    json: Path | None = None
    """Write the list to this file as JSON; - for standard output."""

    def outputs(self) -> tuple[Path | None, ...]:
        """The JSON file."""
        return (self.json,)

    def run(self, console: Console) -> None:
        """Print the list."""
        from iap.cli.tables import plain_table
        from iap.zoo import zoo_names

        rows = [_row(name) for name in zoo_names()]
        console.print(
            plain_table(rows, "zoo: use zoo:NAME where a command expects a policy") if rows else "the zoo is empty"
        )
        save(console, rows, self.json)


def _row(name: str) -> dict[str, Any]:
    from iap.policies import ENCODERS
    from iap.policies.serialization import load
    from iap.zoo import zoo_file

    policy = load(zoo_file(name))
    measured = policy.facts.get("measured") or {}
    return {
        "name": name,
        "env": policy.env_id,
        "encoder": ENCODERS.name_of(type(policy.config.encoder)),
        "parameters": len(policy.theta),
        "kB": zoo_file(name).stat().st_size / 1000,
        "return": measured.get("mean"),
        "± (95 %)": measured.get("ci95"),
        "episodes": measured.get("episodes"),
    }
