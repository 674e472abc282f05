"""The cache of compiled functions on disk, which can be neither stale nor different from process to process.

Numba's own cache checks only the file of the function itself, so an edit of an inlined function would leave old machine
code in use. Here the cache folder is named after a hash of every source file of the packages that hold compiled code,
the versions of Numba and LLVM, and the processor. A function that is compiled is saved and then loaded again, so that
every process runs what the cache holds, whether it compiled the function itself or not.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import llvmlite.binding
import numba
from numba.core import sigutils, types
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, _CacheLocator
from numba.core.codegen import JITCodeLibrary

from iap._compile_library import InnerLibrary, IsolatedLibrary, libraries_of

CACHE_VARIABLE = "IAP_CACHE_DIR"
PORTABLE = os.environ.get("IAP_PORTABLE") == "1"  # sums are neither contracted nor reordered
PACKAGE = Path(__file__).parent
COMPILED_PACKAGES = ("attention", "policies", "locomotion", "envs")
UNUSED_DAYS = 30  # after which the folder of another key is deleted


@cache
def cache_folder() -> Path:
    """The folder of the compiled functions of this version of the sources, on this processor.

    Below $IAP_CACHE_DIR if that is set, else below the user's cache folder, else below the temporary folder.
    """
    base = Path(os.environ.get(CACHE_VARIABLE) or user_cache() / "iap" / "compiled")
    folder = base / _key()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
        tempfile.TemporaryFile(dir=folder).close()  # an error if the folder is read-only
    except OSError:
        folder = _own_temporary_folder() / _key()
        folder.mkdir(exist_ok=True)
    _delete_unused(folder)
    return folder


def _own_temporary_folder() -> Path:
    """A folder below the temporary one that only this user can write to, since what is in it will be executed."""
    folder = Path(tempfile.gettempdir()) / f"iap-compiled-{os.getuid()}"
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    status = folder.lstat()
    is_own = stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o022
    return folder if is_own else Path(tempfile.mkdtemp(prefix="iap-compiled-"))


def user_cache() -> Path:
    """The user's cache folder."""
    given = os.environ.get("XDG_CACHE_HOME")
    with contextlib.suppress(RuntimeError):  # no home folder
        return Path(given) if given else Path.home() / ".cache"
    return Path(tempfile.gettempdir())


def _key() -> str:
    """What the machine code depends on, as a short hash."""
    digest = hashlib.sha256()
    for fact in (numba.__version__, llvmlite.__version__, processor_name(), _processor_features(), str(PORTABLE)):
        digest.update(fact.encode() + b"\0")
    for package in COMPILED_PACKAGES:
        for path in sorted((PACKAGE / package).rglob("*.py")):
            digest.update(str(path.relative_to(PACKAGE)).encode() + b"\0" + path.read_bytes())
    for path in (PACKAGE / "_compile.py", PACKAGE / "_compile_library.py", Path(__file__)):
        digest.update(path.read_bytes())
    return digest.hexdigest()[:20]


def processor_name() -> str:
    """The kind of processor that functions are compiled for, such as "skylake-avx512"."""
    binding: Any = llvmlite.binding
    return binding.get_host_cpu_name()


def _processor_features() -> str:
    binding: Any = llvmlite.binding
    return binding.get_host_cpu_features().flatten()


def _delete_unused(folder: Path) -> None:
    """Delete the folders of other keys that no process has used for a month."""
    oldest = time.time() - UNUSED_DAYS * 24 * 3600
    with contextlib.suppress(OSError):
        for other in folder.parent.iterdir():
            if other.is_dir() and other != folder and other.stat().st_mtime < oldest:
                shutil.rmtree(other, ignore_errors=True)


class _Locator(_CacheLocator):
    """Puts every function into `cache_folder`; file names of functions of other packages depend on their sources."""

    def __init__(self, function: Any, file: str) -> None:
        place = f"{function.__module__}:{function.__code__.co_firstlineno}"
        sources = "" if Path(file).is_relative_to(PACKAGE) else _foreign_digest(function.__module__, file)
        self._name = hashlib.sha256(f"{place}:{sources}".encode()).hexdigest()[:16]

    def get_cache_path(self) -> Any:
        return str(cache_folder())

    def get_source_stamp(self) -> Any:
        return self._name

    def get_disambiguator(self) -> Any:
        return self._name

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> "_Locator | None":
        return cls(py_func, py_file) if Path(py_file).exists() else None  # a notebook cell has no file


