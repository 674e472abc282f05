"""What is trained, as chosen by the words that come before all options: a preset or an environment, and its parts."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import docstring_parser
import tyro
from tyro.constructors import ConstructorRegistry, StructConstructorSpec, StructFieldSpec, StructTypeInfo

from iap.attention import ReLU, Softmax
from iap.policies.specs import MLP, Hierarchy, PolicyConfig
from iap.rollouts import EnvConfig
from iap.training.config import TrainConfig

KERNELS = {"relu": ReLU()} | {name: Softmax(name) for name in ("positive", "trigonometric", "hyperbolic", "favor++")}
LEVELS = {"one": None, "two": Hierarchy(), "two-mlp": Hierarchy(low=MLP())}


@dataclass(frozen=True)
class Train:
    """Train a policy: iap train PRESET, iap train --env ID, or iap train --resume DIR.

    iap train --help lists all options.
    Example: iap train seek --iterations 50 --out runs/seek

    Attributes:
        preset: a preset's name.
        env: or any Gymnasium environment's id; "module:id" imports the module that registers it.
        env_option: KEY=VALUE for the environment; any number of them.
        encoder: rank, multi-rank, trans, exact-rank, cnn or blind.
        kernel: of the attention: relu, positive, trigonometric, hyperbolic or favor++.
        controller: linear, mlp, lstm or products.
        level: one; or two (a level that looks and commands, a linear one that acts), or two-mlp.
        strategy: open-es, ars, pgpe, cma-es or snes.
        warm_start: a policy to start from, of the same shapes: a file, a run's folder, or zoo:NAME.
        resume: a run's folder, to go on with.
    """

    preset: tyro.conf.Suppress[str] = ""
    env: str | None = None
    env_option: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    encoder: str | None = None
    kernel: str | None = None
    controller: str | None = None
    level: str | None = None
    strategy: str | None = None
    warm_start: Annotated[str | None, tyro.conf.arg(name="from")] = None
    resume: Path | None = None
    json = plot = None

    @property
    def name(self) -> str:
        """What the run is called."""
        return self.preset or (self.env or "").split("/")[-1].split(":")[-1]

    def config(self) -> TrainConfig:
        """The run before its options are known."""
        from iap.training.presets.registry import for_env, preset, with_parts

        if self.preset and self.env is not None:
            raise ValueError(f"give a preset ({self.preset}) or --env ({self.env}), not both")
        if not self.preset and self.env is None:
            raise ValueError("say what to train: a preset's name, --env ID, or --resume DIR (see iap train --help)")
        config = for_env(EnvConfig.of(self.env)) if self.env else preset(self.preset)
        options = dict(config.env.kwargs) | key_values(self.env_option)
        config = replace(config, env=EnvConfig.of(config.env.id, **options), warm_start=self.warm_start)
        config = with_parts(config, self.encoder, self.controller, self.strategy)
        return replace(config, policy=self._with_kernel_and_level(config.policy))

    def _with_kernel_and_level(self, policy: PolicyConfig) -> PolicyConfig:
        if self.hierarchy is not None:
            policy = replace(policy, level=_named("level", self.hierarchy, LEVELS))
        if self.kernel is not None:
            if not hasattr(policy.encoder, "kernel"):
                raise ValueError(f"kernel is of attention, and {type(policy.encoder).__name__} has none")
            kernel = _named("kernel", self.kernel, KERNELS)
            policy = replace(policy, encoder=replace(policy.encoder, kernel=kernel))
        return policy


# What the words above or the environment decide, and no option can.
DECIDED = {TrainConfig: {"env", "warm_start"}, PolicyConfig: {"image_shape", "sensors", "actions"}}
OPTIONS = ConstructorRegistry()


@OPTIONS.struct_rule
def _undecided(info: StructTypeInfo) -> StructConstructorSpec | None:
    """The options of a part of the config: its fields but for those that are decided."""
    if info.type not in DECIDED:
        return None
    types, told = get_type_hints(info.type), docstring_parser.parse(info.type.__doc__ or "").params
    helps = {attribute.arg_name: attribute.description for attribute in told}
    names = [field.name for field in fields(info.type) if field.name not in DECIDED[info.type]]
    options = tuple(StructFieldSpec(name, types[name], getattr(info.default, name), helps.get(name)) for name in names)
    return StructConstructorSpec(partial(replace, info.default), options)


def _named(what: str, name: str, known: Mapping[str, Any]) -> Any:
    if name not in known:
        raise ValueError(f"{what} must be one of {', '.join(known)}, not {name!r}")
    return known[name]


def key_values(options: Sequence[str]) -> dict[str, Any]:
    """An environment's options, each given as KEY=VALUE."""
    return dict(map(_key_value, options))


def _key_value(option: str) -> tuple[str, Any]:
    """KEY=VALUE, the value as JSON if it is some, else as text."""
    key, equals, value = option.partition("=")
    if not equals or not key:
        raise ValueError(f"--env-option must be KEY=VALUE, not {option!r}")
    try:
        parsed = json.loads(value)
    except ValueError:
        parsed = value
    return key, tuple(parsed) if isinstance(parsed, list) else parsed
