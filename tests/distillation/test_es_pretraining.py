"""Pretraining by an evolution strategy: the encoder's features predict the state, and training starts from it."""

from dataclasses import replace

import numpy as np
import pytest

from iap.attention import ReLU
from iap.distillation.config import ESPretraining
from iap.distillation.es_pretraining import _collect, cross_validated_r2, pretrain_by_es
from iap.envs.core import EnvConfig
from iap.envs.protocols import PrivilegedState, require_protocol
from iap.evaluation.ablations import _initial
from iap.evolution import SNES
from iap.policies import (
    Blind,
    Hierarchy,
    Policy,
    PolicyConfig,
    PolicyFile,
    PooledMoments,
    Rank,
    Symmetry,
    blocks,
    flatten,
    init,
)
from iap.policies.serialization import load
from iap.rollouts import InlinePool
from iap.training.config import SigmaMultipliers, TrainConfig, config_from_json, config_to_json, fit_to_env
from iap.training.loop import train
from iap.training.presets import preset
from iap.training.run_directory import RunDirectory

SEEK = TrainConfig(
    env=EnvConfig.of("iap/Seek-v0"),
    policy=PolicyConfig(
        (32, 32, 3),
        sensors=0,
        actions=2,
        encoder=Rank(patch=2, stride=2, top_k=16, kernel=ReLU(), features=PooledMoments()),
        frames=2,
        hierarchy=Hierarchy(latent_size=6, max_command_steps=1, command_gain=0.1),
    ),
    strategy=SNES(population=4),
    sigma_multipliers=SigmaMultipliers(encoder=0, controller=0, low_level=1),
    iterations=1,
    episodes=1,
    max_steps=5,
    pretraining=ESPretraining(samples=160, random_encoders=6, iterations=8, population=10),
    freeze_normaliser=True,
    evaluate_episodes=2,
)
REACHER = EnvConfig.of("iap/reacher-easy-v0", size=(16, 16))


def silent(_what, _share):
    pass


def pretrained(config):
    config = fit_to_env(config)
    assert isinstance(config.pretraining, ESPretraining)
    return pretrain_by_es(config.pretraining, config.env, config.policy, config.seed, silent)


def positions(config, pretraining=None):
    config = fit_to_env(config)
    pretraining = pretraining or config.pretraining
    assert isinstance(pretraining, ESPretraining)
    return _collect(pretraining, config.env, config.policy, config.seed, silent).positions


@pytest.fixture(scope="module")
def result():
    return pretrained(SEEK)


def test_the_features_of_the_evolved_encoder_explain_more_than_those_of_the_best_random_one(result):
    assert result.facts["r2_pretrained"] > result.facts["r2_initial"] + 0.02


def test_the_same_seed_gives_the_same_policy_and_another_seed_another_one(result):
    same, other = pretrained(SEEK), pretrained(replace(SEEK, seed=1))
    assert same.theta.tobytes() == result.theta.tobytes()
    assert (same.facts["r2_initial"], same.facts["r2_pretrained"]) == (
        result.facts["r2_initial"],
        result.facts["r2_pretrained"],
    )
    assert not np.array_equal(other.theta, result.theta)


def test_the_command_of_a_pretrained_policy_predicts_positions(result):
    policy = Policy(SEEK.policy, result.theta, result.normaliser)
    env, commands, states = SEEK.env.make(), [], []
    for seed in range(120):
        observation, _ = env.reset(seed=seed)
        _, state, _ = policy.act(policy.reset(), observation)
        commands.append(state.latent)
        states.append(require_protocol(env, PrivilegedState).privileged_state())
    env.close()
    targets = np.array(states)[:, 2:]  # the robot itself starts at a fixed position
    standardised = (targets - targets.mean(axis=0)) / targets.std(axis=0)
    assert cross_validated_r2(np.array(commands), standardised) > 0.3
    assert np.abs(commands).max() < 1


