"""`iap describe`: the parameters of a policy."""

from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.console import Console

from iap.cli.console import Command, save
from iap.cli.env_options import chosen_config


@dataclass(frozen=True)
class Describe(Command):
    """List the parameter arrays of a policy, and the parameters of a CNN policy for the same task.

    Example: iap describe seek
    """

    policy: tyro.conf.Positional[str | None] = None
    """A preset's name, a policy file, the folder of a run, or zoo:NAME."""
    env: str | None = None
    """The environment of a preset instead of its own; or, without a preset, one to list the default policy for."""
    env_option: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """KEY=VALUE, an option of the environment; can be repeated."""
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

        if self.policy is None or self.policy in PRESETS:
            config = fit_to_env(chosen_config(self.policy, self.env, self.env_option)).policy
        else:
            config = locate_policy(self.policy)[0].config
        table, rows = policy_table(config)
        console.print(table)
        save(console, rows, self.json)
