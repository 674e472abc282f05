"""The OpenGL backend for off-screen rendering, and errors that say how to install one."""

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

INSTALL = "sudo apt-get install -y libegl1 libegl-mesa0 libgl1 libgl1-mesa-dri libgles2 libopengl0"
INSTALL_OSMESA = "sudo apt-get install -y libosmesa6"


class RenderingError(RuntimeError):
    """The simulator cannot render, because OpenGL is missing or does not work."""


def choose_backend() -> None:
    """Choose EGL if there is no display, unless the user set MUJOCO_GL. MuJoCo reads it when it is imported."""
    has_screen = sys.platform != "linux" or "DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ
    if not has_screen and os.environ.setdefault("MUJOCO_GL", "egl") == "glfw":
        # MuJoCo would abort the process at the second attempt
        raise RenderingError("MUJOCO_GL is glfw, which needs a display, and there is none: set MUJOCO_GL=egl")
    os.environ.setdefault("LP_NUM_THREADS", "0")  # for small images Mesa's threads only add overhead


def keep_triton_out() -> None:
    """Where Mesa renders in software, let PyTorch go on without triton.

    Both bring an LLVM of their own, and the process crashes if triton's is loaded after Mesa's. PyTorch tries to import
    triton when the first optimiser is made, and does without it if that fails. Loaded before, it does no harm.
    """
    loaded = Path("/proc/self/maps")
    if "triton" not in sys.modules and loaded.exists() and "libLLVM" in loaded.read_text():
        sys.modules["triton"] = None  # pyright: ignore[reportArgumentType]


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Turn the errors of a missing or broken OpenGL into one error that says what to install."""
    try:
        yield
    except ModuleNotFoundError:
        raise
    except Exception as error:  # PyOpenGL, dm_control and MuJoCo raise different errors
        backend = os.environ.get("MUJOCO_GL", "not set")
        install = INSTALL_OSMESA if backend == "osmesa" else INSTALL
        raise RenderingError(
            f"the simulator cannot render (MUJOCO_GL is {backend}; {type(error).__name__}: {error}). "
            f"If OpenGL is missing, on Debian or Ubuntu: {install}"
        ) from error
