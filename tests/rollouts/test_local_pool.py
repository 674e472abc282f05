import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest
from rollout_cases import (
    SEEDS,
    bits,
    check_failures,
    children_of,
    is_running,
    mark_of,
    policy_job,
    spec_of,
    thetas_of,
    wait_for,
)

from iap.rollouts import EnvConfig, Job, LocalPool, PoolError

ME = os.getpid()


def workers() -> list[int]:
    return [pid for pid in children_of(ME) if "iap.rollouts.worker" in " ".join(psutil.Process(pid).cmdline())]


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not is_running(pid))


def test_episodes_whose_workers_fail_are_run_again(tmp_path, truth):
    job = policy_job({1: "raise", 2: "segfault", 5: "exit", 6: "kill"}, tmp_path)
    with LocalPool(job, 2) as pool:
        assert bits(pool.evaluate(thetas_of(job), SEEDS)) == truth
        assert {path.name for path in tmp_path.iterdir()} == {"1", "2", "5", "6"}  # it did go wrong
        assert bits(pool.evaluate(thetas_of(job), SEEDS)) == truth


def test_workers_that_hang_are_replaced(tmp_path, truth):
    job = policy_job({3: "wait", 4: "wait in C"}, tmp_path)
    with LocalPool(job, 2, timeout_s=2) as pool:
        assert bits(pool.evaluate(thetas_of(job), SEEDS)) == truth
        assert not any(is_running(mark_of(tmp_path, seed)["pid"]) for seed in (3, 4))


def test_a_worker_killed_in_the_middle_of_an_episode_is_replaced(tmp_path, truth):
    job = policy_job({4: "wait"}, tmp_path)
    killer = threading.Thread(target=lambda: kill(mark_of(tmp_path, 4)["pid"]))
    killer.start()
    with LocalPool(job, 2) as pool:
        assert bits(pool.evaluate(thetas_of(job), SEEDS)) == truth
    killer.join()


def test_workers_that_die_or_stop_while_idle_are_replaced(truth):
    with LocalPool(policy_job(), 2, timeout_s=3, retries=1) as pool:
        while not all(worker.ready for worker in pool._workers):  # one alone may be done before the other has started
            assert bits(pool.evaluate(thetas_of(policy_job()), SEEDS)) == truth
        dead, stopped = workers()
        kill(dead)
        os.kill(stopped, signal.SIGSTOP)
        assert bits(pool.evaluate(thetas_of(policy_job()), SEEDS)) == truth
        assert not {dead, stopped} & {*workers()}


def test_a_worker_that_dies_while_idle_is_not_blamed_on_the_next_episode(truth):
    with LocalPool(policy_job(), 1, retries=0) as pool:
        assert bits(pool.evaluate(thetas_of(policy_job()), SEEDS)) == truth
        kill(*workers())
        assert bits(pool.evaluate(thetas_of(policy_job()), SEEDS)) == truth


def test_episodes_that_fail_every_time_are_reported_and_the_others_are_not_touched(truth):
    said = {
        1: r"failed 2 times, at last: LookupError: the env has lost its way \(in _raise, hazards.py line \d+\)",
        3: r"failed 2 times, at last: the worker was ended by signal 11 .*: about to segfault\n.*hazards.py.*_segfault",
        5: r"failed 2 times, at last: the worker ended with status 3: about to exit",
        6: r"failed 2 times, at last: the worker took longer than 3 s",
    }
    job = policy_job({1: "raise", 3: "segfault", 5: "exit", 6: "wait"})
    with LocalPool(job, 2, retries=1, timeout_s=3) as pool:
        found = pool.evaluate(thetas_of(job), SEEDS)
    check_failures(found, truth, said)


def test_an_environment_that_cannot_be_built_is_one_error_at_once():
    with LocalPool(policy_job({-1: "raise"}), 2) as pool:
        with pytest.raises(PoolError, match="no worker can be started for hazards:Hazard-v0: LookupError: the env has"):
            pool.evaluate(thetas_of(policy_job()), SEEDS)
        assert workers() == []
        with pytest.raises(PoolError, match="closed"):
            pool.evaluate(thetas_of(policy_job()), SEEDS)


def test_an_unknown_environment_is_one_error_at_once():
    job = Job(EnvConfig("NoSuchThing-v7"), spec_of())
    with LocalPool(job, 2) as pool, pytest.raises(PoolError, match="NoSuchThing-v7"):
        pool.evaluate(thetas_of(job), SEEDS)


