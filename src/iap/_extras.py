"""Optional dependencies: an error names the missing module and the command that installs it."""

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

# Module → the extra that brings it.
EXTRAS = {
    "evosax": "train",
    "jax": "train",
    "optax": "train",
    "rich": "train",
    "scipy": "train",
    "tensorboardX": "train",
    "threadpoolctl": "train",
    "tyro": "train",
    "dm_control": "envs",
    "mujoco": "envs",
    "quadprog": "envs",
    "PIL": "viz",
    "imageio_ffmpeg": "viz",
    "matplotlib": "viz",
    "torch": "torch",
    "stable_baselines3": "sb3",
    "onnx": "onnx",
    "onnxruntime": "onnx",
    "ray": "ray",
    "Box2D": "box2d",
    "pygame": "box2d",
}


class MissingExtraError(ImportError):
    """An optional dependency is not installed; the message has the command that installs it."""


def require_module(name: str, purpose: str) -> ModuleType:
    """Import a module of an extra, or say how to install it.

    Args:
        name: the module, such as "torch".
        purpose: what needs it, such as "distillation".
    """
    with explain_missing(purpose):
        return importlib.import_module(name)


@contextmanager
def explain_missing(purpose: str) -> Iterator[None]:
    """Turn a missing optional dependency into an error that names the extra."""
    try:
        yield
    except MissingExtraError:
        raise
    except Exception as error:
        message = missing_message(error, purpose)
        if message is None:
            raise
        raise MissingExtraError(message) from error


def missing_message(error: Exception, purpose: str) -> str | None:
    """What to install for a module that was not found; None if it is another error, or belongs to no extra.

    Gymnasium raises a DependencyNotInstalled of its own, whose cause is the missing module.
    """
    if type(error).__name__ == "DependencyNotInstalled":
        inner = error.__cause__
        message = missing_message(inner, purpose) if isinstance(inner, Exception) else None
        return message or f"{purpose} needs a package that is not installed: {error}"
    if not isinstance(error, ModuleNotFoundError):
        return None
    module = (error.name or "").partition(".")[0]
    if module not in EXTRAS:
        return None
    return f'{purpose} needs {module}: install it with pip install "iap-rl[{EXTRAS[module]}]"'
