"""One decorator for all compiled functions, with a cache on disk that can be neither stale nor different.

Numba's own cache looks only at the file of the function itself, so an edit of an inlined function would leave old
machine code in use. Here the cache folder is named after a hash of every source file of the packages that hold
compiled code, the versions of Numba and LLVM, and the processor. A function that is compiled is saved and then loaded
again, so that every process runs what the cache holds, whether it compiled the function itself or not.
"""

import contextlib
import fcntl
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, overload

import llvmlite
import llvmlite.binding
import numba
from numba.core import sigutils
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator

Function = TypeVar("Function", bound=Callable[..., Any])

CACHE_VARIABLE = "IAP_CACHE_DIR"
PACKAGE = Path(__file__).parent
COMPILED_PACKAGES = ("attention", "policies", "locomotion", "envs")
UNUSED_DAYS = 30  # after which the folder of another key is deleted


@overload
def compiled(function: Function, /) -> Function: ...
@overload
def compiled(*, fastmath: bool | set[str] = False) -> Callable[[Function], Function]: ...
def compiled(function: Any = None, /, *, fastmath: bool | set[str] = False) -> Any:
    """Compile a function for one CPU core when it is first called, and cache the machine code.

    Args:
        function: the function; constants that it uses are frozen into it.
        fastmath: which algebraic transformations the compiler may use, as in `numba.njit`.
    """
    if function is None:
        return lambda decorated: compiled_with(decorated, fastmath)
    return compiled_with(function, fastmath)


def compiled_with(function: Function, fastmath: bool | set[str]) -> Function:
    """`function` as a Numba dispatcher with the project's cache."""
    dispatcher: Any = numba.njit(fastmath=fastmath, error_model="numpy")(function)
    dispatcher._cache = _LoadedCache(dispatcher)
    return dispatcher


@cache
def cache_folder() -> Path:
    """The folder of the compiled functions of this version of the sources, on this processor.

    Below $IAP_CACHE_DIR if that is set, else below the user's cache folder, else below the temporary folder.
    """
    base = Path(os.environ.get(CACHE_VARIABLE) or _user_cache() / "iap" / "compiled")
    folder = base / _key()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        os.utime(folder)
    except OSError:
        folder = Path(tempfile.gettempdir()) / f"iap-compiled-{os.getuid()}" / _key()
        folder.mkdir(parents=True, exist_ok=True)
    _delete_unused(folder)
    return folder


def _user_cache() -> Path:
    given = os.environ.get("XDG_CACHE_HOME")
    with contextlib.suppress(RuntimeError):  # no home folder
        return Path(given) if given else Path.home() / ".cache"
    return Path(tempfile.gettempdir())


def _key() -> str:
    """What the machine code depends on, as a short hash."""
    digest = hashlib.sha256()
    for fact in (numba.__version__, llvmlite.__version__, *_processor()):
        digest.update(fact.encode() + b"\0")
    for package in COMPILED_PACKAGES:
        for path in sorted((PACKAGE / package).rglob("*.py")):
            digest.update(str(path.relative_to(PACKAGE)).encode() + b"\0" + path.read_bytes())
    digest.update(Path(__file__).read_bytes())
    return digest.hexdigest()[:20]


def _processor() -> tuple[str, str]:
    binding: Any = llvmlite.binding
    return binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()


def _delete_unused(folder: Path) -> None:
    """Delete the folders of other keys that no process has used for a month."""
    oldest = time.time() - UNUSED_DAYS * 24 * 3600
    with contextlib.suppress(OSError):
        for other in folder.parent.iterdir():
            if other.is_dir() and other != folder and other.stat().st_mtime < oldest:
                shutil.rmtree(other, ignore_errors=True)


class _Locator(_CacheLocator):
    """Puts every function into `cache_folder`; functions of other packages are told apart by their file's content."""

    def __init__(self, function: Any, file: str) -> None:
        inside = Path(file).is_relative_to(PACKAGE)
        content = b"" if inside else Path(file).read_bytes()
        place = f"{function.__module__}:{function.__code__.co_firstlineno}".encode()
        self._name = hashlib.sha256(place + b"\0" + content).hexdigest()[:16]

    def get_cache_path(self) -> str:
        return str(cache_folder())

    def get_source_stamp(self) -> str:
        return self._name

    def get_disambiguator(self) -> str:
        return self._name

    @classmethod
    def from_function(cls, py_func: Any, py_file: str) -> "_Locator | None":
        return cls(py_func, py_file) if Path(py_file).exists() else None  # a notebook cell has no file


class _Implementation(CompileResultCacheImpl):
    _locator_classes = [_Locator]  # noqa: RUF012


class _LoadedCache(FunctionCache):
    """A cache that compiles what is missing, one process at a time, and returns what was then loaded from disk."""

    _impl_class = _Implementation

    def __init__(self, dispatcher: Any) -> None:
        super().__init__(dispatcher.py_func)
        self._dispatcher = dispatcher

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled function of these argument types."""
        loaded = super().load_overload(sig, target_context)
        if loaded is not None:
            return loaded
        with _locked(Path(self._cache_path) / f"{self._impl.filename_base}.lock"):
            loaded = super().load_overload(sig, target_context)  # another process may have compiled it meanwhile
            if loaded is not None:
                return loaded
            arguments, return_type = sigutils.normalize_signature(sig)
            result = self._dispatcher._compiler.compile(arguments, return_type)
            super().save_overload(sig, result)
            return super().load_overload(sig, target_context) or result

    def save_overload(self, sig: Any, data: Any) -> None:
        """Nothing: `load_overload` has saved it."""


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


def dispatched(stub: Function) -> Function:
    """A function for compiled code whose implementation depends on the type of its first argument, a NamedTuple.

    Implementations are registered by class, so that a new kind of encoder or controller is compiled into the same
    step as the others. `stub` itself is never executed.

        @dispatched
        def encode(encoder, image, context): ...

        @implements(encode, RankArrays)
        @compiled
        def encode_rank(encoder, image, context): ...

    An implementation that calls `stub` again, for what follows in a chain, must not be decorated with `compiled`: each
    link of the chain is then compiled by itself, whereas a compiled function that calls itself cannot be cached.
    """
    from numba.extending import overload as numba_overload

    implementations: dict[type, Any] = {}

    def choose(first: Any, *_rest: Any) -> Any:
        implementation: Any = implementations.get(getattr(first, "instance_class", None))  # pyright: ignore
        if implementation is None:
            return None
        if not hasattr(implementation, "py_func"):
            implementation = numba.njit(error_model="numpy")(implementation)
        return lambda first, *rest: implementation(first, *rest)

    numba_overload(stub, strict=False)(choose)
    stub.implementations = implementations  # pyright: ignore[reportFunctionMemberAccess]
    return stub


def implements(stub: Any, kind: type) -> Callable[[Function], Function]:
    """Register a compiled function as the implementation of a `dispatched` one for NamedTuples of this class."""

    def register(function: Function) -> Function:
        stub.implementations[kind] = function
        return function

    return register
