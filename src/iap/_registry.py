"""Names → what they stand for: one line a registration, loaded when it is used, open to other packages."""

import difflib
import importlib
from collections.abc import Iterator, Mapping
from importlib.metadata import entry_points
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class UnknownNameError(KeyError, ValueError):
    """A name that is not registered; the message lists those that are."""

    def __str__(self) -> str:
        return str(self.args[0])


class Registry(Mapping[str, T], Generic[T]):
    """A mapping from names to objects.

    An entry is the object itself, or the text "module:attribute", which is imported when the entry is first used.
    Installed packages add entries through the entry points of `group`.

        ENCODERS: Registry[type[Encoder]] = Registry("encoder", group="iap.encoders")
        ENCODERS.register("rank", Rank)
    """

    def __init__(self, what: str, *, group: str | None = None, entries: Mapping[str, T | str] | None = None) -> None:
        self._what, self._group = what, group
        self._entries: dict[str, Any] = dict(entries or {})

    def register(self, name: str, entry: T | str) -> None:
        """Add an entry; a name that is taken by something else is refused."""
        if name in self._entries and self._entries[name] is not entry:
            raise ValueError(f"there is already a {self._what} {name!r}")
        self._entries[name] = entry

    def name_of(self, entry: T) -> str:
        """The name that an object is registered under."""
        for name in self:
            if self[name] is entry:
                return name
        shown = getattr(entry, "__name__", entry)
        raise ValueError(f"{shown} is not a registered {self._what}; registered are {', '.join(self)}")

    def entry(self, name: str) -> T | str:
        """The entry as it is: the text "module:attribute" if it was not used yet."""
        self._load_entry_points()
        if name not in self._entries:
            near = difflib.get_close_matches(str(name), self._entries, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else "."
            raise UnknownNameError(f"there is no {self._what} {name!r}{hint} There are: {', '.join(self._entries)}")
        return self._entries[name]

    def __getitem__(self, name: str) -> T:
        entry: Any = self.entry(name)
        if isinstance(entry, str):
            module, _, attribute = entry.partition(":")
            entry = self._entries[name] = getattr(importlib.import_module(module), attribute)
        return entry

    def __contains__(self, name: object) -> bool:
        self._load_entry_points()
        return name in self._entries

    def __iter__(self) -> Iterator[str]:
        self._load_entry_points()
        return iter(list(self._entries))

    def __len__(self) -> int:
        self._load_entry_points()
        return len(self._entries)

    def _load_entry_points(self) -> None:
        """Add what installed packages offer, once; each is imported only when it is used."""
        if self._group is not None:
            group, self._group = self._group, None
            for point in entry_points(group=group):
                self._entries.setdefault(point.name, point.value)
