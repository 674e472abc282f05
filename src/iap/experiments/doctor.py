"""What works here: each part that `iap` needs is tried for real, in a process of its own that may crash or hang."""

import ctypes.util
import importlib
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.table import Table
from rich.text import Text

PATIENCE = 6  # how many times its share of the time a part may take, about, before it counts as hanging
RATE_S = 0.5  # for how long a rate is measured
OLDEST_PYTHON = (3, 11)
TRAINER_GB, WORKER_GB, RUN_GB = 1.0, 0.5, 1.0  # memory of the training process and of each worker; disk of a run
CGROUP = Path("/sys/fs/cgroup")
LIBRARIES = {"egl": "EGL", "osmesa": "OSMesa"}
LONGEST_DETAIL = 300  # characters


@dataclass(frozen=True)
class Check:
    """What was found out about one part.

    Attributes:
        name: of the part.
        ok: whether it works.
        required: whether `iap` needs it; if not, it is an extra or an alternative.
        detail: versions, rates, or what went wrong.
        fix: the command that mends it, if one is known.
    """

    name: str
    ok: bool
    required: bool
    detail: str
    fix: str | None = None


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


class UnfitError(Exception):
    """A part does not work, though nothing of it is missing or broken in this Python; with what mends it, if known."""

    def __init__(self, reason: str, fix: str | None = None) -> None:
        super().__init__(reason)
        self.fix = fix


def doctor(
    runs: str | Path = "runs", progress: Callable[[str, float], None] = lambda _, __: None, budget_s: float = 55.0
) -> list[Check]:
    """Try every part, one after the other, so that rates are those of a core of its own.

    Args:
        runs: the folder that runs go to, which need not be there yet.
        progress: told what is being tried and which share of all is done.
        budget_s: seconds after which this ends, whatever hangs.
    """
    end, trials, checks = time.monotonic() + budget_s, all_trials(runs), []
    for done, trial in enumerate(trials):
        progress(trial.name, done / len(trials))
        left, waiting = end - time.monotonic(), len(trials) - done
        # those still waiting keep a part of what is left, however many hang before them
        checks.append(examine(trial, limit_s=max(0.0, left * PATIENCE / (waiting + PATIENCE - 1))))
    progress("done", 1.0)
    return checks


def table(checks: list[Check]) -> Table:
    """The checks for people, with the command that mends it below what does not work."""
    shown = Table(box=SIMPLE_HEAD)
    for name in ("part", "works", "found"):
        shown.add_column(name, overflow="fold")
    for check in checks:
        word, colour = ("yes", "green") if check.ok else ("no", "red") if check.required else ("no, optional", "yellow")
        found = Text(check.detail)
        if check.fix is not None:
            found.append(f"\n{check.fix}", "bold")
        shown.add_row(Text(check.name), Text(word, colour), found)
    return shown


def all_trials(runs: str | Path = "runs") -> list[Trial]:
    """Every part there is to try."""
    silent = {"SDL_VIDEODRIVER": "dummy", "PYGAME_HIDE_SUPPORT_PROMPT": "1"}
    modest = {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}  # a look at a GPU should not take all of its memory
    return [
        Trial("Python", _own(try_python)),
        Trial("cores and memory", _own(try_machine)),
        Trial("disk", _own(try_disk, str(runs))),
        Trial("NumPy and Numba", _own(try_ranking)),
        Trial("JAX", _own(try_jax), environment=modest),
        Trial("evolution", _own(try_evolution), environment=modest),
        Trial("Gymnasium", _own(try_gymnasium, "iap/Seek-v0")),
        Trial("MuJoCo", _own(try_simulator), environment={"MUJOCO_GL": "disable"}),
        *(_draw_with(backend, used) for backend, used in _backends().items()),
        Trial("video", _own(try_video)),
        Trial("box2d", _own(try_gymnasium, "CarRacing-v3"), False, "box2d", silent),
        Trial("torch", _own(try_import, "torch"), False, "torch"),
        Trial("ray", _own(try_import, "ray"), False, "ray"),
    ]


