import math
import os
import random
import re
import resource
import signal
import subprocess
import sys
import threading
import time
from itertools import pairwise
from pathlib import Path

import psutil
import pytest
from rollout_cases import (
    SEEDS,
    blind_job,
    check_failures,
    descendants,
    draw_thetas,
    is_running,
    policy_config,
    to_bits,
    wait_for,
    wait_for_marker,
)

from iap.rollouts import EnvConfig, Job, LocalPool, PoolError, local_pool
from iap.rollouts.pool import TaskQueue

ME = os.getpid()


def worker_pids() -> list[int]:
    return [pid for pid in descendants(ME) if "iap.rollouts.worker" in " ".join(psutil.Process(pid).cmdline())]


def kill(pid: int) -> None:
    os.kill(pid, signal.SIGKILL)
    wait_for(lambda: not is_running(pid))


def test_episodes_whose_workers_fail_are_run_again(tmp_path, expected):
    job = blind_job({1: "raise", 2: "segfault", 5: "exit", 6: "kill"}, tmp_path)
    with LocalPool(job, 2) as pool:
        assert to_bits(pool.evaluate(draw_thetas(job), SEEDS)) == expected
        assert {path.name for path in tmp_path.iterdir()} == {"1", "2", "5", "6"}  # each fault occurred
        assert to_bits(pool.evaluate(draw_thetas(job), SEEDS)) == expected


def test_workers_that_hang_are_replaced(tmp_path, expected):
    job = blind_job({3: "hang", 4: "hang in C"}, tmp_path)
    with LocalPool(job, 2, timeout_s=2) as pool:
        assert to_bits(pool.evaluate(draw_thetas(job), SEEDS)) == expected
        assert not any(is_running(wait_for_marker(tmp_path, seed)["pid"]) for seed in (3, 4))


def test_a_worker_killed_during_an_episode_is_replaced(tmp_path, expected):
    job = blind_job({4: "hang"}, tmp_path)
    killer = threading.Thread(target=lambda: kill(wait_for_marker(tmp_path, 4)["pid"]))
    killer.start()
    with LocalPool(job, 2) as pool:
        assert to_bits(pool.evaluate(draw_thetas(job), SEEDS)) == expected
    killer.join()


def test_workers_that_die_or_stop_while_idle_are_replaced(expected):
    with LocalPool(blind_job(), 2, timeout_s=3, retries=1) as pool:
        while sum(worker.is_ready for worker in pool.workers) < 2:  # one may finish before the other has started
            assert to_bits(pool.evaluate(draw_thetas(blind_job()), SEEDS)) == expected
        dead, stopped = worker_pids()
        kill(dead)
        os.kill(stopped, signal.SIGSTOP)
        assert to_bits(pool.evaluate(draw_thetas(blind_job()), SEEDS)) == expected
        assert not {dead, stopped} & {*worker_pids()}


def test_the_death_of_an_idle_worker_does_not_count_as_a_failure_of_the_next_episode(expected):
    with LocalPool(blind_job(), 1, retries=0) as pool:
        assert to_bits(pool.evaluate(draw_thetas(blind_job()), SEEDS)) == expected
        kill(*worker_pids())
        assert to_bits(pool.evaluate(draw_thetas(blind_job()), SEEDS)) == expected


def test_episodes_that_always_fail_are_reported_and_the_others_are_unaffected(expected):
    again = "failed 2 times, the last time with: "
    errors = {
        1: again + r"LookupError: fault of the environment \(in _raise, hazards.py line \d+\)",
        3: again + r"the worker was killed by signal 11 .*: about to segfault\n.*hazards.py.*_segfault",
        5: again + r"the worker exited with status 3: about to exit",
        6: again + r"the worker exceeded its time limit of 3 s",
    }
    job = blind_job({1: "raise", 3: "segfault", 5: "exit", 6: "hang"})
    with LocalPool(job, 2, retries=1, timeout_s=3) as pool:
        found = pool.evaluate(draw_thetas(job), SEEDS)
    check_failures(found, expected, errors)


def test_an_environment_that_ends_every_worker_is_one_error_before_all_episodes_were_tried(monkeypatch):
    monkeypatch.setattr(local_pool, "MOST_DEATHS", 4)
    job = blind_job({seed: "exit" for seeds in SEEDS for seed in seeds})
    error = r"4 episodes of hazards:Hazard-v0 in a row ended their worker: the worker exited with status 3: about to"
    with LocalPool(job, 2) as pool, pytest.raises(PoolError, match=error):
        pool.evaluate(draw_thetas(job), SEEDS)


