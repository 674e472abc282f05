"""`iap train`: the choice of what is trained decides which options there are, so the command line is parsed twice."""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import docstring_parser
import tyro
from rich.console import Console
from tyro.constructors import ConstructorRegistry, StructConstructorSpec, StructFieldSpec, StructTypeInfo

from iap.attention import KERNELS
from iap.cli.console import Command
from iap.cli.env_options import parse_env_options
from iap.cli.pool_options import LOCAL_POOL, PoolOptions
from iap.envs.core import EnvConfig
from iap.evolution import STRATEGIES
from iap.policies import CONTROLLERS, ENCODERS, PolicyConfig
from iap.training.config import TrainConfig
from iap.training.presets import HIERARCHIES, PRESETS, config_for_env, preset, with_parts

HELP = ("-h", "--help")
NO_WARM_START = "none"
UNRECORDED = {"out", *(field.name for field in fields(PoolOptions))}  # options that do not change the result
DECIDED = {TrainConfig: {"env", "warm_start"}, PolicyConfig: {"image_shape", "sensors", "actions"}}  # never options


def _choice(text: str, names: Iterable[str]) -> Any:
    return tyro.conf.arg(metavar="NAME", help=f"{text}: {', '.join(names)}.", help_behavior_hint="")


@dataclass(frozen=True)
class Choices:
    """What is trained. These options decide which other options there are, and their defaults."""

    env: Annotated[str | None, tyro.conf.arg(metavar="ID", help_behavior_hint="")] = None
    """Id of a Gymnasium environment, instead of a preset; "module:id" imports the module that registers it."""
    env_option: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """KEY=VALUE, an option of the environment; can be repeated."""
    encoder: Annotated[str | None, _choice("Encoder with default options", ENCODERS)] = None
    kernel: Annotated[str | None, _choice("Attention kernel", KERNELS)] = None
    controller: Annotated[str | None, _choice("Controller with default options", CONTROLLERS)] = None
    hierarchy: Annotated[str | None, _choice("Levels of the policy", HIERARCHIES)] = None
    strategy: Annotated[str | None, _choice("Evolution strategy with default options", STRATEGIES)] = None
    warm_start: Annotated[str | None, tyro.conf.arg(metavar="POLICY", help_behavior_hint="")] = None
    """A policy of the same shapes to start from: a file, the folder of a run, or zoo:NAME; "none" for no warm start."""

    def config(self, name: str | None) -> TrainConfig:
        """The config of a preset, or of `env`, with the chosen parts."""
        if name is not None and self.env is not None:
            raise ValueError(f"give a preset ({name}) or --env ({self.env}), not both")
        if self.env is not None:
            config = config_for_env(EnvConfig.of(self.env))
        elif name is not None:
            config = preset(name)
        else:
            raise ValueError("give a preset's name, --env ID or --resume DIR (see iap train --help)")
        options = dict(config.env.kwargs) | parse_env_options(self.env_option)
        config = replace(config, env=EnvConfig.of(config.env.id, **options))
        if self.warm_start is not None:
            config = replace(config, warm_start=None if self.warm_start == NO_WARM_START else self.warm_start)
        return with_parts(config, self.encoder, self.controller, self.strategy, self.kernel, self.hierarchy)


