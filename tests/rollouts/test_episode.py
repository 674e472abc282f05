import math

import numpy as np
import pytest
from gymnasium.wrappers import TransformObservation
from hazards import Hazard
from rollout_cases import normaliser_of, policy_job, spec_of, thetas_of

from iap.policies import Blind, Hierarchy, Linear, Moments, Policy, PolicyConfig, blocks, unflatten
from iap.rollouts import EnvConfig, Job, NotFiniteError, jobs, run_episode
from iap.rollouts.job import Runner


def build_policy(spec: PolicyConfig, seed: int = 0) -> Policy:
    theta = np.random.default_rng(seed).normal(size=blocks(spec)[-1].stop).astype(np.float32)
    return Policy(spec, unflatten(spec, theta))


def test_the_total_is_the_sum_of_rewards_and_steps_are_counted_to_the_end():
    steps = []
    episode = run_episode(Hazard(), build_policy(spec_of()), 3, on_step=steps.append)
    assert episode.seed == 3
    assert episode.steps == len(steps) == 6 + 3
    assert episode.total == sum(step.reward for step in steps)
    assert [step.total for step in steps] == np.cumsum([step.reward for step in steps]).tolist()
    assert episode.error is None


def test_an_episode_is_cut_off_after_max_steps():
    full, cut = (run_episode(Hazard(), build_policy(spec_of()), 3, most) for most in (None, 5))
    assert (full.steps, cut.steps) == (9, 5)
    assert cut.moments.count == 5


def test_watchers_see_what_the_policy_saw_and_did():
    env, policy = Hazard(), build_policy(spec_of())
    steps = []
    run_episode(env, policy, 4, on_step=steps.append)
    observation, _ = env.reset(seed=4)
    state = policy.begin(4)
    for step in steps:
        raw, state, attention = policy.act(state, observation)
        assert np.array_equal(step.observation["image"], observation["image"])
        assert step.attention is not None
        assert attention is not None
        assert np.array_equal(step.attention.selected, attention.selected)
        assert np.array_equal(step.action, np.clip(raw, -1, 1))
        observation, reward, *_ = env.step(step.action)
        assert step.reward == reward


def test_moments_are_those_of_what_the_controller_received():
    env, policy = Hazard(), build_policy(spec_of())
    episode = run_episode(env, policy, 4)
    rows = []
    observation, _ = env.reset(seed=4)
    state = policy.begin(4)
    for _ in range(episode.steps):
        raw, state, _ = policy.act(state, observation)
        rows.append(state.inputs)
        observation, *_ = env.step(np.clip(raw, -1, 1))
    expected = Moments.of(rows)
    assert episode.moments.count == expected.count
    assert episode.moments.mean.tobytes() == expected.mean.tobytes()
    assert episode.moments.m2.tobytes() == expected.m2.tobytes()


def test_moments_of_a_long_episode_are_gathered_in_blocks(monkeypatch):
    whole = run_episode(Hazard(), build_policy(spec_of()), 4).moments
    monkeypatch.setattr("iap.rollouts.episode.ROWS", 3)
    blockwise = run_episode(Hazard(), build_policy(spec_of()), 4).moments
    assert whole.count == blockwise.count == 10
    np.testing.assert_allclose(blockwise.mean, whole.mean, rtol=1e-12)
    np.testing.assert_allclose(blockwise.m2, whole.m2, rtol=1e-12, atol=1e-12)


def test_the_environment_draws_only_what_the_policy_looks_at():
    every_third = build_policy(spec_of(image_every=3))
    env = Hazard()
    run_episode(env, every_third, 3)
    # after the reset: whether the next step looks, at each of 9 steps, and at last as it was
    assert env.looks == [False, False, True] * 3 + [True]


def test_a_held_command_needs_no_image():
    spec = spec_of(hierarchy=Hierarchy(max_command_steps=4, low=Linear()))
    env, policy = Hazard(), build_policy(spec, seed=5)
    run_episode(env, policy, 4)
    assert False in env.looks
    assert True in env.looks[:-1]