def test_an_environment_that_cannot_be_built_is_one_error_without_retries():
    error = "no worker can be started for hazards:Hazard-v0: LookupError: fault of"
    with LocalPool(blind_job({-1: "raise"}), 2) as pool:
        with pytest.raises(PoolError, match=error):
            pool.evaluate(draw_thetas(blind_job()), SEEDS)
        assert worker_pids() == []
        with pytest.raises(PoolError, match="closed"):
            pool.evaluate(draw_thetas(blind_job()), SEEDS)


def test_an_unknown_environment_is_one_error_without_retries():
    job = Job(EnvConfig("NoSuchThing-v7"), policy_config())
    with LocalPool(job, 2) as pool, pytest.raises(PoolError, match="NoSuchThing-v7"):
        pool.evaluate(draw_thetas(job), SEEDS)


def test_an_environment_that_crashes_while_it_is_built_is_one_error_after_the_retries():
    with (
        LocalPool(blind_job({-1: "segfault"}), 1) as pool,
        pytest.raises(PoolError, match=r"signal 11 \(Segmentation fault\): about to"),
    ):
        pool.evaluate(draw_thetas(blind_job()), SEEDS)


def test_an_import_error_of_a_worker_is_reported(monkeypatch):
    monkeypatch.setattr(sys, "path", [])
    with (
        LocalPool(blind_job(), 1, retries=0) as pool,
        pytest.raises(PoolError, match="ModuleNotFoundError: No module"),
    ):
        pool.evaluate(draw_thetas(blind_job()), SEEDS)


def test_a_failed_start_is_retried_if_an_earlier_one_succeeded(tmp_path, expected):
    job = blind_job({-1: "raise"}, tmp_path)
    (tmp_path / "-1").touch()
    with LocalPool(job, 1) as pool:
        assert to_bits(pool.evaluate(draw_thetas(job), SEEDS)) == expected
        (tmp_path / "-1").unlink()
        kill(*worker_pids())
        assert to_bits(pool.evaluate(draw_thetas(job), SEEDS)) == expected
    assert "pid" in wait_for_marker(tmp_path, -1)


def test_children_of_a_worker_are_killed_with_it(tmp_path, expected):
    job = blind_job({3: "spawn a child"}, tmp_path)
    before = {*descendants(ME)}
    with LocalPool(job, 1, timeout_s=2) as pool:
        assert to_bits(pool.evaluate(draw_thetas(job), SEEDS)) == expected
        assert {*descendants(ME)} - before == {*worker_pids()}


@pytest.fixture
def interruptible():
    """SIGINT raises KeyboardInterrupt, even if the tests were started in the background and ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


PARENT = """
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, {here!r})
from rollout_cases import SEEDS, blind_job, draw_thetas
from iap.rollouts import LocalPool
job = blind_job({{2: "hang in C", 3: "spawn a child"}}, {markers!r})
with LocalPool(job, 2) as pool:
    pool.evaluate(draw_thetas(job), SEEDS)
