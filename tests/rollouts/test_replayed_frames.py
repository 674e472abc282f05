import numpy as np
import pytest

from iap._observations import sensor_count
from iap.envs.core import make_env
from iap.policies import Linear, Policy, PolicyConfig, Rank, init
from iap.rollouts import EnvConfig, Job, run_episode
from iap.rollouts.replayed_frames import OTHER_EPISODE_BIT, run_with_replaced_frames

SEED, STEPS = 3, 12


class Recorder(Policy):
    """A policy that stores the images of its last episode."""

    def reset(self, seed=0):
        self.images = []
        return super().reset(seed)

    def act(self, state, observation):
        self.images.append(np.array(observation["image"]))
        return super().act(state, observation)


@pytest.fixture
def env():
    env = make_env("iap/Seek-v0")
    yield env
    env.close()


@pytest.fixture
def policy(env):
    shape = env.observation_space["image"].shape
    sensors = sensor_count(env.observation_space)
    config = PolicyConfig(
        image_shape=shape, sensors=sensors, actions=2, encoder=Rank(patch=4, stride=4), controller=Linear()
    )
    return Recorder(config, init(config, 0))


def images_of_episode(env, policy, seed):
    run_episode(env, policy, seed, STEPS)
    return np.array(policy.images)


def test_replayed_frames_are_those_of_another_episode(env, policy):
    other = images_of_episode(env, policy, SEED ^ OTHER_EPISODE_BIT)
    run_with_replaced_frames(env, policy, SEED, "replayed", STEPS)
    assert np.array_equal(policy.images, other)


def test_shuffled_frames_are_those_of_the_episode_in_another_order(env, policy):
    own = images_of_episode(env, policy, SEED)
    totals = {run_with_replaced_frames(env, policy, SEED, "shuffled", STEPS).total for _ in range(2)}
    assert not np.array_equal(policy.images, own)
    assert sorted(map(bytes, policy.images)) == sorted(map(bytes, own))
    assert len(totals) == 1  # the order depends on the seed only


def test_unknown_frames_are_refused(policy):
    with pytest.raises(ValueError, match="frames must be one of own, replayed, shuffled"):
        Job(EnvConfig.of("iap/Seek-v0"), policy.config, frames="mirrored")  # pyright: ignore[reportArgumentType]
