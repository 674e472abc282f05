"""The parts that `iap` needs or can use, and the command that tries each."""

import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from iap.doctor import trials


@dataclass(frozen=True)
class Trial:
    """A part and the command that tries it, which prints what it found as JSON.

    Attributes:
        name: of the part.
        command: to run.
        required: whether `iap` needs it.
        extra: of this package that brings the part; empty for what always comes along.
        environment: variables to set.
        remedy: what helps when it crashes or hangs, if that is not to install it anew.
    """

    name: str
    command: tuple[str, ...]
    required: bool = True
    extra: str = ""
    environment: Mapping[str, str] = field(default_factory=dict)
    remedy: str | None = None


def all_trials(runs: str | Path = "runs") -> list[Trial]:
    """Every part there is to try."""
    silent = {"SDL_VIDEODRIVER": "dummy", "PYGAME_HIDE_SUPPORT_PROMPT": "1"}
    modest = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}  # a look at a GPU should not take all of its memory
    return [
        Trial("Python", _own(trials.try_python)),
        Trial("cores and memory", _own(trials.try_machine)),
        Trial("disk", _own(trials.try_disk, str(runs))),
        Trial("NumPy and Numba", _own(trials.try_ranking)),
        Trial("JAX", _own(trials.try_jax), environment=modest),
        Trial("evolution", _own(trials.try_evolution), environment=modest),
        Trial("Gymnasium", _own(trials.try_gymnasium, "iap/Seek-v0")),
        Trial("MuJoCo", _own(trials.try_simulator), environment={"MUJOCO_GL": "disable"}),
        *(_draw_with(backend, used) for backend, used in _backends().items()),
        Trial("video", _own(trials.try_video)),
        Trial("box2d", _own(trials.try_gymnasium, "CarRacing-v3"), False, "box2d", silent),
        Trial("torch", _own(trials.try_import, "torch"), False, "torch"),
        Trial("ray", _own(trials.try_import, "ray"), False, "ray"),
    ]


def _draw_with(backend: str, used: bool) -> Trial:
    other = "osmesa" if backend == "egl" else "egl"
    command, environment = _own(trials.try_rendering, backend), {"MUJOCO_GL": backend}
    return Trial(f"OpenGL, {backend}", command, used, environment=environment, remedy=f"export MUJOCO_GL={other}")


def _own(function: Callable[..., str], *arguments: str) -> tuple[str, ...]:
    """The command that runs a trial; -P keeps the modules of the current folder out of its way."""
    return (sys.executable, "-P", "-m", trials.__name__, function.__name__, *arguments)


def _backends() -> dict[str, bool]:
    """The ways to draw, and whether each is the one in use, which comes first."""
    on_linux = sys.platform == "linux"
    has_screen = not on_linux or "DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ
    used = os.environ.get("MUJOCO_GL", "glfw" if has_screen else "egl")
    return {backend: backend == used for backend in (used, *(trials.LIBRARIES if on_linux else ()))}
