"""The command `iap`."""

import sys
from typing import Annotated, Any

import tyro
from tyro.conf import subcommand

from iap.cli.choices import Train
from iap.cli.controls import Controls
from iap.cli.measuring import Bench, Doctor, Fidelity
from iap.cli.policies import Describe, Eval, Import, Watch, Zoo
from iap.cli.runs import Plot, Probe, Sweep
from iap.cli.terminal import check_writable, console_for
from iap.cli.training import parse_train

Command = (
    Annotated[Train, subcommand("train")]
    | Annotated[Eval, subcommand("eval")]
    | Annotated[Watch, subcommand("watch")]
    | Annotated[Controls, subcommand("controls")]
    | Annotated[Plot, subcommand("plot")]
    | Annotated[Describe, subcommand("describe")]
    | Annotated[Probe, subcommand("probe")]
    | Annotated[Sweep, subcommand("sweep")]
    | Annotated[Zoo, subcommand("zoo")]
    | Annotated[Import, subcommand("import")]
    | Annotated[Bench, subcommand("bench")]
    | Annotated[Fidelity, subcommand("fidelity")]
    | Annotated[Doctor, subcommand("doctor")]
)


def main() -> None:
    """Read the command line and run; what the user got wrong is told in one line."""
    try:
        command = parse(sys.argv[1:])
        for path in (command.json, command.plot):
            check_writable(path)
        command.run(console_for(command.json))
    except (ValueError, TypeError, OSError, RuntimeError) as error:
        sys.exit(f"iap: {' '.join(str(error).split())}")
    except KeyboardInterrupt:
        sys.exit("iap: stopped")


def parse(arguments: list[str]) -> Any:
    """The command that the words ask for."""
    if arguments[:1] == ["train"]:  # what is trained decides which options there are
        return parse_train(arguments[1:])
    return tyro.cli(
        Command,
        args=arguments,
        prog="iap",
        description="Tiny encoder policies that look at every pixel.",
        config=(tyro.conf.OmitSubcommandPrefixes, tyro.conf.OmitArgPrefixes),
    )
