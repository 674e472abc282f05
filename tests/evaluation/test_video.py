import pytest

from iap.evaluation.evaluate import policy_job
from iap.evaluation.video import film
from iap.rollouts import InlinePool
from iap.zoo.locate import locate_policy


@pytest.mark.parametrize("suffix", ["gif", "mp4"])
def test_a_video_is_written_of_an_episode_whose_return_is_that_of_the_pool(tmp_path, suffix):
    policy, _ = locate_policy("zoo:seek")
    frames = []
    episode = film(policy, tmp_path / f"seek.{suffix}", seed=3, max_steps=5, progress=frames.append)
    assert (tmp_path / f"seek.{suffix}").stat().st_size > 500
    assert frames == [1, 2, 3, 4, 5]
    with InlinePool(policy_job(policy, max_steps=5)) as pool:
        [[same]] = pool.evaluate(policy.theta[None], [[3]], policy.normaliser)
    assert (episode.total, episode.steps) == (same.total, same.steps)
