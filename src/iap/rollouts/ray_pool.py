"""Episodes on a Ray cluster. Nodes may join and leave during an evaluation."""

import contextlib
import hashlib
import logging
import os
import signal
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, Self

import cloudpickle
import numpy as np
import ray
import ray._private.worker as ray_driver
import ray.exceptions
import ray.util
from jaxtyping import Float
from ray._private import ray_constants

from iap._validation import require_count
from iap.policies import Normaliser
from iap.rollouts.episode import Episode
from iap.rollouts.job import Job, Runner, describe_error, format_error
from iap.rollouts.pool import ONE_CORE, START_TIMEOUT_S, Failure, Task, TaskQueue, require_timeout, start_error

MAX_SUBMITTED = 1000  # tasks submitted to Ray at a time
MAX_BUILD_FAILURES = 100  # consecutive ones, after the environment was built once: some node is broken


class BuildFailure(NamedTuple):
    """Why a worker could not build the environment. It does not count as a failure of the episode."""

    reason: str


class PickledJob(NamedTuple):
    """A job as bytes, with a hash to compare it by: functions in a job are not equal after unpickling."""

    content: bytes
    digest: str

    @classmethod
    def of(cls, job: Job) -> Self:
        """Pickle a job."""
        content = cloudpickle.dumps(job)
        return cls(content, hashlib.sha256(content).hexdigest())


_runner: tuple[str, Runner] | None = None  # of a Ray worker process: the digest of its job, and its only environment


class RayPool:
    """Ray tasks of one episode and one core each.

    Args:
        job: what the episodes have in common. `iap` and the environment must be installed on every node.
        address: address of a cluster ("auto", "host:port"); by default a new cluster on this computer, which listens on
            the loopback interface only. If this process is already connected to a cluster, that one is used.
        workers: number of cores of a cluster on this computer; all by default.
        timeout_s: time limit of an episode.
        retries: how often an episode that failed is run again. The loss of a node does not count as a failure.
    """

    def __init__(
        self,
        job: Job,
        address: str | None = None,
        *,
        workers: int | None = None,
        timeout_s: float = 600.0,
        retries: int = 2,
    ) -> None:
        self.job = job
        self.timeout_s = require_timeout("timeout_s", timeout_s)
        self.retries = require_count("retries", retries, least=0)
        self._pickled_job = PickledJob.of(job)
        self._env_was_built = False
        self._build_failures = 0  # since the last episode that finished
        self._owns_connection = not ray.is_initialized()
        if self._owns_connection:
            _connect(address, workers)

    def evaluate(
        self,
        thetas: Float[np.ndarray, "n p"],
        seeds: Sequence[Sequence[int]],
        normaliser: Normaliser | None = None,
    ) -> list[list[Episode]]:
        """Run the episodes of each θ with each of its seeds, and return them in that order."""
        queue = TaskQueue(self.job, thetas, seeds, self.retries)
        self._check_build()
        running: dict[Any, int] = {}
        job, shared = ray.put(self._pickled_job), ray.put(normaliser)
        try:
            while not queue.is_done:
                while len(running) < MAX_SUBMITTED and (number := queue.take()) is not None:
                    running[_run.remote(job, queue.tasks[number], shared, self.timeout_s)] = number
                for reference in ray.wait(list(running))[0]:
                    self._handle_result(reference, running.pop(reference), queue)
        finally:
            for reference in running:
                ray.cancel(reference, force=True)
        return queue.episodes()

    def for_job(self, job: Job) -> "RayPool":
        """A pool for another job on the same cluster."""
        return RayPool(job, timeout_s=self.timeout_s, retries=self.retries)

    def close(self) -> None:
        """Disconnect, if this pool made the connection. A cluster on this computer ends with it."""
        if self._owns_connection and ray.is_initialized():
            ray.shutdown()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_build(self) -> None:
        """Build the environment once on some node, so that an error is reported once and not per task."""
        if not self._env_was_built:
            answer = _get(_build.options(max_retries=self.retries).remote(self._pickled_job))
            if isinstance(answer, Failure | BuildFailure):
                raise start_error(self.job, answer.reason)
            self._env_was_built = True

    def _handle_result(self, reference: Any, number: int, queue: TaskQueue) -> None:
        match _get(reference):
            case Episode() as episode:
                queue.finish(number, episode)
                self._build_failures = 0
            case Failure(reason, trace):
                queue.fail(number, reason, trace)
            case BuildFailure(reason):
                queue.put_back(number)
                self._build_failures += 1
                if self._build_failures > MAX_BUILD_FAILURES:
                    raise start_error(self.job, reason)
            case None:
                queue.put_back(number)


