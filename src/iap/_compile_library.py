"""How compiled functions are linked: each with private copies of what it calls, and inner ones into their callers.

Machine code contains copies of the functions that it calls, optimised in its own context. Numba gives these copies weak
symbols, so that a call ends in the copy that happened to be loaded first, and last bits of results depend on the order
of loading. Here the copies are private: a call ends in the copy that was compiled with it.
"""

import contextlib
from collections.abc import Iterator
from typing import Any

import llvmlite.binding
from numba.core.codegen import JITCodeLibrary


class IsolatedLibrary(JITCodeLibrary):
    """Machine code whose calls stay within it: copies of other functions are private to it."""

    def _finalize_final_module(self) -> None:
        if self._shared_module is None:  # it was compiled, not loaded
            linkage: Any = llvmlite.binding.Linkage
            self._shared_module = _for_linking(self._final_module)
            for function in self._final_module.functions:
                if not function.is_declaration and function.linkage == linkage.linkonce_odr:
                    function.linkage = "internal"
        super()._finalize_final_module()


class InnerLibrary(JITCodeLibrary):
    """Code that is linked into other functions: it is neither optimised by itself nor translated to machine code."""

    @property
    def codegen(self) -> Any:
        """The code generator, which finds no variable to set in code that it has not loaded."""
        return _NoEnvironment(self._codegen)

    def get_pointer_to_function(self, name: str) -> int:
        """No address."""
        return 0

    def serialize_using_object_code(self) -> Any:
        """The code itself."""
        return self.serialize_using_bitcode()

    def _optimize_final_module(self) -> None:
        """Leave it to the functions that this one is linked into."""

    def _finalize_final_module(self) -> None:
        self._finalize_dynamic_globals()
        self._verify_declare_only_symbols()
        self._shared_module = _for_linking(self._final_module)
        self._finalized = True


class _NoEnvironment:
    """A code generator that sets no environment of a function: its Python objects, which no function here uses."""

    def __init__(self, codegen: Any) -> None:
        self._codegen = codegen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._codegen, name)

    def set_env(self, env_name: str, env: Any) -> None:
        """Nothing."""


def _for_linking(module: Any) -> Any:
    """A copy of a module whose functions may be linked into several others, as in Numba."""
    linkage: Any = llvmlite.binding.Linkage
    shared = module.clone()
    for function in shared.functions:
        if not function.is_declaration and function.linkage == linkage.external:
            function.linkage = "linkonce_odr"
    return shared


@contextlib.contextmanager
def libraries_of(kind: type[JITCodeLibrary], codegen: Any) -> Iterator[None]:
    """Compile and load with this kind of library; code of other users of Numba in this process is not affected."""
    default = codegen._library_class
    codegen._library_class = kind
    try:
        yield
    finally:
        codegen._library_class = default
