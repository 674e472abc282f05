import math

import numpy as np
import pytest
from hazards import Hazard
from rollout_cases import SEEDS, blind_job, draw_normaliser, draw_thetas, policy_config, to_bits

from iap.policies import CNN, LSTM, MLP, PolicyConfig
from iap.rollouts import EnvConfig, InlinePool, Job, LocalPool, PoolError

CONFIGS = {
    "rank": policy_config(controller=MLP((4,))),
    "several frames": policy_config(frames=2, image_every=2),
    "convolutions": policy_config(encoder=CNN(), controller=LSTM(8)),
}
UNEVEN = [[3, 1, 4], [], [1], [5, 9]]


@pytest.fixture(scope="module")
def both():
    """An inline pool and a local pool of the blind job."""
    with InlinePool(blind_job()) as inline, LocalPool(blind_job(), 1) as local:
        yield inline, local


@pytest.mark.parametrize(("name", "workers"), [("rank", 1), ("rank", 2), ("several frames", 2), ("convolutions", 2)])
def test_results_and_their_order_do_not_depend_on_the_workers(name, workers):
    job = Job(EnvConfig("hazards:Hazard-v0"), CONFIGS[name], max_steps=9)
    with InlinePool(job) as inline, LocalPool(job, workers) as local:
        for normaliser in (draw_normaliser(job), None, draw_normaliser(job)):
            expected = inline.evaluate(draw_thetas(job), UNEVEN, normaliser)
            found = local.evaluate(draw_thetas(job), UNEVEN, normaliser)
            assert to_bits(found) == to_bits(expected)
            assert [[episode.seed for episode in own] for own in found] == UNEVEN
            assert all(episode.error is None for own in found for episode in own)


def test_a_function_that_makes_the_environment_is_sent_to_workers(expected):
    pause_s = 0.0
    job = Job(EnvConfig.from_factory(lambda: Hazard(pause_s=pause_s)), blind_job().policy)
    with InlinePool(job) as inline, LocalPool(job, 1) as local:
        for pool in (inline, local):
            assert to_bits(pool.evaluate(draw_thetas(job), SEEDS)) == expected


def test_results_do_not_depend_on_the_threads_of_a_large_matrix_product():
    config = PolicyConfig((100, 100, 3), 0, 2, encoder=CNN(), controller=MLP())
    job = Job(EnvConfig.of("iap/Seek-v0", size=100), config, max_steps=20)
    thetas = 0.1 * draw_thetas(job)
    with InlinePool(job) as inline, LocalPool(job, 1) as local:
        assert to_bits(local.evaluate(thetas, SEEDS)) == to_bits(inline.evaluate(thetas, SEEDS))


def test_an_evaluation_without_episodes_returns_none(both):
    for pool in both:
        assert pool.evaluate(draw_thetas(blind_job(), 0), []) == []
        assert pool.evaluate(draw_thetas(blind_job(), 2), [[], []]) == [[], []]


def test_a_theta_that_is_not_finite_fails_alone(both):
    thetas = draw_thetas(blind_job())
    thetas[1, 0] = math.nan
    for pool in both:
        found = pool.evaluate(thetas, SEEDS)
        assert [[episode.error for episode in own] for own in found] == [
            [None, None],
            ["theta holds NaN or infinity"] * 2,
            [None, None],
            [None, None],
        ]


def test_the_inline_pool_runs_an_episode_that_raised_again_in_a_new_environment(tmp_path, expected):
    with InlinePool(blind_job({2: "raise"}, tmp_path)) as pool:
        assert to_bits(pool.evaluate(draw_thetas(blind_job()), SEEDS)) == expected
    assert (tmp_path / "2").exists()


def test_errors_are_the_same_inline_and_in_workers():
    job = blind_job({5: "raise", 6: "return NaN"})
    with InlinePool(job, retries=1) as inline, LocalPool(job, 1, retries=1) as local:
        found = inline.evaluate(draw_thetas(job), SEEDS)
        assert to_bits(local.evaluate(draw_thetas(job), SEEDS)) == to_bits(found)
    raised = "failed 2 times, the last time with: LookupError: fault of the environment (in _raise,"
    assert str(found[2][1].error).startswith(raised)
    assert found[3][0].error == "the reward at step 3 is not finite: nan"


def test_an_environment_that_cannot_be_built_is_the_same_error_inline_as_in_workers():
    with (
        InlinePool(blind_job({-1: "raise"})) as pool,
        pytest.raises(PoolError, match=r"no worker .*: LookupError: fault of"),
    ):
        pool.evaluate(draw_thetas(blind_job()), SEEDS)


def test_errors_name_wrong_arguments():
    job = blind_job()
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
        with pytest.raises(ValueError, match=r"thetas must have shape \(n, \d+\) for this policy, not \(4, 3\)"):
            pool.evaluate(np.zeros((4, 3), np.float32), SEEDS)
        with pytest.raises(ValueError, match="seeds must be one list per theta, 4, not 3 lists"):
            pool.evaluate(draw_thetas(job), SEEDS[:3])
        with pytest.raises(ValueError, match="seed must be at least 0, not -1"):
            pool.evaluate(draw_thetas(job, 1), [[-1]])
