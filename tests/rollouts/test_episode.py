import math

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import TransformObservation
from hazards import Hazard
from rollout_cases import blind_job, draw_normaliser, draw_thetas, policy_config

from iap.policies import Blind, Hierarchy, Linear, Moments, Policy, PolicyConfig, blocks
from iap.rollouts import EnvConfig, Job, NotFiniteError, run_episode
from iap.rollouts.job import Runner


def draw_policy(config: PolicyConfig, seed: int = 0) -> Policy:
    theta = np.random.default_rng(seed).normal(size=blocks(config)[-1].stop).astype(np.float32)
    return Policy(config, theta)


def test_the_total_is_the_sum_of_rewards_and_all_steps_are_counted():
    steps = []
    episode = run_episode(Hazard(), draw_policy(policy_config()), 3, on_step=steps.append)
    assert episode.seed == 3
    assert episode.steps == len(steps) == 6 + 3
    assert episode.total == sum(step.reward for step in steps)
    assert [step.total for step in steps] == np.cumsum([step.reward for step in steps]).tolist()
    assert episode.error is None


def test_an_episode_ends_after_max_steps():
    full, cut = (run_episode(Hazard(), draw_policy(policy_config()), 3, limit) for limit in (None, 5))
    assert (full.steps, cut.steps) == (9, 5)
    assert cut.moments.count == 5


def test_the_callback_receives_the_input_and_the_output_of_the_policy():
    env, policy = Hazard(), draw_policy(policy_config())
    steps = []
    run_episode(env, policy, 4, on_step=steps.append)
    observation, _ = env.reset(seed=4)
    state = policy.reset(4)
    for step in steps:
        raw, state, attention = policy.act(state, observation)
        assert np.array_equal(step.observation["image"], observation["image"])
        assert step.attention is not None
        assert attention is not None
        assert np.array_equal(step.attention.selected, attention.selected)
        assert np.array_equal(step.action, np.clip(raw, -1, 1))
        observation, reward, *_ = env.step(step.action)
        assert step.reward == reward


def test_moments_are_those_of_the_controller_inputs():
    env, policy = Hazard(), draw_policy(policy_config())
    episode = run_episode(env, policy, 4)
    rows = []
    observation, _ = env.reset(seed=4)
    state = policy.reset(4)
    for _ in range(episode.steps):
        raw, state, _ = policy.act(state, observation)
        rows.append(state.inputs.copy())
        observation, *_ = env.step(np.clip(raw, -1, 1))
    expected = Moments.of(rows)
    assert episode.moments.count == expected.count
    assert episode.moments.mean.tobytes() == expected.mean.tobytes()
    assert episode.moments.m2.tobytes() == expected.m2.tobytes()


def test_moments_of_a_long_episode_are_merged_from_blocks(monkeypatch):
    whole = run_episode(Hazard(), draw_policy(policy_config()), 4).moments
    monkeypatch.setattr("iap.rollouts.episode.BLOCK_ROWS", 3)
    merged = run_episode(Hazard(), draw_policy(policy_config()), 4).moments
    assert whole.count == merged.count == 10
    np.testing.assert_allclose(merged.mean, whole.mean, rtol=1e-12)
    np.testing.assert_allclose(merged.m2, whole.m2, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("wrap", [lambda env: env, gymnasium.Wrapper])
def test_the_environment_renders_only_the_images_that_the_policy_encodes(wrap):
    env = Hazard()
    run_episode(wrap(env), draw_policy(policy_config(image_every=3)), 3)
    # after the reset: whether the next step renders, for each of 9 steps; rendering is enabled again at the end
    assert env.rendering_calls == [False, False, True] * 3 + [True]


def test_a_held_command_needs_no_image():
    config = policy_config(hierarchy=Hierarchy(max_command_steps=4, low_level=Linear()))
    env = Hazard()
    run_episode(env, draw_policy(config, seed=5), 4)
    assert False in env.rendering_calls
    assert True in env.rendering_calls[:-1]


def test_a_callback_gets_every_frame_and_changes_no_result():
    policy = draw_policy(policy_config(image_every=3))
    env = Hazard()
    alone = run_episode(env, policy, 3)
    frames = []
    observed = run_episode(env, policy, 3, on_step=lambda step: frames.append(step.observation["image"]))
    assert all(env.rendering_calls)
    assert len({frame.tobytes() for frame in frames}) > 5
    assert (observed.total, observed.steps) == (alone.total, alone.steps)


def test_an_environment_without_lazy_rendering_renders_at_every_step():
    class Plain(Hazard):
        set_rendering = None  # pyright: ignore[reportAssignmentType]

    assert run_episode(Plain(), draw_policy(policy_config(image_every=3)), 3).steps == 9


@pytest.mark.parametrize("fault", ["return NaN", "return infinity"])
def test_a_reward_that_is_not_finite_is_an_error(fault):
    with pytest.raises(NotFiniteError, match="reward at step 3 is not finite"):
        run_episode(Hazard(((7, fault),)), draw_policy(policy_config()), 7)


def test_sensors_that_are_not_finite_are_an_error():
    config = policy_config(encoder=Blind())
    broken = TransformObservation(
        Hazard(), lambda observation: observation | {"sensors": np.full(3, np.nan, np.float32)}, None
    )
    with pytest.raises(NotFiniteError, match="sensors must be finite, not"):
        run_episode(broken, draw_policy(config), 7)


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_theta_that_is_not_finite_fails_without_a_retry(value):
    job = blind_job()
    runner = Runner(job)
    episode = runner.run(np.full_like(draw_thetas(job)[0], value), 5)
    assert math.isnan(episode.total)
    assert episode.error == "theta holds NaN or infinity"
    assert episode.moments.count == 0
    assert runner.run(draw_thetas(job)[0], 5).error is None


def test_an_episode_does_not_depend_on_earlier_ones():
    job = blind_job()
    theta, other = draw_thetas(job, 2)
    runner, fresh = Runner(job), Runner(job)
    runner.run(other, 3, draw_normaliser(job))
    runner.run(theta, 8)
    first, second = runner.run(theta, 5, draw_normaliser(job)), fresh.run(theta, 5, draw_normaliser(job))
    assert (first.total, first.steps) == (second.total, second.steps)
    assert first.moments.m2.tobytes() == second.moments.m2.tobytes()
    assert first.total != runner.run(theta, 5).total  # without the normaliser
    assert first.total != runner.run(theta, 6, draw_normaliser(job)).total


def test_a_policy_is_built_once_for_all_episodes_of_a_theta(monkeypatch):
    built = []
    monkeypatch.setattr("iap.rollouts.job.Policy", lambda *arguments: built.append(arguments) or Policy(*arguments))
    job = blind_job()
    runner, normaliser = Runner(job), draw_normaliser(job)
    built.clear()
    theta, other = draw_thetas(job, 2)
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
        Runner(Job(EnvConfig("hazards:Hazard-v0"), policy_config(**wrong)))


def test_max_steps_must_be_a_count():
    with pytest.raises(ValueError, match="max_steps must be at least 1, not 0"):
        Job(EnvConfig("hazards:Hazard-v0"), policy_config(), 0)


def test_equal_options_of_an_environment_are_equal_in_any_order():
    assert EnvConfig.of("x", b=1, a=2) == EnvConfig.of("x", a=2, b=1)
    assert len({EnvConfig.of("x", b=1, a=2), EnvConfig.of("x", a=2, b=1)}) == 1
