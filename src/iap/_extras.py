"""Optional dependencies: whatever is missing is named together with the command that installs it."""

import importlib
from types import ModuleType


class MissingExtraError(ImportError):
    """An optional dependency is not installed."""


def require_module(module: str, extra: str, purpose: str) -> ModuleType:
    """Import a module of an extra, or say how to install it.

    Args:
        module: the module, such as "torch".
        extra: the extra of this package that brings it, such as "torch".
        purpose: what needs it, such as "distillation".
    """
    try:
        return importlib.import_module(module)
    except ImportError as error:
        name = module.partition(".")[0]
        if error.name is not None and error.name.partition(".")[0] != name:
            raise  # the module is there, but broken
        raise MissingExtraError(f'{purpose} needs {name}: install it with pip install "iap-rl[{extra}]"') from error
