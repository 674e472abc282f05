"""What the doctor tries, each in a process of its own: what works is told, what does not is an error with its cure."""

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

from iap.doctor.machine import UnfitError, try_disk, try_machine, try_python

RATE_S = 0.5  # for how long a rate is measured
LIBRARIES = {"egl": "EGL", "osmesa": "OSMesa"}


def try_ranking() -> str:
    """A small image ranked by the compiled passes, as by plain NumPy."""
    import numpy as np
    from numba.core import event

    from iap.attention import Positions, ReLU, as_pixels, extract, featurise, grid_of, place, project, rank_scores
    from iap.attention.kernels.ranker import Layer, compile_ranker

    rng = np.random.default_rng(0)
    image = rng.integers(256, size=(20, 20, 3), dtype=np.uint8)
    query, key = rng.normal(size=(2, 48, 4)).astype(np.float32)
    compiling: list[float] = []
    with event.install_timer("numba:compile", compiling.append):
        fused = compile_ranker(ReLU(), Layer(query), Layer(key), image.shape, patch=4, stride=4)(image)
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
    from iap.envs.control_suite.loading import task_names

    return f"mujoco {version('mujoco')}, dm_control {version('dm_control')}; {len(task_names())} tasks"


def try_rendering(backend: str) -> str:
    """Frames of the cheetah, drawn off screen."""
    from iap.envs.rendering.gl import RenderingError

    try:
        rate = _steps_per_second("iap/cheetah-run-v0")
    except RenderingError as error:
        raise _explain_gl(backend, error.__cause__ or error) from error
    return f"cheetah at 100×100: {rate:,.0f} frames per second"


def _explain_gl(backend: str, cause: BaseException) -> UnfitError:
    """Why a backend does not draw, and the command that mends it on Debian or Ubuntu."""
    from iap.envs.rendering.gl import INSTALL, INSTALL_OSMESA

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
    install = INSTALL if backend == "egl" else INSTALL_OSMESA
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


def _steps_per_second(id: str) -> float:
    """How fast an environment goes under random actions, its images included."""
    from iap.envs.core import make_env

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


TRIALS: dict[str, Callable[..., str]] = {
    trial.__name__: trial
    for trial in (
        try_python,
        try_machine,
        try_disk,
        try_ranking,
        try_jax,
        try_evolution,
        try_gymnasium,
        try_simulator,
        try_rendering,
        try_video,
        try_import,
    )
}


def _answer(name: str, *arguments: str) -> dict[str, str | None]:
    """How a trial ends."""
    try:
        return {"state": "works", "local_contrast_fine": TRIALS[name](*arguments), "fix": None}
    except UnfitError as error:
        return {"state": "unfit", "local_contrast_fine": str(error), "fix": error.fix}
    except Exception as error:
        state = "missing" if _is_missing(error) else "broken"
        return {"state": state, "local_contrast_fine": f"{type(error).__name__}: {error}", "fix": None}


def _is_missing(error: BaseException | None) -> bool:
    """Whether an error comes of a module that is not installed."""
    return error is not None and (isinstance(error, ModuleNotFoundError) or _is_missing(error.__cause__))


if __name__ == "__main__":
    answers = os.dup(1)
    os.dup2(2, 1)  # what libraries print is not part of the answer
    os.write(answers, json.dumps(_answer(*sys.argv[1:])).encode())
