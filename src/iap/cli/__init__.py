"""The command `iap`: one file a command, one line here to register it.

Installed packages add commands through the entry points of the group `iap.commands`: the name of an entry point is the
command, and its value "module:Class" is a subclass of `iap.cli.console.Command`. Only the module of the command that is
given is imported.
"""

import ast
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from iap import __version__
from iap._extras import explain_missing
from iap._registry import Registry

if TYPE_CHECKING:
    from iap.cli.console import Command

COMMANDS: "Registry[type[Command]]" = Registry("command", group="iap.commands")
COMMANDS.register("train", "iap.cli.commands.training.train:Train")
COMMANDS.register("teacher", "iap.cli.commands.training.teacher:Teacher")
COMMANDS.register("presets", "iap.cli.commands.training.presets:Presets")
COMMANDS.register("distill", "iap.cli.commands.training.distill:Distill")
COMMANDS.register("eval", "iap.cli.commands.evaluation.eval:Eval")
COMMANDS.register("watch", "iap.cli.commands.evaluation.watch:Watch")
COMMANDS.register("attend", "iap.cli.commands.evaluation.attend:Attend")
COMMANDS.register("ablate", "iap.cli.commands.evaluation.ablate:Ablate")
COMMANDS.register("plot", "iap.cli.commands.evaluation.plot:Plot")
COMMANDS.register("describe", "iap.cli.commands.policies.describe:Describe")
COMMANDS.register("probe", "iap.cli.commands.evaluation.probe:Probe")
COMMANDS.register("sweep", "iap.cli.commands.training.sweep:Sweep")
COMMANDS.register("zoo", "iap.cli.commands.policies.zoo:Zoo")
COMMANDS.register("export", "iap.cli.commands.policies.export:Export")
COMMANDS.register("import", "iap.cli.commands.policies.import_:Import")
COMMANDS.register("scene", "iap.cli.commands.machine.scene:Scene")
COMMANDS.register("bench", "iap.cli.commands.machine.bench:Bench")
COMMANDS.register("fidelity", "iap.cli.commands.machine.fidelity:Fidelity")
COMMANDS.register("doctor", "iap.cli.commands.machine.doctor:Doctor")
COMMANDS.register("upgrade", "iap.cli.commands.policies.upgrade:Upgrade")

HELP = ("-h", "--help")
VERSION = ("-V", "--version")


def main() -> None:
    """Parse the command line and run the command; an expected error is one line on standard error.

    Modules of the current folder can be imported, after all others: "catch:Catch-v0" may be in catch.py.
    """
    arguments = sys.argv[1:]
    if str(Path.cwd()) not in sys.path and "" not in sys.path:
        sys.path.append(str(Path.cwd()))
    try:
        if not arguments or arguments[0] in HELP:
            sys.stdout.write(overview())
            return
        if arguments[0] in VERSION:
            sys.stdout.write(f"iap {__version__}\n")
            return
        with explain_missing(f"iap {arguments[0]}"):
            execute(parse(arguments))
    except Exception as error:
        from iap.cli.errors import explain

        explained = explain(error)
        if explained is None:
            raise
        sys.exit(explained)
    except KeyboardInterrupt:
        sys.exit("iap: stopped")


def parse(arguments: list[str]) -> "Command":
    """The command of a command line, ready to run."""
    name, *options = arguments
    return COMMANDS[name].parse(name, options)


def execute(command: "Command") -> None:
    """Check that the output files can be written, then run the command."""
    from iap.cli.console import check_writable, console_for

    outputs = [path for path in command.outputs() if path is not None]
    for path in outputs:
        check_writable(path)
    command.run(console_for(outputs))


def overview() -> str:
    """The help of `iap` itself: all commands with the first lines of their docstrings."""
    width = max(map(len, COMMANDS)) + 2
    lines = [f"  {name:<{width}}{summary(name)}" for name in COMMANDS]
    return "\n".join(
        [
            "usage: iap COMMAND [OPTIONS]",
            "",
            "Train, evaluate and inspect tiny vision policies.",
            "",
            "commands:",
            *lines,
            "",
            "iap COMMAND --help lists the options of a command, with an example. iap --version prints the version.",
            "",
        ]
    )


def summary(name: str) -> str:
    """The first line of a command's docstring, read from its source, since importing all commands takes long."""
    entry = COMMANDS.entry(name)
    if not isinstance(entry, str):
        return (entry.__doc__ or "").partition("\n")[0]
    module, _, attribute = entry.partition(":")
    spec = importlib.util.find_spec(module)
    if spec is None or spec.origin is None:
        return f"({module} cannot be imported)"
    for node in ast.parse(Path(spec.origin).read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ClassDef) and node.name == attribute:
            return (ast.get_docstring(node) or "").partition("\n")[0]
    return ""