def _get(reference: Any) -> Any:
    """Return the result of a task, or why it has none; None if it was lost with its node."""
    try:
        return ray.get(reference)
    except (ray.exceptions.NodeDiedError, ray.exceptions.ObjectLostError):
        return None
    except ray.exceptions.WorkerCrashedError:
        return Failure("the worker crashed, was killed, or exceeded its time limit")
    except ray.exceptions.OutOfMemoryError:
        return Failure("the worker was killed because its node ran out of memory")
    except ray.exceptions.RayError as error:  # the task was never started
        return BuildFailure(f"{type(error).__name__}: {error}")


@ray.remote(num_cpus=1, max_retries=0, runtime_env={"env_vars": ONE_CORE})
def _build(job: PickledJob) -> BuildFailure | None:
    """In a Ray worker: build the environment, or return why that failed."""
    runner = _runner_for(job)
    return runner if isinstance(runner, BuildFailure) else None


@ray.remote(num_cpus=1, max_retries=0, runtime_env={"env_vars": ONE_CORE})
def _run(
    job: PickledJob, task: Task, normaliser: Normaliser | None, timeout_s: float
) -> Episode | Failure | BuildFailure:
    """In a Ray worker: run an episode, or return why that failed."""
    runner = _runner_for(job)
    if isinstance(runner, BuildFailure):
        return runner
    try:
        with _alarm(timeout_s):
            return runner.run(*task, normaliser)
    except Exception as error:
        _close_runner()  # the environment may be in any state, so the retry builds a new one
        return Failure(describe_error(error), format_error(error))


def _runner_for(job: PickledJob) -> Runner | BuildFailure:
    global _runner  # noqa: PLW0603
    if _runner is None or _runner[0] != job.digest:
        _close_runner()
        try:
            with _alarm(START_TIMEOUT_S):
                _runner = job.digest, cloudpickle.loads(job.content).make_runner()
        except Exception as error:
            return BuildFailure(f"{describe_error(error)} on {ray.util.get_node_ip_address()}")
    return _runner[1]


@contextlib.contextmanager
def _alarm(seconds: float) -> Iterator[None]:
    """Kill this process after the time limit, even in compiled code: the signal has no handler."""
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _close_runner() -> None:
    global _runner
    if _runner is not None:
        (_, runner), _runner = _runner, None
        runner.close()


@contextlib.contextmanager
def _on_loopback() -> Iterator[None]:
    """Have a cluster that is started now listen on the loopback interface, as Ray does where it supports no clusters.

    A process that reaches its ports can run any code. Ray replaces a loopback `_node_ip_address`.
    """
    name, before = ray_constants.ENABLE_RAY_CLUSTERS_ENV_VAR, ray_constants.ENABLE_RAY_CLUSTER
    given = os.environ.get(name)
    os.environ[name], ray_constants.ENABLE_RAY_CLUSTER = "0", False  # of the processes that Ray starts, and of this one
    try:
        yield
    finally:
        ray_constants.ENABLE_RAY_CLUSTER = before
        if given is None:
            del os.environ[name]
        else:
            os.environ[name] = given


def _connect(address: str | None, workers: int | None) -> None:
    """Join a cluster, or start one, without output."""
    local: dict[str, Any] = {"num_cpus": workers, "include_dashboard": False} if address is None else {}
    with warnings.catch_warnings(), _on_loopback() if address is None else contextlib.nullcontext():
        warnings.filterwarnings("ignore", "os.fork", RuntimeWarning)  # from JAX: the forked process calls exec at once
        # Without an address, Ray would join any cluster that runs on this computer, and refuse `num_cpus`.
        ray.init(address=address or "local", log_to_driver=False, logging_level=logging.ERROR, **local)
    ray_driver._worker_logs_enabled = False  # failures are reported with their episodes
