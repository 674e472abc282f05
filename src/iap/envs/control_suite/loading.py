"""dm_control's environments by name."""

import contextlib
import difflib
import logging
from collections.abc import Iterator
from typing import Any

from iap.envs.rendering.gl import choose_backend, explained


def task_names() -> list[str]:
    """Every "domain-task" of the suite."""
    return [f"{domain}-{task}" for domain, task in _suite().ALL_TASKS]


@contextlib.contextmanager
def loaded(name: str, seed: int) -> Iterator[Any]:
    """The environment of a task; it is closed at the end, which frees its renderer."""
    suite = _suite()
    names = task_names()
    if name not in names:
        near = difflib.get_close_matches(name, names, n=3, cutoff=0)
        raise ValueError(f"task {name!r} is not in dm_control's suite; the closest names are {', '.join(near)}")
    domain, task = name.split("-", 1)
    with _without_deprecation_notice():
        env = suite.load(domain, task, task_kwargs={"random": seed})
    try:
        yield env
    finally:
        env.close()


def _suite() -> Any:
    choose_backend()
    with explained():
        from dm_control import suite
    return suite


@contextlib.contextmanager
def _without_deprecation_notice() -> Iterator[None]:
    """Suppress the log message about the outdated attribute in the suite's own cheetah.xml, and no other."""

    def is_other(record: logging.LogRecord) -> bool:
        return "'settotalmass' is deprecated" not in record.getMessage()

    logger = logging.getLogger("absl")
    logger.addFilter(is_other)
    try:
        yield
    finally:
        logger.removeFilter(is_other)
