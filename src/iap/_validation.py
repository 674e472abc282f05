"""Checks of arguments, with errors that name the argument, its value and what would be right."""

import math
from typing import Any, get_args

import numpy as np


class NotFiniteError(ArithmeticError, ValueError):
    """An action, a reward or an observation is NaN or infinite. Running the episode again would give the same."""


LONGEST_MESSAGE = 300


def printable(text: object, longest: int = LONGEST_MESSAGE) -> str:
    """A text for a message: cut, and without control sequences of terminals, whatever a file holds."""
    whole = str(text)
    cut = whole if len(whole) <= longest else f"{whole[: longest - 1]}…"
    return "".join(c if c.isprintable() else "�" for c in cut)


def require_count(name: str, value: object, least: int = 1, most: int | None = None, why: str = "") -> int:
    """`value` as an integer in [least, most]."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer):
        raise TypeError(f"{name} must be a whole number, not {value!r}")
    if value < least or (most is not None and value > most):
        wanted = f"at least {least}" if most is None else f"between {least} and {most}"
        raise ValueError(f"{name} must be {wanted}{why}, not {value}")
    return int(value)


def require_positive(name: str, value: object) -> float:
    """`value` as a positive, finite number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number, not {value!r}")
    if not 0 < value < math.inf:
        raise ValueError(f"{name} must be positive and finite, not {value}")
    return float(value)


def require_number(name: str, value: object, least: float, most: float = math.inf) -> float:
    """`value` as a number in [least, most]."""
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise TypeError(f"{name} must be a number, not {value!r}")
    if not least <= value <= most:
        wanted = f"at least {least:g}" if most == math.inf else f"between {least:g} and {most:g}"
        raise ValueError(f"{name} must be {wanted}, not {value}")
    return float(value)


def require_type(name: str, value: object, *types: type) -> None:
    """Refuse a value of another type."""
    if not isinstance(value, types):
        wanted = ", ".join("None" if t is type(None) else t.__name__ for t in types)
        raise TypeError(f"{name} must be {wanted}, not {value!r}")


def require_flags(config: object, *names: str) -> None:
    """Refuse fields of a config that are not True or False."""
    for name in names:
        require_type(name, getattr(config, name), bool)


def require_name(name: str, value: object, names: Any) -> None:
    """Refuse a value that is not one of the names of a `Literal`."""
    if not isinstance(value, str) or value not in get_args(names):
        raise ValueError(f"{name} must be one of {', '.join(get_args(names))}, not {value!r}")


def require_names(name: str, values: object, names: Any) -> None:
    """Refuse a value that is not a non-empty tuple of different names of a `Literal`."""
    if not isinstance(values, tuple) or not values:
        raise ValueError(f"{name} must be a tuple of {', '.join(get_args(names))}, not {values!r}")
    for value in values:
        require_name(name, value, names)
    if len(set(values)) < len(values):
        raise ValueError(f"{name} must name each at most once, not {values!r}")
