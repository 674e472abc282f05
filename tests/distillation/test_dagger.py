"""A low level that remembers learns to do what a policy does that is told where things are."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from iap.distillation.dagger import Practice, _padded, _practise, imitate, remember
from iap.distillation.encoder_regression import teach_by_gradient
from iap.evaluation.evaluate import locate_policy
from iap.evolution import CMAES
from iap.policies import (
    LSTM,
    MLP,
    Blind,
    Hierarchy,
    MultiHeadRank,
    Normaliser,
    Policy,
    PolicyConfig,
    blocks,
    flatten,
    init,
    unflatten,
)
from iap.rollouts import EnvConfig, run_episode
from iap.training.config import Distillation, SigmaMultipliers, TrainConfig, config_from_json, config_to_json
from iap.training.presets.control_suite import CARTPOLE_PARTS

TOLD = "zoo:cartpole-swingup-told-roughly"
TEACH = Distillation(
    CARTPOLE_PARTS, samples=100, steps=3, teacher=TOLD, dagger_rounds=2, dagger_episodes=4, dagger_steps=300
)
CARTPOLE = TrainConfig(
    env=EnvConfig.of("iap/cartpole-swingup-v0", size=(24, 32)),
    policy=PolicyConfig(
        (24, 32, 3),
        sensors=0,
        actions=1,
        encoder=MultiHeadRank(patch=3, stride=1, d=4, heads=2, top_k=12),
        controller=MLP((6,)),
        preprocessing=("local_contrast_coarse",),
        hierarchy=Hierarchy(latent_size=3, max_command_steps=1, low=LSTM(8), high_level_sensors=False),
    ),
    strategy=CMAES(population=4),
    sigma_multipliers=SigmaMultipliers(encoder=0, controller=0, low_level=1),
    pretraining=TEACH,
    freeze_normaliser=True,
)
BLIND = replace(CARTPOLE, policy=replace(CARTPOLE.policy, encoder=Blind()))
THETA = flatten(init(CARTPOLE.policy, 0))


def build_policy(theta: np.ndarray) -> Policy:
    return Policy(CARTPOLE.policy, unflatten(CARTPOLE.policy, theta))


def low_level(theta: np.ndarray) -> dict[str, jax.Array]:
    return {
        b.name: jnp.asarray(theta[b.start : b.stop].reshape(b.shape))
        for b in blocks(CARTPOLE.policy)
        if b.part == "low"
    }


def teacher() -> Policy:
    file, _ = locate_policy(TOLD)
    return Policy(file.spec, unflatten(file.spec, file.theta), file.normaliser)


@pytest.fixture
def env():
    env = CARTPOLE.env.make()
    yield env
    env.close()


def test_what_is_taught_is_what_the_policy_does(env):
    policy, commands, actions = build_policy(3 * THETA), [], []
    state, (observation, _) = policy.begin(), env.reset(seed=0)
    for _ in range(12):
        action, state, _ = policy.act(state, observation)
        commands.append(state.latent)
        actions.append(action)
        observation, *_ = env.step(action)
    assert np.std(actions) > 1e-3
    [done] = remember(low_level(3 * THETA), jnp.asarray(commands)[None])
    np.testing.assert_allclose(done, actions, atol=1e-5)


def test_the_low_level_learns_to_do_what_the_told_policy_would_and_the_eyes_stay(env):
    told, _ = locate_policy(TOLD)
    taught = imitate(CARTPOLE, TEACH, THETA, Normaliser.none(CARTPOLE.policy.inputs_size), told, 0, lambda *_: None)
    eyes = [b for b in blocks(CARTPOLE.policy) if b.part != "low"][-1].stop
    np.testing.assert_array_equal(taught[:eyes], THETA[:eyes])

    def error(theta: np.ndarray) -> float:
        practice = _practise(env, CARTPOLE_PARTS, teacher(), build_policy(theta), seed=7, teacher_acts=True)
        [done] = remember(low_level(theta), jnp.asarray(practice.commands)[None])
        return float(np.square(done - practice.actions).mean())

    assert error(taught) < 0.7 * error(THETA)


def test_the_teacher_says_what_it_would_do_where_the_pupil_leads(env):
    pupil, led = build_policy(3 * THETA), []
    practice = _practise(env, CARTPOLE_PARTS, teacher(), pupil, seed=3, teacher_acts=False)
    run_episode(env, pupil, 3, None, lambda step: led.append(step.action))
    [done] = remember(low_level(3 * THETA), jnp.asarray(practice.commands)[None])
    np.testing.assert_allclose(done, led, atol=1e-4)
    with_teacher = _practise(env, CARTPOLE_PARTS, teacher(), pupil, seed=3, teacher_acts=True)
    assert not np.array_equal(with_teacher.commands, practice.commands)
    np.testing.assert_allclose(with_teacher.actions[0], practice.actions[0])


def test_steps_that_an_episode_did_not_have_do_not_count():
    some = [Practice(np.ones((n, 3), np.float32), np.ones((n, 1), np.float32)) for n in (2, 4)]
    commands, actions, counts = _padded(some)
    assert commands.shape == (2, 4, 3)
    np.testing.assert_array_equal(counts, [[1, 1, 0, 0], [1, 1, 1, 1]])
    np.testing.assert_array_equal(actions[..., 0], counts)


def test_a_blind_policy_practises_and_has_nothing_else_to_learn():
    taught = teach_by_gradient(BLIND)
    start = flatten(init(BLIND.policy, BLIND.seed))
    low = np.concatenate([np.arange(b.start, b.stop) for b in blocks(BLIND.policy) if b.part == "low"])
    assert not np.array_equal(taught.theta[low], start[low])
    np.testing.assert_array_equal(np.delete(taught.theta, low), np.delete(start, low))
    assert taught.taught == 0
    with pytest.raises(ValueError, match="a encoder, not a blind one, unless its low level is an LSTM"):
        replace(BLIND, pretraining=replace(TEACH, teacher=None))


def test_eyes_are_taught_and_then_what_to_do():
    taught = teach_by_gradient(CARTPOLE)
    for part in ("encoder", "controller", "low"):
        of_part = np.concatenate([np.arange(b.start, b.stop) for b in blocks(CARTPOLE.policy) if b.part == part])
        assert not np.array_equal(taught.theta[of_part], THETA[of_part])


def test_a_config_that_practises_survives_its_file():
    assert config_from_json(config_to_json(CARTPOLE)) == CARTPOLE


def test_an_environment_that_does_not_tell_where_things_are_is_refused():
    with pytest.raises(ValueError, match="iap/Seek-v0 cannot teach"):
        teach_by_gradient(replace(BLIND, env=EnvConfig.of("iap/Seek-v0")))


@pytest.mark.parametrize("wrong", [{"rounds": 0}, {"dagger_episodes": 0}, {"dagger_steps": 0}])
def test_practice_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(ValueError, match=f"teach.{next(iter(wrong))}"):
        replace(TEACH, **wrong)
