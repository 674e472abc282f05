"""`iap doctor`: checks of the installation."""

from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console

from iap.cli.console import Command, progress_bar, save


@dataclass(frozen=True)
class Doctor(Command):
    """Check the installation, measure its speed, and print the command that repairs each failed part.

    Takes about half a minute. Exits with status 1 if a required part does not work.
    Example: iap doctor
    """

    json: Path | None = None
    """Write the results to this file as JSON; - for standard output."""

    def outputs(self) -> tuple[Path | None, ...]:
        """The JSON file."""
        return (self.json,)

    def run(self, console: Console) -> None:
        """Run the checks one after the other and print a table."""
        from iap.doctor.report import doctor, table

        with progress_bar(console) as progress:
            checks = doctor(progress=progress)
        console.print(table(checks))
        for check in checks:
            if check.fix and not check.ok:
                console.print(f"{check.name}: {check.fix}", soft_wrap=True, markup=False, highlight=False)
        save(console, [asdict(check) for check in checks], self.json)
        if any(check.required and not check.ok for check in checks):
            raise SystemExit(1)