@dataclass(frozen=True)
class Train(Command):
    """Train a policy: iap train PRESET, iap train --env ID, or iap train --resume DIR.

    PRESET, --env, --env-option, --encoder, --kernel, --controller, --hierarchy, --strategy and --warm-start choose what
    is trained. The other options and their defaults depend on that choice: iap train seek --hierarchy two --help lists
    those of a hierarchy. An interrupted run is continued by --resume.
    Example: iap train seek --iterations 50 --out runs/seek
    """

    preset: Annotated[
        tyro.conf.Positional[str | None],
        tyro.conf.arg(metavar="PRESET", help=f"One of {', '.join(PRESETS)}.", help_behavior_hint=""),
    ]
    choices: Annotated[Choices, tyro.conf.arg(name="")]
    config: Annotated[TrainConfig, tyro.conf.arg(name="")]
    pool: Annotated[PoolOptions, tyro.conf.arg(name="")] = LOCAL_POOL
    out: Path | None = None
    """Folder of the run; by default runs/NAME-seedSEED."""
    command: tyro.conf.Suppress[str | None] = None

    @classmethod
    def parse(cls, name: str, arguments: Sequence[str]) -> Command:
        """A new run, or a resumed one."""
        program = f"iap {name}"
        if any(word.partition("=")[0] == "--resume" for word in arguments):
            return Resume.parse(name, arguments)
        words = [word for word in arguments if word not in HELP]
        wants_help = len(words) < len(arguments)
        first = words.pop(0) if words and not words[0].startswith("-") else None
        choices, _ = tyro.cli(Choices, args=words, prog=program, return_unknown_args=True)
        if wants_help and first is None and choices.env is None:
            first = "seek"  # iap train --help shows the options of this preset
        return tyro.cli(
            cls,
            default=cls(first, choices, choices.config(first), command=recorded_command(name, arguments)),
            args=arguments,
            prog=program,
            config=(tyro.conf.AvoidSubcommands, tyro.conf.SuppressFixed),
            registry=OPTIONS,
        )

    @property
    def folder(self) -> Path:
        """The folder of the run."""
        name = self.preset or (self.choices.env or "").split("/")[-1].split(":")[-1]
        return self.out or Path("runs") / f"{name}-seed{self.config.seed}"

    def run(self, console: Console) -> None:
        """Train from the start. The folder is made after all options were checked and the workers were started."""
        from iap.training.config import fit_to_env
        from iap.training.initialization import check_start
        from iap.training.run_directory import RunDirectory

        config = fit_to_env(self.config)
        check_start(config)
        RunDirectory(self.folder).require_unused()
        with self.pool.open(config.job) as pool:
            _train(console, RunDirectory.create(self.folder, config, self.command), config, pool)


@dataclass(frozen=True)
class Resume(Command):
    """Continue a run from its last checkpoint, with the options that it was started with.

    Example: iap train --resume runs/seek-seed0
    """

    resume: Path
    """Folder of the run."""
    pool: Annotated[PoolOptions, tyro.conf.arg(name="")] = LOCAL_POOL

    def run(self, console: Console) -> None:
        """Train the iterations that are left."""
        from iap.training.run_directory import RunDirectory

        run, config = RunDirectory.open(self.resume)
        with self.pool.open(config.job) as pool:
            _train(console, run, config, pool)


def recorded_command(name: str, arguments: Sequence[str]) -> str:
    """The command line for the policy files, without the options that do not change the result."""
    kept, words = [], iter(arguments)
    for word in words:
        option, equals, _ = word.partition("=")
        if option.startswith("--") and option[2:].replace("-", "_") in UNRECORDED:
            if not equals:
                next(words, None)
        else:
            kept.append(word)
    return shlex.join(["iap", name, *kept])


OPTIONS = ConstructorRegistry()


class OptionError(RuntimeError):
    """An invalid value of an option; not a ValueError, for which tyro prints a message of several lines."""


@OPTIONS.struct_rule
def _config_options(info: StructTypeInfo) -> StructConstructorSpec | None:
    """The fields of a config that are options: those that neither the choices nor the environment decide."""
    if info.type.__module__.startswith("iap.cli.") or not is_dataclass(info.default):
        return None
    types = get_type_hints(info.type)
    described = docstring_parser.parse(info.type.__doc__ or "").params
    helps = {attribute.arg_name: " ".join((attribute.description or "").split()) for attribute in described}
    names = [field.name for field in fields(info.type) if field.name not in DECIDED.get(info.type, ())]
    options = tuple(StructFieldSpec(name, types[name], getattr(info.default, name), helps.get(name)) for name in names)
    return StructConstructorSpec(partial(_replace, info.default), options)


def _replace(config: Any, **values: Any) -> Any:
    try:
        return replace(config, **values)
    except (ValueError, TypeError) as error:
        raise OptionError(str(error)) from error


def _train(console: Console, run: Any, config: TrainConfig, pool: Any) -> None:
    """Train to the end, then plot the learning curve."""
    from iap.cli.progress import training_report
    from iap.training.loop import train
    from iap.viz.curves import plot_curves

    try:
        with training_report(console, config, run) as report:
            train(config, pool, run, report.row, report.start, run.command)
    except KeyboardInterrupt:
        console.print(f"stopped; continue with: iap train --resume {run.path}", soft_wrap=True)
        return
    curve = run.path / "curve.png"
    with run.explained():
        plot_curves({run.path.name: [run.read_metrics()]}, curve)
    env = f" --env {config.env.id}" if ":" in config.env.id else ""
    console.print(f"policy   {run.policy_file('best')}\ncurve    {curve}", soft_wrap=True)
    console.print(f"watch it: iap watch {run.path}{env}", soft_wrap=True)
