"""Frozen dataclasses as JSON: each is tagged with its kind, and only what its annotations allow is read back."""

import math
import types
from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

LONGEST_QUOTE = 80


class Codec:
    """Writes and reads the dataclasses of a table of kinds.

    The table is a function, so that classes that are registered later are included. A field whose annotation is a base
    class, such as Encoder, takes any registered subclass.
    """

    def __init__(self, kinds: Callable[[], Mapping[str, type]]) -> None:
        self._kinds = kinds

    def kind_of(self, cls: type) -> str:
        """The name of a class."""
        for kind, known in self._kinds().items():
            if known is cls:
                return kind
        raise TypeError(f"{cls.__name__} is not registered; registered are {', '.join(self._kinds())}")

    def write(self, value: Any) -> Any:
        """A dataclass, or what is in one, as JSON."""
        if is_dataclass(value) and not isinstance(value, type):
            content = {field.name: self.write(getattr(value, field.name)) for field in fields(value)}
            return {"kind": self.kind_of(type(value))} | content
        return [self.write(x) for x in value] if isinstance(value, tuple) else value

    def read(self, name: str, data: Any, allowed: tuple[type, ...]) -> Any:
        """A dataclass of one of the allowed classes; missing fields take their defaults, anything else is refused."""
        classes = {kind: cls for kind, cls in self._kinds().items() if issubclass(cls, allowed)}
        if not isinstance(data, Mapping) or data.get("kind") not in list(classes):  # a list: the kind may be unhashable
            raise ValueError(f"{name} must be of kind {', '.join(classes)}, not {_quote(data)}")
        kind = data["kind"]
        cls = classes[kind]
        content = {key: value for key, value in data.items() if key != "kind"}
        known = {field.name for field in fields(cls)}
        if unknown := [str(key) for key in content if key not in known]:
            raise ValueError(f"{name} ({kind}) has no field {_quote(', '.join(unknown))}")
        if missing := [f.name for f in fields(cls) if f.name not in content and f.default is MISSING]:
            raise ValueError(f"{name} ({kind}) lacks {', '.join(missing)}")
        hints = get_type_hints(cls)
        values = {key: self._value(f"{name}.{key}", value, hints[key]) for key, value in content.items()}
        try:
            return cls(**values)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} ({kind}): {error}") from None

    def _value(self, name: str, value: Any, hint: Any) -> Any:
        """`value` as the type of the annotation."""
        if hint is Any:
            return _hashable(value)
        if get_origin(hint) in (Union, types.UnionType):
            if value is None and type(None) in get_args(hint):
                return None
            options = tuple(option for option in get_args(hint) if option is not type(None))
            return (
                self.read(name, value, options) if self._is_kind(options[0]) else self._value(name, value, options[0])
            )
        if self._is_kind(hint):
            return self.read(name, value, (hint,))
        if get_origin(hint) is tuple:
            return self._tuple(name, value, get_args(hint))
        return _scalar(name, value, hint)

    def _is_kind(self, hint: Any) -> bool:
        return isinstance(hint, type) and any(issubclass(cls, hint) for cls in self._kinds().values())

    def _tuple(self, name: str, value: Any, hints: tuple[Any, ...]) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise ValueError(f"{name} must be a list, not {_quote(value)}")
        if hints[-1] is Ellipsis:
            hints = hints[:1] * len(value)
        if len(hints) != len(value):
            raise ValueError(f"{name} must be a list of {len(hints)}, not {_quote(value)}")
        return tuple(self._value(name, x, hint) for x, hint in zip(value, hints, strict=True))


def _hashable(value: Any) -> Any:
    """Any JSON, with lists as tuples."""
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


def _scalar(name: str, value: Any, hint: Any) -> Any:
    if get_origin(hint) is Literal:
        if isinstance(value, str) and value in get_args(hint):
            return value
        raise ValueError(f"{name} must be one of {', '.join(get_args(hint))}, not {_quote(value)}")
    if hint is float and type(value) in (int, float):
        try:
            if math.isfinite(value):
                return float(value)
        except OverflowError:
            pass  # an integer too large for a float, refused below
    elif type(value) is hint:
        return value
    raise ValueError(f"{name} must be {hint.__name__}, not {_quote(value)}")


def _quote(value: Any) -> str:
    text = value if isinstance(value, str) else repr(value)
    return text if len(text) <= LONGEST_QUOTE else text[:LONGEST_QUOTE] + "…"
