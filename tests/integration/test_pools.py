"""A training run has the same result, bit by bit, in every pool, with any number of workers, and if a node is lost."""

import os
import time
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

import pytest
from training_cases import TINY, iap, outcome, run_here, tiny

from iap.evolution import CMAES, OpenES
from iap.rollouts import LocalPool
from iap.training.loop import train
from iap.training.run_directory import RunDirectory

STRATEGIES = {"open-es": OpenES(population=6), "cma-es": CMAES(population=6)}
STORE_BYTES = 80 << 20  # object store of a Ray node, about the minimum of Ray


@pytest.fixture(scope="module", params=STRATEGIES)
def config(request):
    """A strategy without linear algebra, and one with matrices of 162 rows, whose last bits depend on the threads."""
    return tiny(strategy=STRATEGIES[request.param], random_search=7, iterations=6)


@pytest.fixture(scope="module")
def inline(config, tmp_path_factory):
    """The result in the inline pool."""
    return outcome(run_here(config, tmp_path_factory.mktemp("run") / "inline"))


@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_metrics_and_theta_do_not_depend_on_the_number_of_workers(config, inline, tmp_path, workers):
    assert outcome(run_here(config, tmp_path / "local", LocalPool, workers=workers)) == inline


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores cannot be chosen here")
def test_metrics_and_theta_do_not_depend_on_the_number_of_cores(tmp_path):
    """CMA-ES uses an eigendecomposition, whose last bits depend on the number of threads."""
    unlimited = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    cores = os.sched_getaffinity(0)
    found = []
    for some in ({min(cores)}, cores):
        out = tmp_path / f"{len(found)}"
        words = ["train", "seek", "--strategy", "cma-es", *TINY, "--out", out, "--pool", "inline"]
        iap(*words, env=unlimited, preexec_fn=partial(os.sched_setaffinity, 0, some))
        found.append(outcome(RunDirectory(out)))
    assert found[0] == found[1]


@pytest.fixture(scope="module")
def cluster():
    """A Ray cluster with one node that has a core, for all strategies."""
    pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    head = {"num_cpus": 0, "include_dashboard": False, "object_store_memory": STORE_BYTES}
    started = Cluster(True, head_node_args=head)
    started.add_node(num_cpus=1, object_store_memory=STORE_BYTES)
    yield started
    started.shutdown()


@pytest.mark.slow
def test_metrics_and_theta_do_not_change_if_a_ray_cluster_loses_a_node_during_training(
    config, inline, cluster, tmp_path
):
    import ray

    from iap.rollouts.ray_pool import RayPool

    leaving = cluster.add_node(num_cpus=1, object_store_memory=STORE_BYTES)
    run = RunDirectory.create(tmp_path / "ray", config)
    lost: list[Future[None]] = []

    def alive() -> int:
        return sum(node["Alive"] for node in ray.nodes())

    def lose_a_node(row):
        if row["iteration"] == 2:  # during the third iteration, or a later one
            lost.append(executor.submit(cluster.remove_node, leaving, allow_graceful=False))
        if row["iteration"] == config.iterations - 1:
            lost[0].result(60)

    with RayPool(config.job, cluster.address) as pool, ThreadPoolExecutor(1) as executor:
        assert alive() == 3  # the head, the node that leaves and the one that stays
        train(config, pool, run, lose_a_node)
        until = time.monotonic() + 60  # Ray notices the loss of a node after a delay
        while alive() > 2 and time.monotonic() < until:
            time.sleep(0.2)
        assert alive() == 2
    assert outcome(run) == inline
