"""`iap describe`: the parameters of a policy."""

from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.console import Console

from iap.cli.console import Command, save


@dataclass(frozen=True)
class Describe(Command):
    """List the parameter arrays of a policy, and the parameters of a CNN policy for the same task.

    Example: iap describe seek
    """

    policy: tyro.conf.Positional[str]
    """A preset's name, a policy file, the folder of a run, or zoo:NAME."""
    json: Path | None = None
    """Write the rows to this file as JSON; - for standard output."""

    def outputs(self) -> tuple[Path | None, ...]:
        """The JSON file."""
        return (self.json,)

    def run(self, console: Console) -> None:
        """Count the parameters and print a table."""
        from iap.cli.tables import policy_table
        from iap.training.config import fit_to_env
        from iap.training.presets import PRESETS
        from iap.zoo.locate import locate_policy

        if self.policy in PRESETS:
            config = fit_to_env(PRESETS[self.policy]).policy
        else:
            config = locate_policy(self.policy)[0].config
        table, rows = policy_table(config)
        console.print(table)
        save(console, rows, self.json)
