import math

import numpy as np
import pytest
from rollout_cases import SEEDS, bits, normaliser_of, policy_job, spec_of, thetas_of

from iap.policies import CNN, LSTM, MLP, PolicyConfig
from iap.rollouts import EnvConfig, InlinePool, Job, LocalPool, PoolError

SPECS = {
    "rank": spec_of(controller=MLP((4,))),
    "several frames": spec_of(frames=2, image_every=2),
    "convolutions": spec_of(encoder=CNN(), controller=LSTM(8)),
}


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS)
def test_results_are_the_same_and_in_order_whatever_the_workers(spec, workers):
    job = Job(EnvConfig("hazards:Hazard-v0"), spec, max_steps=9)
    uneven = [[3, 1, 4], [], [1], [5, 9]]
    with InlinePool(job) as inline, LocalPool(job, workers) as local:
        for normaliser in (normaliser_of(job), None, normaliser_of(job)):
            expected = inline.evaluate(thetas_of(job), uneven, normaliser)
            found = local.evaluate(thetas_of(job), uneven, normaliser)
            assert bits(found) == bits(expected)
            assert [[episode.seed for episode in own] for own in found] == uneven
            assert all(episode.error is None for own in found for episode in own)


def test_results_do_not_depend_on_the_threads_that_share_a_large_product():
    spec = PolicyConfig((100, 100, 3), 0, 2, encoder=CNN(), controller=MLP())
    job = Job(EnvConfig.of("iap/Seek-v0", size=100), spec, max_steps=20)
    thetas = 0.1 * thetas_of(job)
    with InlinePool(job) as inline, LocalPool(job, 1) as local:
        assert bits(local.evaluate(thetas, SEEDS)) == bits(inline.evaluate(thetas, SEEDS))


def test_an_evaluation_of_nothing_is_nothing():
    with InlinePool(policy_job()) as inline, LocalPool(policy_job(), 1) as local:
        for pool in (inline, local):
            assert pool.evaluate(thetas_of(policy_job(), 0), []) == []
            assert pool.evaluate(thetas_of(policy_job(), 2), [[], []]) == [[], []]


def test_inline_an_episode_that_raises_is_run_again_in_a_new_environment(tmp_path):
    with InlinePool(policy_job()) as safe, InlinePool(policy_job({2: "raise"}, tmp_path)) as pool:
        assert bits(pool.evaluate(thetas_of(policy_job()), SEEDS)) == bits(safe.evaluate(thetas_of(policy_job()), SEEDS))
    assert (tmp_path / "2").exists()


def test_errors_read_the_same_inline_and_in_workers():
    job = policy_job({5: "raise", 6: "give NaN"})
    with InlinePool(job, retries=1) as inline, LocalPool(job, 1, retries=1) as local:
        expected = inline.evaluate(thetas_of(job), SEEDS)
        assert bits(local.evaluate(thetas_of(job), SEEDS)) == bits(expected)
    assert str(expected[2][1].error).startswith(
        "failed 2 times, at last: LookupError: the env has lost its way (in _raise,"
    )
    assert expected[3][0].error == "the reward at step 3 is not finite: nan"


def test_inline_an_environment_that_cannot_be_built_is_the_same_error_as_in_workers():
    with (
        InlinePool(policy_job({-1: "raise"})) as pool,
        pytest.raises(PoolError, match=r"no worker .*: LookupError: the env has"),
    ):
        pool.evaluate(thetas_of(policy_job()), SEEDS)


def test_a_candidate_that_is_not_finite_fails_alone():
    job = policy_job()
    thetas = thetas_of(job)
    thetas[1, 0] = math.nan
    with InlinePool(job) as inline, LocalPool(job, 1) as local:
        for pool in (inline, local):
            found = pool.evaluate(thetas, SEEDS)
            assert [[episode.error for episode in own] for own in found] == [
                [None, None],
                ["theta holds NaN or infinity"] * 2,
                [None, None],
                [None, None],
            ]


def test_wrong_arguments_are_named():
    job = policy_job()
    with pytest.raises(ValueError, match="workers must be at least 1, not 0"):
        LocalPool(job, 0)
    with pytest.raises(ValueError, match="retries must be at least 0, not -1"):
        LocalPool(job, 1, retries=-1)
    with pytest.raises(ValueError, match="timeout_s must be more than 0"):
        LocalPool(job, 1, timeout_s=0)
    with pytest.raises(ValueError, match="cores must name at least one core"):
        LocalPool(job, 1, cores=[])
    with pytest.raises(ValueError, match="cores must be at least 0, not -1"):
        LocalPool(job, 1, cores=[-1])
    with InlinePool(job) as pool:
        with pytest.raises(ValueError, match=r"thetas must be \(n, \d+\) for this policy, not of shape \(4, 3\)"):
            pool.evaluate(np.zeros((4, 3), np.float32), SEEDS)
        with pytest.raises(ValueError, match="seeds must be a list for each of 4 thetas, not 3 lists"):
            pool.evaluate(thetas_of(job), SEEDS[:3])
        with pytest.raises(ValueError, match="seed must be at least 0, not -1"):
            pool.evaluate(thetas_of(job, 1), [[-1]])
