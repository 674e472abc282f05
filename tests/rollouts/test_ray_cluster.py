from concurrent.futures import ThreadPoolExecutor

import pytest
from rollout_cases import SEEDS, bits, mark_of, policy_job, thetas_of

pytest.importorskip("ray")

import ray
from ray.cluster_utils import Cluster

from iap.rollouts.ray_pool import RayPool

STORE = 80 << 20  # bytes of a node's object store, about the least that Ray allows


@pytest.mark.slow
@pytest.mark.usefixtures("importable_by_ray")
def test_a_node_that_leaves_and_one_that_joins_change_nothing(tmp_path, truth):
    job = policy_job({3: "wait"}, tmp_path)
    cluster = Cluster(True, head_node_args={"num_cpus": 0, "include_dashboard": False, "object_store_memory": STORE})
    leaving = cluster.add_node(num_cpus=1, object_store_memory=STORE)
    try:
        with RayPool(job, cluster.address, retries=0) as pool, ThreadPoolExecutor(1) as elsewhere:
            found = elsewhere.submit(pool.evaluate, thetas_of(job), SEEDS)
            mark_of(tmp_path, 3)  # some episodes are done, one hangs, others wait
            cluster.remove_node(leaving, allow_graceful=False)
            cluster.add_node(num_cpus=1, object_store_memory=STORE)
            assert bits(found.result(60)) == truth
            assert sorted(node["Alive"] for node in ray.nodes()) == [False, True, True]
    finally:
        cluster.shutdown()


@pytest.mark.slow
@pytest.mark.usefixtures("importable_by_ray")
def test_a_pool_without_an_address_leaves_other_clusters_of_the_computer_alone():
    cluster = Cluster(True, head_node_args={"num_cpus": 0, "include_dashboard": False, "object_store_memory": STORE})
    try:
        with RayPool(policy_job(), workers=1):
            assert ray.get_runtime_context().gcs_address != cluster.address
            assert ray.cluster_resources()["CPU"] == 1
    finally:
        cluster.shutdown()