"""


@pytest.mark.parametrize(
    "signal_number",
    [signal.SIGKILL, *(pytest.param(number, marks=pytest.mark.slow) for number in (signal.SIGTERM, signal.SIGINT))],
)
def test_workers_exit_with_their_parent(signal_number, tmp_path):
    program = PARENT.format(here=str(Path(__file__).parent), markers=str(tmp_path))
    with subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.DEVNULL) as parent:
        assert {wait_for_marker(tmp_path, seed)["pid"] for seed in (2, 3)} <= {*descendants(parent.pid)}
        family = wait_for(lambda: len(found := descendants(parent.pid)) == 3 and found)
        parent.send_signal(signal_number)
        try:
            parent.wait(5)
        finally:
            parent.kill()
    wait_for(lambda: not any(map(is_running, family)), 5)


def test_ctrl_c_closes_the_pool(tmp_path, interruptible):
    job = blind_job({2: "hang"}, tmp_path)
    interrupter = threading.Thread(target=lambda: wait_for_marker(tmp_path, 2) and os.kill(ME, signal.SIGINT))
    interrupter.start()
    with LocalPool(job, 2) as pool:
        with pytest.raises(KeyboardInterrupt):
            pool.evaluate(draw_thetas(job), SEEDS)
        assert worker_pids() == []
    interrupter.join()


def test_a_worker_is_small_and_has_one_thread_and_its_own_core(tmp_path):
    job = Job(EnvConfig.of("hazards:Hazard-v0", faults=((2, "continue"),), markers=str(tmp_path)), policy_config())
    with LocalPool(job) as pool:  # one worker per core
        pool.evaluate(draw_thetas(job), SEEDS)
        found = [psutil.Process(pid) for pid in worker_pids()]
        assert len(found) == len(os.sched_getaffinity(0))
        assert len({tuple(worker.cpu_affinity()) for worker in found}) == len(found)
        for worker in found:
            assert worker.memory_info().rss < 300e6
            assert worker.num_threads() == 1
    facts = wait_for_marker(tmp_path, 2)
    assert facts["cores"] == 1
    assert not {"jax", "jaxlib", "torch", "ray", "matplotlib", "pytest"} & {*facts["loaded"]}
    assert facts["limits"].items() >= {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "LP_NUM_THREADS": "0"}.items()


def test_workers_run_on_the_given_cores(expected):
    core = max(os.sched_getaffinity(0))
    with LocalPool(blind_job(), 2, cores=[core]) as pool:
        assert to_bits(pool.evaluate(draw_thetas(blind_job()), SEEDS)) == expected
        assert [psutil.Process(pid).cpu_affinity() for pid in worker_pids()] == [[core], [core]]


def test_an_evaluation_goes_on_while_workers_are_killed_at_random_moments(expected, caplog):
    job = blind_job({}, pause_s=0.02)
    rng, killed, done = random.Random(0), list[int](), threading.Event()
    started = time.monotonic()

    def kill_workers() -> None:
        while not done.wait(rng.uniform(0.2, 1.5) * start_s):  # also while they start
            if pids := worker_pids():
                killed.append(rng.choice(pids))
                os.kill(killed[-1], signal.SIGKILL)

    killer = threading.Thread(target=kill_workers)
    with LocalPool(job, 2, retries=0) as pool:
        assert to_bits(pool.evaluate(draw_thetas(job), SEEDS)) == expected
        start_s = time.monotonic() - started
        killer.start()
        while len(killed) < 6:
            assert to_bits(pool.evaluate(draw_thetas(job), SEEDS)) == expected
        done.set()
        killer.join()
    assert re.search(r"the worker was killed by signal 9 \(Killed\).*: another one is started", caplog.text)
    assert len(caplog.records) < len(killed)  # not one for each


def test_workers_killed_while_they_start_are_started_again_after_growing_delays(expected):
    with LocalPool(blind_job(), 1, retries=0) as pool:
        waits = []
        for _ in range(4):  # more often than an episode may fail
            kill(*wait_for(worker_pids))
            pool._collect(TaskQueue(blind_job(), draw_thetas(blind_job()), SEEDS, 0))
            [slot] = pool._slots
            waits.append(slot.delay_s)
            slot._starts_at_s = -math.inf
            slot.start_if_due()
        assert all(later == 2 * earlier for earlier, later in pairwise(waits))
        assert to_bits(pool.evaluate(draw_thetas(blind_job()), SEEDS)) == expected


def test_an_episode_that_kills_its_workers_each_time_is_one_error_and_the_others_are_unaffected(expected, monkeypatch):
    monkeypatch.setattr("iap.rollouts.pool.MAX_KILLS", 4)
    error = r"its worker was killed in 4 of 4 attempts; does it need more memory\? the worker was killed by signal 9"
    with LocalPool(blind_job({2: "kill"}), 2, retries=1) as pool:
        check_failures(pool.evaluate(draw_thetas(blind_job()), SEEDS), expected, {2: error})


def test_a_pool_whose_workers_never_start_again_is_one_error(expected, monkeypatch):
    monkeypatch.setattr("iap.rollouts.local_pool.MAX_FAILED_STARTS", 3)
    job = blind_job({-1: "kill"})
    with LocalPool(job, 2) as pool, pytest.raises(PoolError, match=r"no worker can be started .* signal 9"):
        pool.evaluate(draw_thetas(job), SEEDS)


def test_a_system_without_room_for_another_process_is_waited_for(expected):
    with LocalPool(blind_job(), 1) as pool:
        assert to_bits(pool.evaluate(draw_thetas(blind_job()), SEEDS)) == expected
        kill(*worker_pids())
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        resource.setrlimit(resource.RLIMIT_NOFILE, (len([*Path("/proc/self/fd").iterdir()]) + 1, before[1]))
        timer = threading.Timer(1.0, lambda: resource.setrlimit(resource.RLIMIT_NOFILE, before))
        timer.start()
        try:
            assert to_bits(pool.evaluate(draw_thetas(blind_job()), SEEDS)) == expected
        finally:
            timer.join()
