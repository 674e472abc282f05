"""Eyes that are taught tell the state, and evolution starts from them."""

from dataclasses import replace

import numpy as np
import pytest

from iap.attention import ReLU
from iap.distillation.es_pretraining import _collect, teach, told_by
from iap.evaluation.ablations import _initial
from iap.evolution import SNES
from iap.policies import Policy, blocks, flatten, init
from iap.policies.params import unflatten
from iap.policies.serialization import PolicyFile, load
from iap.policies.specs import Blind, Hierarchy, PolicyConfig, Rank, Symmetry
from iap.rollouts import EnvConfig, InlinePool
from iap.training.config import (
    ESPretraining,
    SigmaMultipliers,
    TrainConfig,
    config_from_json,
    config_to_json,
    fitted_to_env,
)
from iap.training.loop import train
from iap.training.presets.registry import preset
from iap.training.run_directory import RunDirectory

SEEK = TrainConfig(
    env=EnvConfig.of("iap/Seek-v0"),
    policy=PolicyConfig(
        (32, 32, 3),
        sensors=0,
        actions=2,
        encoder=Rank(patch=2, stride=2, top_k=16, kernel=ReLU(), order="pooled"),
        frames=2,
        hierarchy=Hierarchy(latent_size=6, max_command_steps=1, gain=0.1),
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


@pytest.fixture(scope="module")
def taught():
    return teach(fitted_to_env(SEEK))


def test_taught_eyes_tell_more_than_the_best_of_those_drawn(taught):
    assert taught.taught > taught.drawn + 0.02


def test_the_command_of_a_taught_policy_tells_where_things_are(taught):
    policy = Policy(SEEK.policy, unflatten(SEEK.policy, taught.theta), taught.normaliser)
    env, commands, states = SEEK.env.make(), [], []
    for seed in range(120):
        observation, _ = env.reset(seed=seed)
        _, state, _ = policy.act(policy.begin(), observation)
        commands.append(state.latent)
        states.append(env.unwrapped.privileged_state())  # pyright: ignore[reportAttributeAccessIssue]
    env.close()
    targets = np.array(states)[:, 2:]  # the robot itself starts at one place
    places = (targets - targets.mean(axis=0)) / targets.std(axis=0)
    assert told_by(np.array(commands), places) > 0.3
    assert np.abs(commands).max() < 1


def test_a_run_keeps_the_taught_policy_and_evolves_only_what_has_a_scale(tmp_path):
    config = fitted_to_env(SEEK)
    run = RunDirectory.create(tmp_path / "run", config)
    with InlinePool(config.job) as pool:
        train(config, pool, run)
    start, last = load(run.policy_file("taught")), load(run.policy_file("last"))
    for block in blocks(config.policy):
        same = np.array_equal(start.theta[block.start : block.stop], last.theta[block.start : block.stop])
        assert same == (block.part != "low"), block.name
    assert start.facts["taught"]["r2_taught"] > start.facts["taught"]["r2_drawn"]


def test_before_training_a_taught_policy_has_its_eyes_and_a_low_level_as_one_is_drawn(taught):
    policy = PolicyFile(SEEK.policy, taught.theta + 1, taught.normaliser, SEEK.env.id, facts={"seed": 3, "taught": {}})
    seen, drawn = _initial(policy).policy.theta, flatten(init(SEEK.policy, 3))
    for block in blocks(SEEK.policy):
        wanted = drawn if block.part == "low" else policy.theta
        np.testing.assert_array_equal(seen[block.start : block.stop], wanted[block.start : block.stop])


def test_a_config_that_teaches_survives_its_file():
    assert config_from_json(config_to_json(SEEK)) == SEEK


@pytest.mark.parametrize(
    ("frame_difference", "message"),
    [
        ({"random_search": 3}, "three ways to begin"),
        ({"policy": replace(SEEK.policy, encoder=Blind())}, "not a blind one"),
        ({"policy": replace(SEEK.policy, hierarchy=None)}, "two levels that looks at every step"),
        ({"policy": replace(SEEK.policy, hierarchy=Hierarchy())}, "two levels that looks at every step"),
        ({"policy": replace(SEEK.policy, symmetry=Symmetry())}, "no mirror"),
    ],
)
def test_what_cannot_be_taught_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(SEEK, **changes)


def test_an_environment_that_does_not_tell_its_state_cannot_teach():
    silent = replace(SEEK, env=EnvConfig.of("CartPole-v1", image_from="render", image_size=(32, 32)))
    with pytest.raises(ValueError, match="CartPole-v1 does not tell its state"):
        teach(fitted_to_env(silent))


def test_the_preset_of_cartpole_teaches():
    assert preset("cartpole-swingup-distracted").teach == ESPretraining()


@pytest.mark.parametrize(("samples_per_episode", "episodes"), [(1, 100), (10, 10)])
def test_lessons_are_of_as_many_episodes_as_are_asked_for(samples_per_episode, episodes):
    env = EnvConfig.of("iap/reacher-easy-v0", size=(16, 16))
    config = fitted_to_env(replace(SEEK, env=env, pretraining=ESPretraining(samples=100, samples_per_episode=samples_per_episode)))
    assert isinstance(config.pretraining, ESPretraining)
    places = _collect(config, config.pretraining, lambda *_: None).places
    assert min(len(np.unique(column)) for column in places.T) == episodes  # the target's place, one an episode


def test_eyes_that_count_from_the_first_look_are_taught_how_far_things_have_come():
    config = fitted_to_env(replace(SEEK, policy=replace(SEEK.policy, relative_to_first_frame=True)))
    assert isinstance(config.pretraining, ESPretraining)
    lessons = _collect(config, config.pretraining, lambda *_: None)
    taught = teach(config)
    policy = Policy(config.policy, unflatten(config.policy, taught.theta), taught.normaliser)
    commands = []
    for episode, images in zip(lessons.episode, lessons.images, strict=True):
        state = policy.begin()
        for image in [lessons.first[episode], *images]:
            _, state, _ = policy.act(state, {"image": image, "sensors": np.zeros(0, np.float32)})
        commands.append(state.latent)
    assert told_by(np.array(commands), lessons.places) > 0.3


def test_what_has_not_moved_since_the_first_look_is_no_lesson_for_eyes_that_count_from_it():
    def places(relative_to_first_frame: bool) -> np.ndarray:
        policy = replace(SEEK.policy, relative_to_first_frame=relative_to_first_frame)
        config = fitted_to_env(replace(SEEK, env=EnvConfig.of("iap/reacher-easy-v0", size=(16, 16)), policy=policy))
        return _collect(config, ESPretraining(samples=100), lambda *_: None).places

    target = 2  # row and column, the same throughout an episode
    assert places(relative_to_first_frame=True).shape[1] == places(relative_to_first_frame=False).shape[1] - target


def test_more_lessons_than_an_episode_has_are_refused():
    with pytest.raises(ValueError, match=r"teach.samples_per_episode must be .* not 200"):
        ESPretraining(samples_per_episode=200)
