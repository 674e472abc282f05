"""Trained policies that ship with the package, a few kB each, with the command that made each."""

import difflib
from importlib.resources import files
from pathlib import Path

SUFFIX = ".policy"


def zoo_names() -> list[str]:
    """The names that `zoo:NAME` takes."""
    return sorted(entry.name.removesuffix(SUFFIX) for entry in files(__name__).iterdir() if entry.name.endswith(SUFFIX))


def zoo_file(name: str) -> Path:
    """The file of a policy in the zoo."""
    if name not in zoo_names():
        near = difflib.get_close_matches(name, zoo_names(), n=1)
        hint = f"; did you mean {near[0]!r}?" if near else ";"
        raise ValueError(f"there is no {name!r} in the zoo{hint} it has {', '.join(zoo_names()) or 'no policies'}")
    return Path(str(files(__name__) / f"{name}{SUFFIX}"))
