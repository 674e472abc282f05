"""A training run comes out the same to the last bit wherever its episodes run, and whatever happens there."""

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
STORE = 80 << 20  # bytes of a Ray node's object store, about the least that Ray allows


@pytest.fixture(scope="module", params=STRATEGIES)
def config(request):
    """A strategy that is exact anywhere, and one with matrices of 162 rows, whose last bits are a matter of threads."""
    return tiny(strategy=STRATEGIES[request.param], random_search=7, iterations=6)


@pytest.fixture(scope="module")
def inline(config, tmp_path_factory):
    return outcome(run_here(config, tmp_path_factory.mktemp("run") / "inline"))


@pytest.mark.parametrize("workers", [1, 2])
def test_metrics_and_theta_are_the_same_whatever_the_number_of_workers(config, inline, tmp_path, workers):
    assert outcome(run_here(config, tmp_path / "local", LocalPool, workers=workers)) == inline


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="cores cannot be chosen here")
def test_they_are_the_same_on_one_core_and_on_all(tmp_path):
    """CMA-ES draws on an eigendecomposition, whose last bits depend on how many threads share it."""
    free = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    cores = os.sched_getaffinity(0)
    found = []
    for some in ({min(cores)}, cores):
        out = tmp_path / f"{len(found)}"
        words = ["train", "seek", "--strategy", "cma-es", *TINY, "--out", out, "--pool", "inline"]
        iap(*words, env=free, preexec_fn=partial(os.sched_setaffinity, 0, some))
        found.append(outcome(RunDirectory(out)))
    assert found[0] == found[1]


@pytest.mark.slow
def test_they_are_the_same_on_a_ray_cluster_that_loses_a_node_in_the_middle_of_training(config, inline, tmp_path):
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    from iap.rollouts.ray_pool import RayPool

    cluster = Cluster(True, head_node_args={"num_cpus": 0, "include_dashboard": False, "object_store_memory": STORE})
    leaving, _staying = (cluster.add_node(num_cpus=1, object_store_memory=STORE) for _ in range(2))
    run = RunDirectory.create(tmp_path / "ray", config)
    lost: list[Future[None]] = []

    def lose_a_node(row):
        if row["iteration"] == 2:  # while the third runs, or a later one
            lost.append(elsewhere.submit(cluster.remove_node, leaving, allow_graceful=False))
        if row["iteration"] == config.iterations - 1:
            lost[0].result(60)

    try:
        with RayPool(config.job, cluster.address) as pool, ThreadPoolExecutor(1) as elsewhere:
            assert len([node for node in ray.nodes() if node["Alive"] and "CPU" in node["Resources"]]) == 2
            train(config, pool, run, lose_a_node)
            until = time.monotonic() + 60  # Ray notices only after a while that a node is gone
            while sum(node["Alive"] for node in ray.nodes()) > 2 and time.monotonic() < until:
                time.sleep(0.2)
            assert sorted(node["Alive"] for node in ray.nodes()) == [False, True, True]
        assert outcome(run) == inline
    finally:
        cluster.shutdown()
