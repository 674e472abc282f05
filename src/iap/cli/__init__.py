"""The command `iap`."""

import sys
from typing import Annotated

import tyro

from iap.cli.measuring import Bench, Fidelity
from iap.cli.terminal import check_writable, console_for

Command = Annotated[Bench, tyro.conf.subcommand("bench")] | Annotated[Fidelity, tyro.conf.subcommand("fidelity")]


def main() -> None:
    """Read the command line and run; what the user got wrong is told in one line."""
    command = tyro.cli(
        Command,
        prog="iap",
        description="Tiny vision policies that look at every pixel.",
        config=(tyro.conf.OmitSubcommandPrefixes, tyro.conf.OmitArgPrefixes),
    )
    try:
        for path in (command.json, command.plot):
            check_writable(path)
        command.run(console_for(command.json))
    except (ValueError, OSError, RuntimeError) as error:
        sys.exit(f"iap: {error}")
    except KeyboardInterrupt:
        sys.exit("iap: stopped")