class _Implementation(CompileResultCacheImpl):
    _locator_classes = [_Locator]  # noqa: RUF012


class LoadedCache(FunctionCache):
    """A cache that compiles what is missing, one process at a time, and returns what was then loaded from disk."""

    _impl_class = _Implementation
    _library: type[JITCodeLibrary] = IsolatedLibrary
    _suffix = ""

    def __init__(self, dispatcher: Any) -> None:
        super().__init__(dispatcher.py_func)
        self._dispatcher = dispatcher

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function of these argument types."""
        with libraries_of(self._library, target_context.codegen()):
            loaded = self._load(sig, target_context)
            if loaded is not None:
                return loaded
            with _locked(Path(self._cache_path) / f"{self._impl.filename_base}{self._suffix}.lock"):
                loaded = self._load(sig, target_context)  # another process may have compiled it in the meantime
                if loaded is not None:
                    return loaded
                arguments, return_type = sigutils.normalize_signature(sig)
                result = self._dispatcher._compiler.compile(arguments, return_type)
                self._cache_file = self._file_for(sig)  # a function may have compiled another version of itself
                super().save_overload(sig, result)
                return self._load(sig, target_context) or result

    def save_overload(self, sig: Any, data: Any) -> None:
        """Nothing: `load_overload` has saved it."""

    def _load(self, sig: Any, target_context: Any) -> Any:
        self._cache_file = self._file_for(sig)
        return super().load_overload(sig, target_context)

    def _file_for(self, sig: Any) -> IndexDataCacheFile:
        """The index of the versions for these argument types.

        Classes of other packages have indices of their own: code that they implement is compiled into functions of this
        package, and an index that names a class cannot be read where that class cannot be imported.
        """
        arguments, _ = sigutils.normalize_signature(sig)
        digests = sorted({_foreign_digest(kind.__module__) for kind in _foreign_classes(arguments)})
        name = "-".join([self._impl.filename_base + self._suffix, *digests])
        return IndexDataCacheFile(self._cache_path, name, self._impl.locator.get_source_stamp())


class InnerCache(LoadedCache):
    """The cache of functions that only compiled functions call."""

    _library = InnerLibrary
    _suffix = "-inner"


def _foreign_classes(arguments: Iterable[Any]) -> Iterator[type]:
    """The NamedTuple classes of other packages among argument types, and in them."""
    for argument in arguments:
        if isinstance(argument, types.BaseNamedTuple):
            kind: type = argument.instance_class  # pyright: ignore[reportAttributeAccessIssue]
            if kind.__module__.partition(".")[0] != PACKAGE.name:
                yield kind
        if isinstance(argument, types.BaseTuple):
            yield from _foreign_classes(argument.types)  # pyright: ignore[reportAttributeAccessIssue]


@cache
def _foreign_digest(module: str, file: str | None = None) -> str:
    """A hash of all sources of the package that a module is part of, or of the module's own file if it is part of none.

    Args:
        module: its name.
        file: its file, if that is known.
    """
    digest = hashlib.sha256(module.encode())
    top = getattr(sys.modules.get(module.partition(".")[0]), "__file__", None)
    own = file or getattr(sys.modules.get(module), "__file__", None)
    if top is not None and Path(top).name == "__init__.py":
        sources = sorted(Path(top).parent.rglob("*.py"))
    else:
        sources = [] if own is None else [Path(own)]
    if not sources:
        digest.update(os.urandom(16))  # defined interactively: never the same again
    for source in sources:
        digest.update(str(source).encode() + b"\0" + source.read_bytes())
    return digest.hexdigest()[:16]


_held: set[Path] = set()  # Numba compiles under a lock of its own, so that only one thread is here at a time


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Keep other processes from compiling the same function; one function may compile another version of itself."""
    if path in _held:
        yield
        return
    with path.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        _held.add(path)
        try:
            yield
        finally:
            _held.discard(path)
