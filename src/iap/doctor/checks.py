"""The checks. Each runs in its own process: it returns what it found, or raises an error, if possible with a fix."""

import ctypes.util
import importlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from iap.doctor.machine import CheckError, check_disk, check_machine, check_python

RATE_S = 0.5  # duration of the measurement of a rate
LIBRARIES = {"egl": "EGL", "osmesa": "OSMesa"}  # of the OpenGL backends without a display


def check_numba() -> str:
    """Compiled kernels rank the patches of a small image as NumPy does."""
    import numpy as np
    from numba.core import event

    from iap.attention import Positions, ReLU, as_pixels, extract, featurise, grid_of, place, project, rank_scores
    from iap.attention.kernels.folding import Layer
    from iap.attention.kernels.ranker import compile_ranker

    rng = np.random.default_rng(0)
    image = rng.integers(256, size=(20, 20, 3), dtype=np.uint8)
    query, key = rng.normal(size=(2, 48, 4)).astype(np.float32)
    compiling: list[float] = []
    with event.install_timer("numba:compile", compiling.append):
        compiled = compile_ranker(ReLU(), Layer(query), Layer(key), image.shape, patch=4, stride=4)(image)
    placed = place(extract(as_pixels(image), 4, 4), grid_of(20, 20, 4, 4), Positions())
    plain = rank_scores(*featurise(ReLU(), project(placed, query), project(placed, key)))
    if not np.allclose(compiled.true(), plain.true(), rtol=1e-3):
        raise CheckError("the ranking by compiled kernels differs from NumPy's")
    how = f"compiled in {sum(compiling):.1f} s" if compiling else "loaded from the cache"
    return f"NumPy {version('numpy')}, Numba {version('numba')}; kernels {how}"


def check_jax() -> str:
    """A compiled matrix product, on the default device of JAX."""
    import jax

    if jax.jit(lambda x: (x @ x).sum())(jax.numpy.ones((8, 8))) != 8**3:
        raise CheckError("the result of a matrix product is wrong")
    devices = jax.devices()
    return f"{version('jax')} on {devices[0].platform}, {len(devices)} device{'s' * (len(devices) > 1)}"


def check_evolution() -> str:
    """One generation of the default strategy."""
    import numpy as np

    from iap.evolution import OpenES, ask, mean, start, tell

    search = start(OpenES(population=8), np.zeros(4, np.float32), np.ones(4, np.float32), seed=0)
    thetas, search = ask(search)
    moved = mean(tell(search, thetas, thetas.sum(axis=1)))
    if not moved.sum() > 0:
        raise CheckError("one generation does not improve the mean")
    return f"evosax {version('evosax')}, optax {version('optax')}; one generation improves the mean"


def check_env(id: str) -> str:
    """Steps of an environment, with images."""
    import gymnasium

    return f"Gymnasium {gymnasium.__version__}, {id}: {_steps_per_second(id):,.0f} steps with images per second"


def check_mujoco() -> str:
    """The simulator can be loaded, without rendering."""
    from iap.envs.control_suite.loading import task_names

    return f"mujoco {version('mujoco')}, dm_control {version('dm_control')}; {len(task_names())} tasks"


def check_rendering(backend: str) -> str:
    """Frames of cheetah-run, rendered off screen."""
    from iap.envs.rendering.gl import RenderingError

    try:
        rate = _steps_per_second("iap/cheetah-run-v0")
    except RenderingError as error:
        raise _explained(backend, error.__cause__ or error) from error
    return f"cheetah at 100×100: {rate:,.0f} frames per second"


def _explained(backend: str, cause: BaseException) -> CheckError:
    """Why a backend does not render, and the command that repairs it on Debian or Ubuntu."""
    from iap.envs.rendering.gl import INSTALL, INSTALL_OSMESA

    reason = f"{type(cause).__name__}: {cause}"
    for variable in ("PYOPENGL_PLATFORM", "MUJOCO_EGL_DEVICE_ID"):
        if variable in reason:
            return CheckError(reason, f"unset {variable}")
    if sys.platform != "linux":
        return CheckError(reason)
    if backend not in LIBRARIES:
        return CheckError(reason, "export MUJOCO_GL=egl")
    if ctypes.util.find_library(LIBRARIES[backend]) is None:
        reason = f"the library lib{LIBRARIES[backend]} is not installed"
    install = INSTALL if backend == "egl" else INSTALL_OSMESA
    command = f"sudo apt-get update && {install}"
    return CheckError(reason, command.replace("sudo ", "") if os.geteuid() == 0 else command)  # root may have no sudo


def check_video() -> str:
    """Three frames are encoded to a file."""
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
        raise CheckError(f"{frames} of 3 frames were written")
    return f"ffmpeg {imageio_ffmpeg.get_ffmpeg_version()}; 3 frames encoded to mp4"


def check_import(module: str) -> str:
    """A module can be imported."""
    return f"{module} {importlib.import_module(module).__version__}, imported"


def _steps_per_second(id: str) -> float:
    """Speed of an environment with random actions and images."""
    from iap.envs.core import make_env

    env = make_env(id)
    try:
        observation, _ = env.reset(seed=0)
        if observation["image"].std() == 0:
            raise CheckError(f"the image of {id} is blank")
        steps, start = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - start) < RATE_S:
            *_, terminated, truncated, _ = env.step(env.action_space.sample())
            if terminated or truncated:
                env.reset()
            steps += 1
        return steps / elapsed
    finally:
        env.close()


CHECKS: dict[str, Callable[..., str]] = {
    check.__name__: check
    for check in (
        check_python,
        check_machine,
        check_disk,
        check_numba,
        check_jax,
        check_evolution,
        check_env,
        check_mujoco,
        check_rendering,
        check_video,
        check_import,
    )
}


def _result(name: str, *arguments: str) -> dict[str, str | None]:
    """The result of a check, as JSON."""
    try:
        return {"state": "works", "detail": CHECKS[name](*arguments), "fix": None}
    except CheckError as error:
        return {"state": "failed", "detail": str(error), "fix": error.fix}
    except Exception as error:
        state = "missing" if _is_missing(error) else "broken"
        return {"state": state, "detail": f"{type(error).__name__}: {error}", "fix": None}


def _is_missing(error: BaseException | None) -> bool:
    """Whether a module that is not installed caused the error."""
    return error is not None and (isinstance(error, ModuleNotFoundError) or _is_missing(error.__cause__))


if __name__ == "__main__":
    output = os.dup(1)
    os.dup2(2, 1)  # the output of libraries goes to standard error
    os.write(output, json.dumps(_result(*sys.argv[1:])).encode())
