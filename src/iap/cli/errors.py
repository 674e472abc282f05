"""Errors of a command: one line for what the user can mend, and the user's own traceback for errors in their code."""

import sys
import sysconfig
import traceback
from pathlib import Path
from types import TracebackType

from iap._extras import MissingExtraError

EXPECTED = (ValueError, TypeError, OSError, RuntimeError, MissingExtraError)
PACKAGE = Path(__file__).resolve().parents[1]
GYMNASIUM_ERROR = "gymnasium.error"  # the module of its exceptions


def explain(error: Exception) -> str | None:
    """What is printed instead of a traceback through this package; None if the error is a defect of this package.

    An error that was raised in the user's code, or in a library that it called, is shown from the user's first line on.
    """
    line = f"iap: {_described(error)}"
    if isinstance(error, MissingExtraError):
        return line
    if isinstance(error, SyntaxError) and error.filename is not None and not _is_installed(error.filename):
        return (
            "".join(traceback.format_exception_only(error))
            + f"iap: {error.filename} line {error.lineno} cannot be read"
        )
    frames = [frame for frame in traceback.extract_tb(_first_own(error.__traceback__)) if _is_shown(frame.filename)]
    if frames:
        shown = "".join(traceback.format_list(frames) + traceback.format_exception_only(error))
        return f"Traceback (most recent call last):\n{shown}{line}"
    is_expected = isinstance(error, EXPECTED) or type(error).__module__ == GYMNASIUM_ERROR
    return line if is_expected else None


def _described(error: Exception) -> str:
    message = " ".join(str(error).split())
    if isinstance(error, EXPECTED) and not isinstance(error, ModuleNotFoundError):
        return message or type(error).__name__
    return f"{type(error).__name__}: {message}"


def _first_own(trace: TracebackType | None) -> TracebackType | None:
    """The traceback from the first frame of the user's code on."""
    while trace is not None and not _is_own(trace.tb_frame.f_code.co_filename):
        trace = trace.tb_next
    return trace


def _is_own(filename: str) -> bool:
    return not filename.startswith("<") and not _is_installed(filename) and Path(filename).resolve() != _script()


def _is_shown(filename: str) -> bool:
    return not filename.startswith("<frozen") and not Path(filename).resolve().is_relative_to(PACKAGE)


def _script() -> Path | None:
    """The file of the command `iap` itself."""
    file = getattr(sys.modules.get("__main__"), "__file__", None)
    return None if file is None else Path(file).resolve()


def _is_installed(filename: str) -> bool:
    """Whether a file belongs to this package, to an installed one, or to Python."""
    path = Path(filename).resolve()
    installed = {Path(sysconfig.get_path(name)).resolve() for name in ("purelib", "platlib", "stdlib")}
    return any(path.is_relative_to(folder) for folder in {PACKAGE, *installed})
