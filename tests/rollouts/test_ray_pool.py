"""Two clusters on this computer: one that loses a node and gains another, then one that a pool starts beside it.

The order matters: Ray can hang if a process leaves its own cluster and joins one that was started before.
"""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hazards import Hazard
from rollout_cases import (
    SEEDS,
    blind_job,
    check_failures,
    draw_normaliser,
    draw_thetas,
    policy_config,
    to_bits,
    wait_for_marker,
)

from iap.rollouts import EnvConfig, InlinePool, Job, PoolError

pytest.importorskip("ray")

import ray
from ray.cluster_utils import Cluster

from iap.rollouts.ray_pool import RayPool

pytestmark = pytest.mark.slow
STORE_BYTES = 80 << 20  # object store of a node, about the minimum of Ray


@pytest.fixture(scope="module")
def changing_cluster(importable_by_ray):
    """A cluster with one node that has a core. It runs until the end of all tests here."""
    head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": STORE_BYTES}
    cluster = Cluster(True, head_node_args=head)
    cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES)
    yield cluster
    cluster.shutdown()


def test_results_do_not_change_if_a_node_leaves_and_another_joins(changing_cluster, tmp_path, expected):
    job = blind_job({3: "hang"}, tmp_path)
    [leaving] = [node for node in changing_cluster.list_all_nodes() if not node.head]
    with RayPool(job, changing_cluster.address, retries=0) as pool, ThreadPoolExecutor(1) as executor:
        found = executor.submit(pool.evaluate, draw_thetas(job), SEEDS)
        wait_for_marker(tmp_path, 3)  # some episodes are finished, one hangs, others wait
        changing_cluster.remove_node(leaving, allow_graceful=False)
        changing_cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES)
        assert to_bits(found.result(60)) == expected
        assert sorted(node["Alive"] for node in ray.nodes()) == [False, True, True]


@pytest.fixture(scope="module")
def own_cluster(changing_cluster):
    """A cluster that a pool starts on this computer. Other pools of this process use it and do not end it."""
    with RayPool(blind_job(), workers=2) as pool:
        yield pool


def test_a_pool_without_an_address_starts_its_own_cluster(own_cluster, changing_cluster):
    assert ray.get_runtime_context().gcs_address != changing_cluster.address
    assert ray.cluster_resources()["CPU"] == 2


@pytest.mark.usefixtures("own_cluster")
def test_results_equal_those_of_the_inline_pool():
    job = Job(EnvConfig("hazards:Hazard-v0"), policy_config(), max_steps=9)
    uneven = [[3, 1, 4], [], [1], [5, 9]]
    with InlinePool(job) as inline, RayPool(job) as pool:
        for normaliser in (draw_normaliser(job), None):
            expected = inline.evaluate(draw_thetas(job), uneven, normaliser)
            assert to_bits(pool.evaluate(draw_thetas(job), uneven, normaliser)) == to_bits(expected)
        assert pool.evaluate(draw_thetas(job, 0), []) == []


@pytest.mark.usefixtures("own_cluster")
def test_a_function_that_makes_the_environment_is_sent_to_workers_and_called_once_in_each(tmp_path, expected):
    def make_env() -> Hazard:
        (tmp_path / str(len([*tmp_path.iterdir()]))).touch()
        return Hazard(pause_s=0.01)

    job = Job(EnvConfig.from_factory(make_env), blind_job().policy)
    with RayPool(job) as pool:
        assert to_bits(pool.evaluate(draw_thetas(job), SEEDS)) == expected
    assert 1 <= len([*tmp_path.iterdir()]) <= 3  # two workers, and the worker that built it first