def test_a_run_saves_the_pretrained_policy_and_trains_only_parts_with_a_sigma(tmp_path):
    config = fit_to_env(SEEK)
    run = RunDirectory.create(tmp_path / "run", config)
    with InlinePool(config.job) as pool:
        train(config, pool, run)
    start, last = load(run.policy_file("pretrained")), load(run.policy_file("last"))
    for block in blocks(config.policy):
        same = np.array_equal(start.theta[block.start : block.stop], last.theta[block.start : block.stop])
        assert same == (block.part != "low_level"), block.name
    assert start.facts["pretrained"]["r2_pretrained"] > start.facts["pretrained"]["r2_initial"]


def test_the_initial_policy_of_a_pretrained_one_has_its_encoder_and_a_random_low_level(result):
    facts = {"seed": 3, "pretrained": {}}
    policy = PolicyFile(SEEK.policy, result.theta + 1, result.normaliser, SEEK.env.id, facts=facts)
    initial, drawn = _initial(policy).policy.theta, flatten(init(SEEK.policy, 3))
    for block in blocks(SEEK.policy):
        expected = drawn if block.part == "low_level" else policy.theta
        np.testing.assert_array_equal(initial[block.start : block.stop], expected[block.start : block.stop])


def test_a_config_with_pretraining_is_the_same_after_a_round_trip_through_json():
    assert config_from_json(config_to_json(SEEK)) == SEEK


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"random_search": 3}, "exclude each other"),
        ({"policy": replace(SEEK.policy, encoder=Blind())}, "not a blind one"),
        ({"policy": replace(SEEK.policy, hierarchy=None)}, "a hierarchy that encodes an image at every step"),
        ({"policy": replace(SEEK.policy, hierarchy=Hierarchy())}, "a hierarchy that encodes an image at every step"),
        ({"policy": replace(SEEK.policy, symmetry=Symmetry())}, "no symmetry"),
    ],
)
def test_a_policy_that_cannot_be_pretrained_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(SEEK, **changes)


def test_an_environment_without_privileged_state_is_refused():
    env = EnvConfig.of("CartPole-v1", image_from="render", image_size=(32, 32))
    with pytest.raises(ValueError, match="CartPole-v1 does not implement PrivilegedState"):
        pretrained(replace(SEEK, env=env))


def test_the_preset_named_after_es_pretraining_uses_it():
    assert preset("cartpole-swingup-es-pretraining").pretraining == ESPretraining()


@pytest.mark.parametrize(("samples_per_episode", "episodes"), [(1, 100), (10, 10)])
def test_samples_come_from_as_many_episodes_as_the_options_say(samples_per_episode, episodes):
    options = ESPretraining(samples=100, samples_per_episode=samples_per_episode)
    columns = positions(replace(SEEK, env=REACHER, pretraining=options)).T
    assert min(len(np.unique(column)) for column in columns) == episodes  # the target's position, one an episode


def test_features_relative_to_the_first_frame_are_pretrained_on_displacements():
    config = fit_to_env(replace(SEEK, policy=replace(SEEK.policy, relative_to_first_frame=True)))
    assert isinstance(config.pretraining, ESPretraining)
    samples = _collect(config.pretraining, config.env, config.policy, config.seed, silent)
    result = pretrained(config)
    policy = Policy(config.policy, result.theta, result.normaliser)
    commands = []
    for episode, images in zip(samples.episode, samples.images, strict=True):
        state = policy.reset()
        for image in [samples.first[episode], *images]:
            _, state, _ = policy.act(state, {"image": image, "sensors": np.zeros(0, np.float32)})
        commands.append(state.latent)
    assert cross_validated_r2(np.array(commands), samples.positions) > 0.3


def test_coordinates_that_do_not_change_in_an_episode_are_no_targets_of_relative_features():
    def count(relative_to_first_frame: bool) -> int:
        policy = replace(SEEK.policy, relative_to_first_frame=relative_to_first_frame)
        return positions(replace(SEEK, env=REACHER, policy=policy), ESPretraining(samples=100)).shape[1]

    target = 2  # row and column, constant in an episode
    assert count(relative_to_first_frame=True) == count(relative_to_first_frame=False) - target


def test_more_samples_than_an_episode_has_steps_are_refused():
    with pytest.raises(ValueError, match=r"pretraining\.samples_per_episode must be .* not 200"):
        ESPretraining(samples_per_episode=200)
