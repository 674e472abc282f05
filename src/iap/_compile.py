"""One decorator for all compiled functions, and functions whose implementation is selected at compile time.

The result is cached on disk; see `iap._compile_cache`. A function that another compiled function calls is not
optimised and translated to machine code by itself, only as a part of the function that Python calls: a policy's step,
which is one such function made of many, compiles much faster.
"""

from collections.abc import Callable
from typing import Any, ClassVar, TypeVar, overload

import numba
from numba.core import types
from numba.core.registry import CPUDispatcher
from numba.core.typing.templates import AbstractTemplate, infer_global

from iap._compile_cache import PORTABLE, InnerCache, LoadedCache

Function = TypeVar("Function", bound=Callable[..., Any])


@overload
def compiled(function: Function, /) -> Function: ...
@overload
def compiled(*, fastmath: bool | set[str] = False, inner: bool = False) -> Callable[[Function], Function]: ...
def compiled(function: Any = None, /, *, fastmath: bool | set[str] = False, inner: bool = False) -> Any:
    """Compile a function for one CPU core when it is first called, and cache the machine code.

    Args:
        function: the function; constants that it uses are frozen into it.
        fastmath: which algebraic transformations the compiler may use, as in `numba.njit`.
        inner: whether only compiled functions call it. It then compiles faster, because there is no code that unpacks
            Python objects, and a call from Python is an error.
    """
    if function is None:
        return lambda decorated: _dispatcher_of(decorated, fastmath, inner)
    return _dispatcher_of(function, fastmath, inner)


def _dispatcher_of(function: Callable[..., Any], fastmath: bool | set[str], inner: bool) -> Any:
    """`function` as a Numba dispatcher with the project's cache."""
    callee = _numba_dispatcher(function, fastmath, inner=True)
    callee._cache = InnerCache(callee)
    _refuse_python_calls(callee)
    if inner:
        return callee
    dispatcher = _numba_dispatcher(function, fastmath, inner=False)
    dispatcher._cache = LoadedCache(dispatcher)
    dispatcher.callee = callee
    dispatcher.__class__ = _EntryPoint
    return dispatcher


def _numba_dispatcher(function: Callable[..., Any], fastmath: bool | set[str], *, inner: bool) -> Any:
    if PORTABLE and isinstance(fastmath, set):
        fastmath = fastmath - {"contract", "reassoc"}
    options: dict[str, Any] = {"no_cfunc_wrapper": True, "no_cpython_wrapper": inner}
    return numba.njit(fastmath=fastmath, error_model="numpy", **options)(function)


class _EntryPoint(CPUDispatcher):
    """A function for calls from Python. In compiled functions its name stands for its twin that has no machine code."""

    @property
    def _numba_type_(self) -> types.Dispatcher:
        return types.Dispatcher(self.callee)  # pyright: ignore[reportAttributeAccessIssue]


def _refuse_python_calls(dispatcher: Any) -> None:
    """Make a call from Python an error: there is no machine code for it, and Numba would jump to address 0."""

    def add_overload(result: Any) -> None:
        dispatcher.overloads[tuple(result.signature.args)] = result

    def refuse(*_arguments: Any) -> None:
        raise TypeError(f"{dispatcher.py_func.__qualname__} can be called only from compiled functions")

    dispatcher.add_overload, dispatcher._compile_for_args = add_overload, refuse


def dispatched(stub: Function) -> Function:
    """A function for compiled code whose implementation depends on the type of its first argument, a NamedTuple.

    Implementations are registered by class, so that a new kind of encoder or controller is compiled into the same
    step as the others. `stub` itself is never executed.

        @dispatched
        def encode(encoder, image, context): ...

        @implements(encode, RankArrays)
        @compiled
        def encode_rank(encoder, image, context): ...
    """
    implementations: dict[type, Any] = {}

    class Template(AbstractTemplate):
        """Resolves a call at compile time to the implementation itself, without a function in between."""

        key = stub
        _entry_points: ClassVar[dict[Any, Any]] = {}

        def generic(self, args: Any, kws: Any) -> Any:
            implementation = implementations.get(getattr(args[0], "instance_class", None))  # pyright: ignore
            if implementation is None:
                return None
            dispatcher = implementation._numba_type_
            signature = dispatcher.get_call_type(self.context, args, kws)
            self._entry_points[signature.args] = dispatcher.get_overload(signature)
            return signature

        def get_impl_key(self, sig: Any) -> Any:
            return self._entry_points[sig.args]

    infer_global(stub, types.Function(Template))
    stub.implementations = implementations  # pyright: ignore[reportFunctionMemberAccess]
    return stub


def implements(stub: Any, kind: type) -> Callable[[Function], Function]:
    """Register a compiled function as the implementation of a `dispatched` one for NamedTuples of this class."""

    def register(function: Function) -> Function:
        is_compiled = isinstance(function, CPUDispatcher)
        stub.implementations[kind] = function if is_compiled else _dispatcher_of(function, False, inner=True)
        return function

    return register


def specialised(function: Any, *examples: Any) -> Callable[..., Any]:
    """The entry point of a compiled function for arguments of these types.

    A call of it skips the lookup of the argument types, which takes microseconds for NamedTuples of arrays. It does not
    check them either: later arguments must have the same types.
    """
    signature = tuple(numba.typeof(example) for example in examples)
    function.compile(signature)
    return function.get_overload(signature)