def test_an_environment_that_crashes_in_building_is_one_error_after_a_few_tries():
    with (
        LocalPool(policy_job({-1: "segfault"}), 1) as pool,
        pytest.raises(PoolError, match=r"signal 11 \(Segmentation fault\): about to"),
    ):
        pool.evaluate(thetas_of(policy_job()), SEEDS)


def test_a_worker_that_cannot_import_shows_why(monkeypatch):
    monkeypatch.setattr(sys, "path", [])
    with LocalPool(policy_job(), 1, retries=0) as pool, pytest.raises(PoolError, match="ModuleNotFoundError: No module"):
        pool.evaluate(thetas_of(policy_job()), SEEDS)


def test_a_start_that_fails_is_forgiven_when_others_have_succeeded(tmp_path, truth):
    job = policy_job({-1: "raise"}, tmp_path)
    (tmp_path / "-1").touch()
    with LocalPool(job, 1) as pool:
        assert bits(pool.evaluate(thetas_of(job), SEEDS)) == truth
        (tmp_path / "-1").unlink()
        kill(*workers())
        assert bits(pool.evaluate(thetas_of(job), SEEDS)) == truth
    assert "pid" in mark_of(tmp_path, -1)


def test_what_a_worker_has_started_ends_with_it(tmp_path, truth):
    job = policy_job({3: "leave a child"}, tmp_path)
    before = {*children_of(ME)}
    with LocalPool(job, 1, timeout_s=2) as pool:
        assert bits(pool.evaluate(thetas_of(job), SEEDS)) == truth
        assert {*children_of(ME)} - before == {*workers()}


@pytest.fixture
def interruptible():
    """Ctrl-C means Ctrl-C, even where this program was started in the background and ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


PARENT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, {here!r})
from rollout_cases import SEEDS, policy_job, thetas_of
from iap.rollouts import LocalPool
job = policy_job({{2: "wait in C", 3: "leave a child"}}, {marks!r})
with LocalPool(job, 2) as pool:
    pool.evaluate(thetas_of(job), SEEDS)
"""


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_worker_outlives_its_parent(how, tmp_path):
    program = PARENT.format(here=str(Path(__file__).parent), marks=str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL) as parent:
        assert {mark_of(tmp_path, seed)["pid"] for seed in (2, 3)} <= {*children_of(parent.pid)}
        family = wait_for(lambda: len(found := children_of(parent.pid)) == 3 and found)
        parent.send_signal(how)
        try:
            parent.wait(5)
        finally:
            parent.kill()
    wait_for(lambda: not any(map(is_running, family)), 5)


def test_ctrl_c_closes_the_pool(tmp_path, interruptible):
    job = policy_job({2: "wait"}, tmp_path)
    typist = threading.Thread(target=lambda: mark_of(tmp_path, 2) and os.kill(ME, signal.SIGINT))
    typist.start()
    with LocalPool(job, 2) as pool:
        with pytest.raises(KeyboardInterrupt):
            pool.evaluate(thetas_of(job), SEEDS)
        assert workers() == []
    typist.join()


def test_a_worker_is_small_and_has_one_thread_and_a_core_of_its_own(tmp_path):
    job = Job(EnvConfig.of("hazards:Hazard-v0", troubles=((2, "tell"),), marks=str(tmp_path)), spec_of())
    with LocalPool(job) as pool:  # as many workers as cores
        pool.evaluate(thetas_of(job), SEEDS)
        found = [psutil.Process(pid) for pid in workers()]
        assert len(found) == len(os.sched_getaffinity(0))
        assert len({tuple(worker.cpu_affinity()) for worker in found}) == len(found)
        for worker in found:
            assert worker.memory_info().rss < 300e6
            assert worker.num_threads() == 1
    told = mark_of(tmp_path, 2)
    assert told["cores"] == 1
    assert not {"jax", "jaxlib", "torch", "ray", "matplotlib", "pytest"} & {*told["loaded"]}
    assert told["limits"].items() >= {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "LP_NUM_THREADS": "0"}.items()


def test_workers_run_on_the_cores_they_are_told(truth):
    core = max(os.sched_getaffinity(0))
    with LocalPool(policy_job(), 2, cores=[core]) as pool:
        assert bits(pool.evaluate(thetas_of(policy_job()), SEEDS)) == truth
        assert [psutil.Process(pid).cpu_affinity() for pid in workers()] == [[core], [core]]
