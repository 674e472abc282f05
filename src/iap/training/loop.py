"""Training, top to bottom: ask for candidates, run their episodes, tell their returns; evaluate, save, repeat."""

import importlib
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
from jaxtyping import Float
from threadpoolctl import threadpool_limits

from iap.distillation.teachers import TeacherConfig
from iap.evolution import ask, mean, tell
from iap.rollouts import Pool
from iap.training.checkpoints import Best, Progress, resume, save
from iap.training.config import TrainConfig
from iap.training.failures import FailureLog
from iap.training.initialization import first_row, initialize
from iap.training.returns import best_of, finite, merge_statistics, run_candidates, run_held_out, summarise
from iap.training.run_directory import Row, RunDirectory


def train(
    config: TrainConfig,
    pool: Pool,
    run: RunDirectory,
    on_row: Callable[[Row], None] = lambda _row: None,
    on_start: Callable[[str, float], None] = lambda _what, _share: None,
    command: str | None = None,
    teacher: TeacherConfig | None = None,
    on_failure: Callable[[str], None] = lambda _line: None,
) -> Progress:
    """Run the iterations that are left, each ending with a checkpoint.

    Args:
        config: what is trained.
        pool: where its episodes run.
        run: the folder of the run.
        on_row: called with each row of metrics.
        on_start: called with what is done before the first iteration, and which share of it is done.
        command: the command that starts this training, for the policy files.
        teacher: of a distillation, if it is another than the config's, such as a function.
        on_failure: called with one line about the first episode that fails.
    """
    pool = FailureLog(pool, run, on_failure)
    with run.locked(), one_thread():
        progress = resume(config, run)
        run.truncate_metrics(-1 if progress is None else progress.iteration)
        if progress is None:
            started = time.perf_counter()
            progress = initialize(config, pool, run, on_start, teacher)
            if progress.start is not None:
                _record(config, run, progress, first_row(progress), started, on_row, command)
        while progress.iteration < config.iterations:
            started = time.perf_counter()
            progress, row = step(config, pool, progress)
            _record(config, run, progress, row, started, on_row, command)
    return progress


def step(config: TrainConfig, pool: Pool, progress: Progress) -> tuple[Progress, Row]:
    """One generation."""
    iteration = progress.iteration + 1
    thetas, search = ask(progress.search)
    returns, ran = run_candidates(config, pool, thetas, progress.normaliser, iteration)
    search = tell(search, thetas, np.array(returns))
    updates = config.policy.normalise and not config.freeze_normaliser
    normaliser = merge_statistics(progress.normaliser, ran) if updates else progress.normaliser
    progress = replace(
        progress, search=search, normaliser=normaliser, iteration=iteration, episodes=progress.episodes + len(ran)
    )
    held_out = None
    if iteration % config.evaluate_every == 0 or iteration == config.iterations:
        progress, held_out = evaluate_candidates(config, pool, progress, thetas[best_of(returns)])
    row: Row = {
        "iteration": iteration,
        "episodes": progress.episodes,
        **summarise(returns, ran),
        "held_out": held_out,
        "held_out_best": None if progress.best is None else finite(progress.best.held_out),
    }
    return progress, row


def evaluate_candidates(
    config: TrainConfig, pool: Pool, progress: Progress, candidate: Float[np.ndarray, " p"]
) -> tuple[Progress, float | None]:
    """The mean policy and this generation's best candidate on validation seeds; the better may become the best."""
    candidates = np.stack([mean(progress.search), candidate]).astype(np.float32)
    held_out = run_held_out(config, pool, candidates, progress.normaliser)
    return replace(progress, best=_better(progress, candidates, held_out)), finite(held_out[0])


def _better(progress: Progress, candidates: Float[np.ndarray, "n p"], held_out: Sequence[float]) -> Best | None:
    best = progress.best
    for theta, value in zip(candidates, held_out, strict=True):
        if finite(value) is not None and (best is None or value > best.held_out):  # not for a policy that failed
            best = Best(theta, progress.normaliser, value)
    return best


def _record(
    config: TrainConfig,
    run: RunDirectory,
    progress: Progress,
    row: Row,
    started: float,
    on_row: Callable[[Row], None],
    command: str | None,
) -> None:
    """Write metrics, policies and checkpoint, then report the row."""
    row["seconds"] = round(time.perf_counter() - started, 3)
    run.append_metrics(row)
    save(config, run, progress, command, has_return=row["best"] is not None or row["held_out"] is not None)
    on_row(row)


@contextmanager
def one_thread() -> Iterator[None]:
    """One thread for linear algebra: the last bits of CMA-ES and of networks depend on the number of threads.

    JAX reads its own number when it is first used: in a process that used it before, that number stays.
    """
    os.environ.setdefault("NPROC", "1")
    importlib.import_module("scipy.linalg")  # JAX's LAPACK: only libraries that are loaded can be limited
    with threadpool_limits(1, user_api="blas"):
        yield
