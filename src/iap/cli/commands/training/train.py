"""`iap train`: the choice of what is trained decides which options there are, so the command line is parsed twice."""

import shlex
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, get_type_hints

import docstring_parser
import tyro
from rich.console import Console
from tyro.constructors import ConstructorRegistry, StructConstructorSpec, StructFieldSpec, StructTypeInfo

from iap._validation import require_count
from iap.attention import KERNELS
from iap.cli.console import Command
from iap.cli.env_options import chosen_config, parse_env_options
from iap.cli.pool_options import LOCAL_POOL, PoolOptions
from iap.cli.training import COMPARED_EPISODES, train_in
from iap.envs.core import EnvConfig
from iap.evolution import STRATEGIES
from iap.policies import CONTROLLERS, ENCODERS, PolicyConfig
from iap.training.auto_config import config_of, default_policy
from iap.training.config import TrainConfig
from iap.training.parts import HIERARCHIES
from iap.training.presets import PRESETS

HELP = ("-h", "--help")
NO_WARM_START = "none"
PARTS = ("encoder", "controller", "strategy", "kernel", "hierarchy")
UNRECORDED = {"out", "compare", *(field.name for field in fields(PoolOptions))}  # options that do not change the result
DECIDED = {
    TrainConfig: {"env", "warm_start"},
    PolicyConfig: {"image_shape", "sensors", "actions", "image_format"},
}  # never options


def _choice(text: str, names: Iterable[str]) -> Any:
    return tyro.conf.arg(metavar="NAME", help=f"{text}: {', '.join(names)}.", help_behavior_hint="")


@dataclass(frozen=True)
class Choices:
    """What is trained. These options decide which other options there are, and their defaults."""

    env: Annotated[str | None, tyro.conf.arg(metavar="ID", help_behavior_hint="")] = None
    """Id of a Gymnasium environment, instead of a preset or of its environment; "module:id" imports the module, also of
    the current folder, that registers it."""
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
        parts = {part: getattr(self, part) for part in PARTS}
        try:
            config = chosen_config(name, self.env, self.env_option, **parts)
        except Exception:
            if name is not None or self.env is None:
                raise
            config = self._unseen(parts)
        if self.warm_start is not None:
            config = replace(config, warm_start=None if self.warm_start == NO_WARM_START else self.warm_start)
        return config

    def _unseen(self, parts: dict[str, str | None]) -> TrainConfig:
        """A config for an environment that cannot be made: the command says why when it runs."""
        env = EnvConfig.of(str(self.env), **parse_env_options(self.env_option))
        return config_of(env, default_policy((64, 64, 3), sensors=0, actions=1), **parts)


@dataclass(frozen=True)
class Train(Command):
    """Train a policy: iap train PRESET, iap train --env ID, iap train PRESET --env ID, or iap train --resume DIR.

    PRESET, --env, --env-option, --encoder, --kernel, --controller, --hierarchy, --strategy and --warm-start choose what
    is trained. The other options and their defaults depend on that choice: iap train seek --help lists all options of
    that preset, iap train seek --hierarchy two --help those of a hierarchy, iap train --env ID --help those of an
    environment. An interrupted run is continued by --resume, and extended by --resume DIR --iterations N.
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
    compare: int = COMPARED_EPISODES
    """Episodes that compare the trained policy with zero action, random actions and a blind policy; 0 for none."""
    command: tyro.conf.Suppress[str | None] = None
    example: ClassVar[str] = "seek"

    @classmethod
    def default_config(cls, choices: Choices, name: str | None) -> TrainConfig:
        """The values of the options that are not given."""
        return choices.config(name)

    @classmethod
    def parse(cls, name: str, arguments: Sequence[str]) -> Command:
        """A new run, or a resumed one."""
        program = f"iap {name}"
        if any(word.partition("=")[0] == "--resume" for word in arguments):
            from iap.cli.commands.training.resume import Resume

            return Resume.parse(name, arguments)
        words = [word for word in arguments if word not in HELP]
        wants_help = len(words) < len(arguments)
        first = words.pop(0) if words and not words[0].startswith("-") else None
        choices, _ = tyro.cli(Choices, args=words, prog=program, return_unknown_args=True)
        is_short = wants_help and first is None and choices.env is None
        if is_short:
            first = cls.example  # iap train --help shows the most important options, with the values of this preset
        return tyro.cli(
            cls,
            default=cls(first, choices, cls.default_config(choices, first), command=recorded_command(name, arguments)),
            args=arguments,
            prog=program,
            config=(tyro.conf.AvoidSubcommands, tyro.conf.SuppressFixed),
            registry=SHORT_OPTIONS if is_short else OPTIONS,
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
        require_count("compare", self.compare, least=0)
        RunDirectory(self.folder).require_unused()
        train_in(console, RunDirectory(self.folder), config, self.pool, self.compare, self.command)


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


class OptionError(RuntimeError):
    """An invalid value of an option; not a ValueError, for which tyro prints a message of several lines."""


def _config_options(is_short: bool, info: StructTypeInfo) -> StructConstructorSpec | None:
    """The fields of a config that are options: those that neither the choices nor the environment decide.

    The short help leaves out the configs within the config.
    """
    kind: Any = type(info.default)  # the declared type may be a union
    if kind.__module__.startswith("iap.cli.") or not is_dataclass(info.default):
        return None
    types = get_type_hints(kind)
    described = docstring_parser.parse(kind.__doc__ or "").params
    helps = {attribute.arg_name: " ".join((attribute.description or "").split()) for attribute in described}
    names = [field.name for field in fields(info.default) if field.name not in DECIDED.get(kind, ())]
    if is_short:
        names = [name for name in names if not is_dataclass(getattr(info.default, name))]
    options = tuple(StructFieldSpec(name, types[name], getattr(info.default, name), helps.get(name)) for name in names)
    return StructConstructorSpec(partial(_replace, info.default), options)


def _replace(config: Any, **values: Any) -> Any:
    try:
        return replace(config, **values)
    except (ValueError, TypeError) as error:
        raise OptionError(str(error)) from error


def _registry(is_short: bool) -> ConstructorRegistry:
    registry = ConstructorRegistry()
    registry.struct_rule(partial(_config_options, is_short))
    return registry


OPTIONS, SHORT_OPTIONS = _registry(False), _registry(True)