@pytest.mark.usefixtures("own_cluster")
def test_episodes_whose_workers_fail_or_hang_are_run_again(tmp_path, expected):
    job = blind_job({1: "raise", 2: "segfault", 5: "exit", 6: "hang in C"}, tmp_path)
    with RayPool(job, timeout_s=2) as pool:
        assert to_bits(pool.evaluate(draw_thetas(job), SEEDS)) == expected
    assert {path.name for path in tmp_path.iterdir()} == {"1", "2", "5", "6"}  # each fault occurred


@pytest.mark.usefixtures("own_cluster")
def test_episodes_that_always_fail_are_reported_and_the_others_are_unaffected(expected):
    again = "failed 2 times, the last time with: "
    errors = {
        1: again + r"LookupError: fault of the environment \(in _raise, hazards.py line \d+\)",
        4: again + r"the worker crashed, was killed, or exceeded its time limit",
        6: r"the reward at step 3 is not finite: nan",
    }
    job = blind_job({1: "raise", 4: "segfault", 6: "return NaN"})
    with RayPool(job, retries=1) as pool:
        found = pool.evaluate(draw_thetas(job), SEEDS)
    check_failures(found, expected, errors)


@pytest.mark.usefixtures("own_cluster")
@pytest.mark.parametrize(("fault", "error"), [("raise", "LookupError: fault of the environment"), ("exit", "crashed")])
def test_an_environment_that_cannot_be_built_is_one_error(fault, error):
    job = blind_job({-1: fault})
    with RayPool(job, retries=1) as pool, pytest.raises(PoolError, match=f"no worker can be started for .*: .*{error}"):
        pool.evaluate(draw_thetas(job), SEEDS)


@pytest.mark.usefixtures("own_cluster")
def test_a_failure_to_build_the_environment_does_not_count_as_a_failure_of_the_episode(tmp_path, expected):
    job = blind_job({-1: "raise", 2: "raise"}, tmp_path, pause_s=0.02)
    markers = [tmp_path / "-1", tmp_path / "2"]
    for marker in markers:
        marker.touch()
    with RayPool(job, retries=1) as pool:
        assert to_bits(pool.evaluate(draw_thetas(job), SEEDS)) == expected
        for marker in markers:
            marker.unlink()
        assert to_bits(pool.evaluate(draw_thetas(job), SEEDS)) == expected
    assert all(marker.exists() for marker in markers)  # an episode failed, then the build for its retry


@pytest.mark.usefixtures("own_cluster")
def test_a_worker_is_small_and_has_one_thread_of_each_library(tmp_path):
    job = Job(EnvConfig.of("hazards:Hazard-v0", faults=((2, "continue"),), markers=str(tmp_path)), policy_config())
    with RayPool(job) as pool:
        pool.evaluate(draw_thetas(job), SEEDS)
    facts = wait_for_marker(tmp_path, 2)
    assert facts["memory_bytes"] < 300e6
    assert not {"jax", "jaxlib", "torch", "matplotlib"} & {*facts["loaded"]}
    assert facts["limits"].items() >= {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "LP_NUM_THREADS": "0"}.items()


LISTENING = """
import sys, psutil
sys.path.insert(0, {here!r})
from rollout_cases import SEEDS, blind_job, draw_thetas
from iap.rollouts.ray_pool import RayPool
with RayPool(blind_job(), workers=1) as pool:
    pool.evaluate(draw_thetas(blind_job()), SEEDS)
    family = [psutil.Process(), *psutil.Process().children(recursive=True)]
    for process in family:
        for connection in process.net_connections():
            if connection.status == psutil.CONN_LISTEN:
                print("listens", process.name(), connection.laddr.ip)
"""


def test_a_cluster_on_this_computer_listens_on_the_loopback_interface_only(importable_by_ray):
    program = LISTENING.format(here=str(Path(__file__).parent))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    rows = [line.split() for line in done.stdout.splitlines() if line.startswith("listens")]
    assert {"gcs_server", "raylet"} <= {row[1] for row in rows}
    assert {row[-1] for row in rows} <= {"127.0.0.1", "::1", "::ffff:127.0.0.1"}
