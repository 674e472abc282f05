"""The parts that `iap doctor` checks, and the command that checks each."""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

from iap.doctor import checks, machine


@dataclass(frozen=True)
class Part:
    """A part of the installation and the command that checks it, which prints its result as JSON.

    Attributes:
        name: of the part.
        command: the command.
        required: whether a failure is an error.
        extra: the extra of this package that installs the part; empty for the core.
        environment: environment variables of the command.
        fix: what to do if the check crashes or hangs; by default, reinstalling the package.
    """

    name: str
    command: tuple[str, ...]
    required: bool = True
    extra: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    fix: str | None = None


def all_parts(runs: str | Path = "runs") -> list[Part]:
    """All parts. Those of the extras `envs` and `viz` are required if the extra is installed."""
    silent = {"SDL_VIDEODRIVER": "dummy", "PYGAME_HIDE_SUPPORT_PROMPT": "1"}
    no_preallocation = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}  # else JAX takes most of a GPU's memory
    has_envs, has_viz = find_spec("mujoco") is not None, find_spec("imageio_ffmpeg") is not None
    return [
        Part("Python", _command(machine.check_python)),
        Part("cores and memory", _command(machine.check_machine)),
        Part("disk", _command(machine.check_disk, str(runs))),
        Part("NumPy and Numba", _command(checks.check_numba)),
        Part("Gymnasium", _command(checks.check_env, "iap/Seek-v0")),
        Part("JAX", _command(checks.check_jax), extra="train", environment=no_preallocation),
        Part("evolution", _command(checks.check_evolution), extra="train", environment=no_preallocation),
        Part("MuJoCo", _command(checks.check_mujoco), has_envs, "envs", {"MUJOCO_GL": "disable"}),
        *(_rendering(backend, used and has_envs) for backend, used in _backends().items()),
        Part("video", _command(checks.check_video), has_viz, "viz"),
        Part("box2d", _command(checks.check_env, "CarRacing-v3"), False, "box2d", silent),
        Part("torch", _command(checks.check_import, "torch"), False, "torch"),
        Part("ray", _command(checks.check_import, "ray"), False, "ray"),
    ]


def _rendering(backend: str, required: bool) -> Part:
    other = "osmesa" if backend == "egl" else "egl"
    command, environment = _command(checks.check_rendering, backend), {"MUJOCO_GL": backend}
    return Part(f"OpenGL, {backend}", command, required, "envs", environment, fix=f"export MUJOCO_GL={other}")


def _command(function: Callable[..., str], *arguments: str) -> tuple[str, ...]:
    """The command that runs a check; with -P, Python does not import modules from the current folder."""
    return (sys.executable, "-P", "-m", checks.__name__, function.__name__, *arguments)


def _backends() -> dict[str, bool]:
    """The OpenGL backends, and whether each is the one in use, which comes first."""
    on_linux = sys.platform == "linux"
    has_screen = not on_linux or "DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ
    used = os.environ.get("MUJOCO_GL", "glfw" if has_screen else "egl")
    return {backend: backend == used for backend in (used, *(checks.LIBRARIES if on_linux else ()))}