def _draw_with(backend: str, used: bool) -> Trial:
    other = "osmesa" if backend == "egl" else "egl"
    command, environment = _own(try_rendering, backend), {"MUJOCO_GL": backend}
    return Trial(f"OpenGL, {backend}", command, used, environment=environment, remedy=f"export MUJOCO_GL={other}")


def examine(trial: Trial, limit_s: float) -> Check:
    """Run a trial; an error, a crash or a hang is a finding like any other."""
    package = f'"iap-rl[{trial.extra}]"' if trial.extra else "iap-rl"
    install, anew = f"pip install {package}", f"pip install --force-reinstall {package}"
    ok, fix = False, trial.remedy
    try:
        status, answer, complaints = _run(trial, limit_s)
    except subprocess.TimeoutExpired:
        detail = f"no answer in {limit_s:.1f} s: it hangs, or the machine is busy"
    except OSError as error:
        detail = f"could not be tried: {error}"
    else:
        if status == 0 and answer:
            told = json.loads(answer)
            ok, detail = told["state"] == "works", told["detail"]
            fix = {"works": None, "missing": install, "broken": anew, "unfit": told["fix"]}[told["state"]]
        else:
            end = signal.strsignal(-status) if status < 0 else f"status {status}"
            detail, fix = ": ".join(["crashes", str(end), *complaints.strip().splitlines()[-1:]]), fix or anew
    return Check(trial.name, ok, trial.required, textwrap.shorten(detail, LONGEST_DETAIL, placeholder=" …"), fix)


def _run(trial: Trial, limit_s: float) -> tuple[int, str, str]:
    """The status that a trial ends with, its answer and what else it wrote."""
    # files and not pipes: a grandchild that lives on could hold a pipe open
    with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as complaints:
        child = subprocess.Popen(
            trial.command,
            env={**os.environ, **trial.environment},
            stdin=subprocess.DEVNULL,
            stdout=answer,
            stderr=complaints,
            start_new_session=True,
        )
        try:
            status = child.wait(limit_s)
        finally:
            _end(child)
        answer.seek(0)
        complaints.seek(0)
        return status, answer.read().decode(), complaints.read().decode(errors="replace")


def _end(child: subprocess.Popen[bytes]) -> None:
    """Kill a child that still runs, and all that it started."""
    if child.returncode is None:
        if hasattr(os, "killpg"):
            os.killpg(child.pid, signal.SIGKILL)
        else:
            child.kill()
        child.wait()


def _own(function: Callable[..., str], *arguments: str) -> tuple[str, ...]:
    """The command that runs a function of this module; -P keeps the modules of the current folder out of its way."""
    return (sys.executable, "-P", "-m", "iap.experiments.doctor", function.__name__, *arguments)


def _backends() -> dict[str, bool]:
    """The ways to draw, and whether each is the one in use, which comes first."""
    on_linux = sys.platform == "linux"
    has_screen = not on_linux or "DISPLAY" in os.environ or "WAYLAND_DISPLAY" in os.environ
    used = os.environ.get("MUJOCO_GL", "glfw" if has_screen else "egl")
    return {backend: backend == used for backend in (used, *(LIBRARIES if on_linux else ()))}


def try_python() -> str:
    """The version of Python."""
    if sys.version_info < OLDEST_PYTHON:
        raise UnfitError(f"{platform.python_version()}, but at least {'.'.join(map(str, OLDEST_PYTHON))} is needed")
    return f"{platform.python_version()} on {platform.system()} {platform.machine()}"


