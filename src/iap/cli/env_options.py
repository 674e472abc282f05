"""Options of an environment on the command line: `--env-option KEY=VALUE`."""

import json
from collections.abc import Sequence
from typing import Any


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