def test_watching_draws_every_frame_and_changes_nothing():
    policy = build_policy(spec_of(image_every=3))
    env = Hazard()
    alone = run_episode(env, policy, 3)
    frames = []
    watched = run_episode(env, policy, 3, on_step=lambda step: frames.append(step.observation["image"]))
    assert all(env.looks)
    assert len({frame.tobytes() for frame in frames}) > 5
    assert (watched.total, watched.steps) == (alone.total, alone.steps)


def test_an_environment_that_cannot_look_is_left_alone():
    class Plain(Hazard):
        def __getattribute__(self, name):
            if name == "look":
                raise AttributeError(name)
            return super().__getattribute__(name)

    assert run_episode(Plain(), build_policy(spec_of(image_every=3)), 3).steps == 9


@pytest.mark.parametrize("trouble", ["give NaN", "give infinity"])
def test_a_reward_that_is_not_finite_is_an_error_that_says_so(trouble):
    with pytest.raises(NotFiniteError, match="reward at step 3 is not finite"):
        run_episode(Hazard(((7, trouble),)), build_policy(spec_of()), 7)


def test_an_action_that_is_not_finite_is_an_error_that_says_so():
    spec = spec_of(encoder=Blind())
    numb = TransformObservation(Hazard(), lambda seen: seen | {"sensors": np.full(3, np.nan, np.float32)}, None)
    with pytest.raises(NotFiniteError, match="action at step 0 is not finite"):
        run_episode(numb, build_policy(spec), 7)


@pytest.mark.parametrize("theta", [math.nan, math.inf])
def test_a_theta_that_is_not_finite_fails_without_another_try(theta):
    job = policy_job()
    runner = Runner(job)
    episode = runner.run(np.full_like(thetas_of(job)[0], theta), 5)
    assert math.isnan(episode.total)
    assert episode.error == "theta holds NaN or infinity"
    assert episode.moments.count == 0
    assert runner.run(thetas_of(job)[0], 5).error is None


def test_an_episode_depends_on_nothing_that_happened_before():
    job = policy_job()
    theta, other = thetas_of(job, 2)
    runner, fresh = Runner(job), Runner(job)
    runner.run(other, 3, normaliser_of(job))
    runner.run(theta, 8)
    first, second = runner.run(theta, 5, normaliser_of(job)), fresh.run(theta, 5, normaliser_of(job))
    assert (first.total, first.steps) == (second.total, second.steps)
    assert first.moments.m2.tobytes() == second.moments.m2.tobytes()
    assert first.total != runner.run(theta, 5).total  # without the normaliser
    assert first.total != runner.run(theta, 6, normaliser_of(job)).total


def test_a_policy_is_built_once_for_all_episodes_of_a_theta(monkeypatch):
    built = []
    monkeypatch.setattr(jobs, "build_policy", lambda *arguments: built.append(arguments) or Policy(*arguments))
    job = policy_job()
    runner, normaliser = Runner(job), normaliser_of(job)
    built.clear()
    theta, other = thetas_of(job, 2)
    for seed in range(3):
        runner.run(theta.copy(), seed, normaliser)
    assert len(built) == 1
    theta[0] += 1
    runner.run(theta, 0, normaliser)
    runner.run(theta, 0)
    runner.run(other, 0)
    assert len(built) == 4


@pytest.mark.parametrize("wrong", [{"image_shape": (8, 9, 1)}, {"sensors": 4}, {"actions": 3}])
def test_a_policy_for_another_environment_is_refused(wrong):
    with pytest.raises(ValueError, match="but the environment has"):
        Runner(Job(EnvConfig("hazards:Hazard-v0"), spec_of(**wrong)))


def test_max_steps_must_be_a_count():
    with pytest.raises(ValueError, match="max_steps must be at least 1, not 0"):
        Job(EnvConfig("hazards:Hazard-v0"), spec_of(), 0)


def test_options_of_an_environment_are_hashable_and_in_no_order():
    assert EnvConfig.of("x", b=1, a=2) == EnvConfig.of("x", a=2, b=1)
    assert len({EnvConfig.of("x", b=1, a=2), EnvConfig.of("x", a=2, b=1)}) == 1