def try_machine(cgroup: str | Path = CGROUP, memory: str | Path = "/proc/meminfo") -> str:
    """How many workers the cores and the memory are enough for."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    match _numbers(Path(cgroup, "cpu.max")):
        case [quota, period]:
            cores = max(1, min(cores, quota // period))
    lines = Path(memory).read_text().splitlines() if Path(memory).exists() else []
    free = [int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")]
    free += [
        limit - used
        for limit in _numbers(Path(cgroup, "memory.max"))
        for used in _numbers(Path(cgroup, "memory.current"))
    ]
    counted = f"{cores} usable core{'s' * (cores > 1)}"
    if not free:
        return f"{counted}, memory unknown"
    free_gb = min(free) / 1e9
    workers = min(cores, int((free_gb - TRAINER_GB) / WORKER_GB))
    if workers < 1:
        raise UnfitError(f"{counted}, but {free_gb:.1f} GB of free memory; {TRAINER_GB + WORKER_GB} GB are needed")
    return f"{counted}, {free_gb:.1f} GB of free memory: room for {workers} worker{'s' * (workers > 1)}"


def try_ranking() -> str:
    """A small image ranked by the compiled passes, as by plain NumPy."""
    import numpy as np
    from numba.core import event

    from iap.attention import Positions, ReLU, as_pixels, extract, featurise, grid_of, place, project, rank_scores
    from iap.attention.fused import Layer, fold

    rng = np.random.default_rng(0)
    image = rng.integers(256, size=(20, 20, 3), dtype=np.uint8)
    query, key = rng.normal(size=(2, 48, 4)).astype(np.float32)
    compiling: list[float] = []
    with event.install_timer("numba:compile", compiling.append):
        fused = fold(ReLU(), Layer(query), Layer(key), image.shape, patch=4, stride=4)(image)
    placed = place(extract(as_pixels(image), 4, 4), grid_of(20, 20, 4, 4), Positions())
    plain = rank_scores(*featurise(ReLU(), project(placed, query), project(placed, key)))
    if not np.allclose(fused.true(), plain.true(), rtol=1e-3):
        raise UnfitError("the compiled ranking differs from NumPy's")
    how = f"compiled in {sum(compiling):.1f} s" if compiling else "compiled before"
    return f"NumPy {version('numpy')}, Numba {version('numba')}; a fused ranking, {how}"


def try_jax() -> str:
    """A compiled product, on whatever device JAX chooses."""
    import jax

    if jax.jit(lambda x: (x @ x).sum())(jax.numpy.ones((8, 8))) != 8**3:
        raise UnfitError("a product of matrices is wrong")
    devices = jax.devices()
    return f"{version('jax')} on {devices[0].platform}, {len(devices)} device{'s' * (len(devices) > 1)}"


def try_evolution() -> str:
    """One generation of the default strategy."""
    import numpy as np

    from iap.evolution import OpenES, ask, mean, start, tell

    search = start(OpenES(population=8), np.zeros(4, np.float32), np.ones(4, np.float32), seed=0)
    thetas, search = ask(search)
    moved = mean(tell(search, thetas, thetas.sum(axis=1)))
    if not moved.sum() > 0:
        raise UnfitError("a generation does not improve")
    return f"evosax {version('evosax')}, optax {version('optax')}; a generation improves"


def try_gymnasium(id: str) -> str:
    """Steps of an environment, with its image."""
    import gymnasium

    return f"Gymnasium {gymnasium.__version__}, {id}: {_steps_per_second(id):,.0f} steps with image per second"


def try_simulator() -> str:
    """The simulator loads, without drawing."""
    from iap.envs.frames import task_names

    return f"mujoco {version('mujoco')}, dm_control {version('dm_control')}; {len(task_names())} tasks"


def try_rendering(backend: str) -> str:
    """Frames of the cheetah, drawn off screen."""
    from iap.envs.gl import RenderingError

    try:
        rate = _steps_per_second("iap/cheetah-run-v0")
    except RenderingError as error:
        raise _explain_gl(backend, error.__cause__ or error) from error
    return f"cheetah at 100×100: {rate:,.0f} frames per second"


def _explain_gl(backend: str, cause: BaseException) -> UnfitError:
    """Why a backend does not draw, and the command that mends it on Debian or Ubuntu."""
    from iap.envs.gl import INSTALL

    reason = f"{type(cause).__name__}: {cause}"
    for variable in ("PYOPENGL_PLATFORM", "MUJOCO_EGL_DEVICE_ID"):
        if variable in reason:
            return UnfitError(reason, f"unset {variable}")
    if sys.platform != "linux":
        return UnfitError(reason)
    if backend not in LIBRARIES:
        return UnfitError(reason, "export MUJOCO_GL=egl")
    if ctypes.util.find_library(LIBRARIES[backend]) is None:
        reason = f"the library lib{LIBRARIES[backend]} is not installed"
    install = INSTALL if backend == "egl" else "sudo apt-get install -y libosmesa6"
    command = f"sudo apt-get update && {install}"
    return UnfitError(reason, command.replace("sudo ", "") if os.geteuid() == 0 else command)  # root may have no sudo


def try_video() -> str:
    """Three frames, encoded to a file."""
    import imageio_ffmpeg
    import numpy as np

    from iap.viz.videos import VideoWriter

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "three.mp4")
        with VideoWriter(path) as video:
            for brightness in (0, 100, 200):
                video.add(np.full((64, 64, 3), brightness, np.uint8))
        frames, _ = imageio_ffmpeg.count_frames_and_secs(str(path))
    if frames != 3:  # noqa: PLR2004
        raise UnfitError(f"of 3 frames, {frames} were written")
    return f"ffmpeg {imageio_ffmpeg.get_ffmpeg_version()}; 3 frames encoded to mp4"


def try_import(module: str) -> str:
    """A module can be imported; nothing of it is started."""
    return f"{module} {importlib.import_module(module).__version__}, imported"


def try_disk(runs: str) -> str:
    """The folder that runs go to, or the nearest above it, can be written to and has room."""
    wanted = Path(runs).absolute()
    folder = next(folder for folder in (wanted, *wanted.parents) if folder.exists())
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(bytes(4096))
    except OSError as error:
        raise UnfitError(f"{folder} cannot be written to ({error.strerror})") from error
    free_gb = shutil.disk_usage(folder).free / 1e9
    if free_gb < RUN_GB:
        raise UnfitError(f"{free_gb:.1f} GB free in {folder}, but {RUN_GB} GB are needed")
    return f"{free_gb:,.1f} GB free in {folder}"


def _numbers(path: Path) -> list[int]:
    """The whole numbers in a file that may not be there."""
    return [int(word) for word in path.read_text().split() if word.isdigit()] if path.exists() else []


def _steps_per_second(id: str) -> float:
    """How fast an environment goes under random actions, its images included."""
    from iap.envs.contract import make_env

    env = make_env(id)
    try:
        observation, _ = env.reset(seed=0)
        if observation["image"].std() == 0:
            raise UnfitError(f"the image of {id} is blank")
        steps, start = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - start) < RATE_S:
            *_, terminated, truncated, _ = env.step(env.action_space.sample())
            if terminated or truncated:
                env.reset()
            steps += 1
        return steps / elapsed
    finally:
        env.close()


def _answer(name: str, *arguments: str) -> dict[str, str | None]:
    """How a trial of this module ends."""
    try:
        return {"state": "works", "detail": globals()[name](*arguments), "fix": None}
    except UnfitError as error:
        return {"state": "unfit", "detail": str(error), "fix": error.fix}
    except Exception as error:
        state = "missing" if _is_missing(error) else "broken"
        return {"state": state, "detail": f"{type(error).__name__}: {error}", "fix": None}


def _is_missing(error: BaseException | None) -> bool:
    """Whether an error comes of a module that is not installed."""
    return error is not None and (isinstance(error, ModuleNotFoundError) or _is_missing(error.__cause__))


if __name__ == "__main__":
    answers = os.dup(1)
    os.dup2(2, 1)  # what libraries print is not part of the answer
    os.write(answers, json.dumps(_answer(*sys.argv[1:])).encode())
