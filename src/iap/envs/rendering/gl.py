"""OpenGL without a screen: which backend the simulator draws with, and what to do when there is none."""

import contextlib
import os
import sys
from collections.abc import Iterator

INSTALL = "sudo apt-get install -y libegl1 libegl-mesa0 libgl1 libgl1-mesa-dri libgles2 libopengl0"
INSTALL_OSMESA = "sudo apt-get install -y libosmesa6"


class RenderingError(RuntimeError):
    """The simulator cannot draw, because OpenGL is missing or does not work."""


def choose_backend() -> None:
    """Draw off screen where there is no screen, unless the user has chosen; MuJoCo reads this when it is imported."""
    has_screen = sys.platform != "linux" or "DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ
    if not has_screen and os.environ.setdefault("MUJOCO_GL", "egl") == "glfw":
        # MuJoCo would end the whole process at the second try
        raise RenderingError("MUJOCO_GL is glfw, which needs a display, and there is none: set MUJOCO_GL=egl")
    os.environ.setdefault("LP_NUM_THREADS", "0")  # Mesa's threads cost more than they save on small images


@contextlib.contextmanager
def explained() -> Iterator[None]:
    """Turn whatever a missing or broken OpenGL raises into one error that says what to install."""
    try:
        yield
    except ModuleNotFoundError:
        raise
    except Exception as error:  # PyOpenGL, dm_control and MuJoCo each fail in a way of their own
        backend = os.environ.get("MUJOCO_GL", "not set")
        install = INSTALL_OSMESA if backend == "osmesa" else INSTALL
        raise RenderingError(
            f"the simulator cannot render (MUJOCO_GL is {backend}; {type(error).__name__}: {error}). "
            f"If OpenGL is missing, on Debian or Ubuntu: {install}"
        ) from error
