import pytest
from rollout_cases import SEEDS, bits, check_failures, mark_of, normaliser_of, policy_job, spec_of, thetas_of

from iap.rollouts import EnvConfig, InlinePool, Job, PoolError

pytest.importorskip("ray")

from iap.rollouts.ray_pool import RayPool

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def cluster(importable_by_ray):
    """A cluster of this computer, which other pools find, use and leave as it is."""
    with RayPool(policy_job(), workers=2):
        yield


@pytest.mark.usefixtures("cluster")
def test_results_are_those_of_the_inline_pool():
    job = Job(EnvConfig("hazards:Hazard-v0"), spec_of(), max_steps=9)
    uneven = [[3, 1, 4], [], [1], [5, 9]]
    with InlinePool(job) as inline, RayPool(job) as pool:
        for normaliser in (normaliser_of(job), None):
            expected = inline.evaluate(thetas_of(job), uneven, normaliser)
            assert bits(pool.evaluate(thetas_of(job), uneven, normaliser)) == bits(expected)
        assert pool.evaluate(thetas_of(job, 0), []) == []


@pytest.mark.usefixtures("cluster")
def test_episodes_whose_workers_fail_or_hang_are_run_again(tmp_path, truth):
    job = policy_job({1: "raise", 2: "segfault", 5: "exit", 6: "wait in C"}, tmp_path)
    with RayPool(job, timeout_s=2) as pool:
        assert bits(pool.evaluate(thetas_of(job), SEEDS)) == truth
    assert {path.name for path in tmp_path.iterdir()} == {"1", "2", "5", "6"}  # it did go wrong


@pytest.mark.usefixtures("cluster")
def test_episodes_that_fail_every_time_are_reported_and_the_others_are_not_touched(truth):
    said = {
        1: r"failed 2 times, at last: LookupError: the env has lost its way \(in _raise, hazards.py line \d+\)",
        4: r"failed 2 times, at last: the worker crashed, was killed, or took too long",
        6: r"the reward at step 3 is not finite: nan",
    }
    job = policy_job({1: "raise", 4: "segfault", 6: "give NaN"})
    with RayPool(job, retries=1) as pool:
        found = pool.evaluate(thetas_of(job), SEEDS)
    check_failures(found, truth, said)


@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize(("trouble", "said"), [("raise", "LookupError: the env has lost its way"), ("exit", "crashed")])
def test_an_environment_that_cannot_be_built_is_one_error(trouble, said):
    job = policy_job({-1: trouble})
    with RayPool(job, retries=1) as pool, pytest.raises(PoolError, match=f"no worker can be started for .*: .*{said}"):
        pool.evaluate(thetas_of(job), SEEDS)


@pytest.mark.usefixtures("cluster")
def test_an_episode_is_not_blamed_for_a_worker_that_cannot_build_its_environment(tmp_path, truth):
    job = policy_job({-1: "raise", 2: "raise"}, tmp_path, pause_s=0.02)
    marks = [tmp_path / "-1", tmp_path / "2"]
    for mark in marks:
        mark.touch()
    with RayPool(job, retries=1) as pool:
        assert bits(pool.evaluate(thetas_of(job), SEEDS)) == truth
        for mark in marks:
            mark.unlink()
        assert bits(pool.evaluate(thetas_of(job), SEEDS)) == truth
    assert all(mark.exists() for mark in marks)  # an episode failed, and then its successor's environment


@pytest.mark.usefixtures("cluster")
def test_a_worker_is_small_and_has_one_thread_of_each_kind(tmp_path):
    job = Job(EnvConfig.of("hazards:Hazard-v0", troubles=((2, "tell"),), marks=str(tmp_path)), spec_of())
    with RayPool(job) as pool:
        pool.evaluate(thetas_of(job), SEEDS)
    told = mark_of(tmp_path, 2)
    assert told["memory_bytes"] < 300e6
    assert not {"jax", "jaxlib", "torch", "matplotlib"} & {*told["loaded"]}
    assert told["limits"].items() >= {"OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "LP_NUM_THREADS": "0"}.items()
