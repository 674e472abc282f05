import numpy as np
import pytest

from iap.envs.core import make_env
from iap.policies import Linear, Policy, PolicyConfig, Rank, init
from iap.rollouts import EnvConfig, Job, run_episode
from iap.rollouts.replayed_frames import OTHER_EPISODE, run_with_other_frames

SEED, STEPS = 3, 12


class Recorder(Policy):
    """A policy that keeps the images it was shown in each episode."""

    def begin(self, seed=0):
        self.shown = []
        return super().begin(seed)

    def act(self, state, observation):
        self.shown.append(np.array(observation["image"]))
        return super().act(state, observation)


@pytest.fixture
def env():
    env = make_env("iap/Seek-v0")
    yield env
    env.close()


@pytest.fixture
def policy(env):
    shape = env.observation_space["image"].shape
    sensors = env.observation_space["sensors"].shape[0]
    spec = PolicyConfig(
        image_shape=shape, sensors=sensors, actions=2, encoder=Rank(patch=4, stride=4), controller=Linear()
    )
    return Recorder(spec, init(spec, 0))


def frames_of(env, policy, seed):
    run_episode(env, policy, seed, STEPS)
    return np.array(policy.shown)


def test_foreign_frames_are_those_of_another_episode(env, policy):
    other = frames_of(env, policy, SEED ^ OTHER_EPISODE)
    run_with_other_frames(env, policy, SEED, "foreign", STEPS)
    assert np.array_equal(policy.shown, other)


def test_shuffled_frames_are_the_episodes_own_in_another_order(env, policy):
    own = frames_of(env, policy, SEED)
    run_with_other_frames(env, policy, SEED, "shuffled", STEPS)
    assert not np.array_equal(policy.shown, own)
    assert sorted(map(bytes, policy.shown)) == sorted(map(bytes, own))


def test_the_same_seed_gives_the_same_episode(env, policy):
    totals = {run_with_other_frames(env, policy, SEED, "shuffled", STEPS).total for _ in range(2)}
    assert len(totals) == 1


def test_unknown_frames_are_refused(policy):
    with pytest.raises(ValueError, match="frames must be one of own, foreign, shuffled"):
        Job(EnvConfig.of("iap/Seek-v0"), policy.spec, frames="mirrored")  # pyright: ignore[reportArgumentType]
