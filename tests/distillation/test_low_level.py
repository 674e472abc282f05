"""DAgger: a recurrent low level learns the actions of a teacher that acts on keypoints."""

from dataclasses import replace

import jax.numpy as jnp
import numpy as np
import pytest

from iap.distillation import pretrain
from iap.distillation.config import Distillation
from iap.distillation.low_level import LabelledEpisode, _padded, _run, train_low_level, unroll
from iap.envs.core import EnvConfig
from iap.evolution import CMAES
from iap.policies import GRU, LSTM, MLP, Blind, Hierarchy, MultiHeadRank, Policy, PolicyConfig, blocks, flatten, init
from iap.policies.params import split
from iap.rollouts import run_episode
from iap.training.config import SigmaMultipliers, TrainConfig, config_from_json, config_to_json
from iap.training.presets.cartpole_swingup import KEYPOINTS
from iap.zoo.locate import locate_policy

TEACHER = "zoo:cartpole-swingup-noisy-teacher"
OPTIONS = Distillation(
    KEYPOINTS, samples=100, steps=3, teacher=TEACHER, dagger_rounds=2, dagger_episodes=4, dagger_steps=300
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
        hierarchy=Hierarchy(latent_size=3, max_command_steps=1, low_level=LSTM(8), high_level_sensors=False),
    ),
    strategy=CMAES(population=4),
    sigma_multipliers=SigmaMultipliers(encoder=0, controller=0, low_level=1),
    pretraining=OPTIONS,
    freeze_normaliser=True,
)
BLIND = replace(CARTPOLE, policy=replace(CARTPOLE.policy, encoder=Blind()))
THETA = flatten(init(CARTPOLE.policy, 0))


def silent(_what, _share):
    pass


def pretrained(config):
    return pretrain(config.pretraining, config.env, config.policy, config.seed)


def unrolled(config: PolicyConfig, theta: np.ndarray, commands: np.ndarray) -> np.ndarray:
    """The low level's outputs on the commands of one episode."""
    params = {name: jnp.asarray(x) for name, x in split(config, theta)["low_level"].items()}
    return np.asarray(unroll(config, params, jnp.asarray(commands)[None])[0])


@pytest.fixture(scope="module")
def teacher() -> Policy:
    return Policy.of(locate_policy(TEACHER)[0])


@pytest.fixture(scope="module")
def env():
    env = CARTPOLE.env.make()
    yield env
    env.close()


@pytest.mark.parametrize("low_level", [LSTM(8), GRU(8)])
def test_unrolling_equals_acting_step_by_step(env, low_level):
    hierarchy = Hierarchy(latent_size=3, max_command_steps=1, low_level=low_level, high_level_sensors=False)
    config = replace(CARTPOLE.policy, hierarchy=hierarchy)
    theta = 3 * flatten(init(config, 0))
    policy, commands, actions = Policy(config, theta), [], []
    state, (observation, _) = policy.reset(), env.reset(seed=0)
    for _ in range(12):
        action, state, _ = policy.act(state, observation)
        commands.append(state.latent)
        actions.append(action)
        observation, *_ = env.step(action)
    assert np.std(actions) > 1e-3
    np.testing.assert_allclose(unrolled(config, theta, np.array(commands)), actions, atol=1e-5)


def test_the_low_level_learns_the_teachers_actions_and_the_encoder_is_unchanged(env, teacher):
    config = CARTPOLE.policy

    def train() -> np.ndarray:
        return train_low_level(OPTIONS, CARTPOLE.env, Policy(config, THETA), teacher, 0, 0, silent)

    theta = train()
    encoder = next(block for block in blocks(config) if block.part == "low_level").start
    np.testing.assert_array_equal(theta[:encoder], THETA[:encoder])

    def error(theta: np.ndarray) -> float:
        labelled = _run(env, KEYPOINTS, teacher, Policy(config, theta), seed=7, acting="teacher")
        return float(np.square(unrolled(config, theta, labelled.commands) - labelled.actions).mean())

    assert error(theta) < 0.7 * error(THETA)
    assert train().tobytes() == theta.tobytes()  # same seed, same result


def test_the_teacher_labels_the_states_that_the_student_reaches(env, teacher):
    student, actions = Policy(CARTPOLE.policy, 3 * THETA), []
    labelled = _run(env, KEYPOINTS, teacher, student, seed=3, acting="student")
    run_episode(env, student, 3, None, lambda step: actions.append(step.action))
    np.testing.assert_allclose(unrolled(CARTPOLE.policy, 3 * THETA, labelled.commands), actions, atol=1e-4)
    of_teacher = _run(env, KEYPOINTS, teacher, student, seed=3, acting="teacher")
    assert not np.array_equal(of_teacher.commands, labelled.commands)
    np.testing.assert_allclose(of_teacher.actions[0], labelled.actions[0])


def test_padding_has_weight_0():
    episodes = [LabelledEpisode(np.ones((n, 3), np.float32), np.ones((n, 1), np.float32)) for n in (2, 4)]
    commands, actions, weights = _padded(episodes)
    assert commands.shape == (2, 4, 3)
    np.testing.assert_array_equal(weights, [[1, 1, 0, 0], [1, 1, 1, 1]])
    np.testing.assert_array_equal(actions[..., 0], weights)


def test_only_the_low_level_of_a_blind_policy_is_trained():
    result = pretrained(BLIND)
    start = flatten(init(BLIND.policy, BLIND.seed))
    low = np.concatenate([np.arange(b.start, b.stop) for b in blocks(BLIND.policy) if b.part == "low_level"])
    assert not np.array_equal(result.theta[low], start[low])
    np.testing.assert_array_equal(np.delete(result.theta, low), np.delete(start, low))
    assert (result.facts["r2_initial"], result.facts["r2_pretrained"]) == (0, 0)
    with pytest.raises(ValueError, match="not a blind one, or a recurrent low level"):
        replace(BLIND, pretraining=replace(OPTIONS, teacher=None))


def test_encoder_controller_and_low_level_are_all_trained():
    result = pretrained(replace(CARTPOLE, pretraining=replace(OPTIONS, dagger_rounds=1, dagger_steps=20)))
    for part in ("encoder", "controller", "low_level"):
        of_part = np.concatenate([np.arange(b.start, b.stop) for b in blocks(CARTPOLE.policy) if b.part == part])
        assert not np.array_equal(result.theta[of_part], THETA[of_part])


def test_a_config_with_dagger_is_the_same_after_a_round_trip_through_json():
    assert config_from_json(config_to_json(CARTPOLE)) == CARTPOLE


def test_an_environment_without_keypoints_is_refused():
    with pytest.raises(ValueError, match="iap/Seek-v0 does not implement Keypoints"):
        pretrained(replace(BLIND, env=EnvConfig.of("iap/Seek-v0")))


@pytest.mark.parametrize("name", ["dagger_rounds", "dagger_episodes", "dagger_steps"])
def test_dagger_without_rounds_episodes_or_steps_is_refused(name):
    with pytest.raises(ValueError, match=rf"pretraining\.{name}"):
        replace(OPTIONS, **{name: 0})
