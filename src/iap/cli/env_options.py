"""Options of an environment on the command line: `--env ID`, `--env-option KEY=VALUE`; and the config they choose."""

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from iap.training.config import TrainConfig


def parse_env_options(options: Sequence[str]) -> dict[str, Any]:
    """The keyword arguments of an environment, each given as KEY=VALUE."""
    return dict(map(_parse_option, options))


def _parse_option(option: str) -> tuple[str, Any]:
    """One KEY=VALUE. The value is read as JSON if it is valid JSON, else as text; lists become tuples."""
    key, equals, value = option.partition("=")
    if not equals or not key:
        raise ValueError(f"--env-option must be KEY=VALUE, not {option!r}")
    try:
        parsed = json.loads(value)
    except ValueError:
        parsed = value
    return key, tuple(parsed) if isinstance(parsed, list) else parsed


def chosen_config(
    name: str | None, env: str | None, env_option: Sequence[str] = (), **parts: str | None
) -> "TrainConfig":
    """The config of a preset, in its own environment or in another; or one for an environment, chosen by its spaces.

    Args:
        name: a preset's name.
        env: the id of an environment.
        env_option: options of the environment.
        parts: names of other parts, as in `with_parts`.
    """
    from dataclasses import replace

    from iap.envs.core import EnvConfig
    from iap.training.auto_config import config_for_env
    from iap.training.parts import with_parts
    from iap.training.presets import preset

    options = parse_env_options(env_option)
    if name is None:
        if env is None:
            raise ValueError("give a preset's name, --env ID or --resume DIR (see iap train --help)")
        return config_for_env(EnvConfig.of(env, **options), **parts)
    config = preset(name)
    where = EnvConfig.of(config.env.id, **(dict(config.env.kwargs) | options)) if env is None else None
    return with_parts(replace(config, env=where or EnvConfig.of(str(env), **options)), **parts)
