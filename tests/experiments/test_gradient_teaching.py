"""Eyes that are taught by gradients tell where things are in the image."""

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from iap.evolution import CMAES, ask
from iap.experiments.config import Scales, TeachByGradient, TrainConfig, config_from_json, config_to_json
from iap.experiments.evaluate import find_policy
from iap.experiments.gradient_eyes import eyes_of
from iap.experiments.gradient_lessons import collect, collect_own, shown, successive_looks, told_policy
from iap.experiments.gradient_teaching import (
    CHANGING,
    FAR,
    SPREAD,
    _slope_of_loss,
    command_of,
    parts_of,
    teach_by_gradient,
)
from iap.experiments.run_directory import RunDirectory
from iap.experiments.train import train
from iap.policies import CNN, MLP, Blind, Linear, MultiRank, Normaliser, Policy, PolicySpec, Products, Rank, TwoLevel
from iap.policies.controllers import NO_MEMORY, controller_of
from iap.policies.files import PolicyFile, load, save
from iap.policies.parameters import blocks, flatten, init, unflatten
from iap.rollouts import EnvSpec, InlinePool

TEACH = TeachByGradient(("target",), lessons=800, steps=200, batch=32)
REACHER = TrainConfig(
    env=EnvSpec.of("iap/reacher-easy-v0", size=(24, 24)),
    policy=PolicySpec(
        (24, 24, 3),
        sensors=0,
        actions=2,
        vision=MultiRank(patch=3, stride=1, d=4, heads=2, keep=12),
        controller=MLP((6,)),
        sees=("contrast",),
        level=TwoLevel(latent=2, longest_hold=1, low=Products(), senses=False),
    ),
    strategy=CMAES(population=4),
    scales=Scales(vision=0, controller=0, low=1),
    iterations=1,
    episodes=1,
    max_steps=5,
    teach=TEACH,
    keep_statistics=True,
    evaluate_episodes=2,
)
RECALLING = replace(REACHER, policy=replace(REACHER.policy, recalls=True, sees=("departures", "detail")))
STEMMED = replace(
    REACHER, policy=replace(REACHER.policy, vision=replace(REACHER.policy.vision, stem=((3, 3, 2),), keep=8))
)
CHANGING_PLACES = replace(
    REACHER,
    policy=replace(
        RECALLING.policy, level=TwoLevel(latent=2, longest_hold=1, low=Products(changes=True), senses=False)
    ),
)
CONVOLVING = replace(REACHER, policy=replace(REACHER.policy, vision=CNN(((3, 4, 2), (2, 3, 2))), controller=Linear()))


@pytest.fixture(scope="module")
def taught():
    return teach_by_gradient(REACHER)


def test_taught_eyes_tell_what_drawn_ones_do_not(taught):
    assert taught.drawn < 0.1
    assert taught.taught > 0.5


@pytest.mark.parametrize("config", [REACHER, RECALLING, STEMMED, CHANGING_PLACES, CONVOLVING])
def test_gradients_are_those_of_the_command_that_the_policy_gives(config):
    spec, theta = config.policy, flatten(init(config.policy, 1))
    normaliser = Normaliser.of(np.random.default_rng(0).normal(0, 0.3, (20, spec.inputs_size)))
    policy = Policy(spec, unflatten(spec, theta), normaliser)
    env = config.env.make()
    env.reset(seed=3)
    suite: Any = env.unwrapped
    images = [suite.scatter(np.random.default_rng(i))["image"].copy() for i in range(5)]
    env.close()
    no_sensors, own = np.zeros(0, np.float32), []
    for image in images:
        _, state, _ = policy.act(policy.begin(), {"image": images[0], "sensors": no_sensors})
        own.append(policy.act(state, {"image": image, "sensors": no_sensors})[1].latent)
    seen = np.stack([shown(spec, image, images[0], images[0]) for image in images])
    eyes, theta = eyes_of(spec), jnp.asarray(theta)
    said = command_of(spec, eyes, normaliser)(theta, eyes.project(parts_of(spec, theta), seen))
    np.testing.assert_allclose(said, own, atol=1e-4)


@pytest.mark.parametrize("config", [REACHER, RECALLING, STEMMED, CHANGING_PLACES, CONVOLVING])
def test_the_slope_of_the_loss_is_that_of_small_steps(config):
    spec, rng = config.policy, np.random.default_rng(2)
    looks = successive_looks(spec)
    seen = rng.integers(0, 255, (6, looks, 1 + spec.recalls, *spec.seen_shape), dtype=np.uint8)
    right = rng.uniform(-0.5, 0.5, (6, looks, 2)).astype(np.float32)
    theta, eyes = flatten(init(spec, 4)), eyes_of(spec)
    parts = parts_of(spec, jnp.asarray(theta))
    one_by_one = seen.reshape(-1, *seen.shape[2:])
    command = command_of(spec, eyes, Normaliser.of(np.asarray(eyes.read(parts, eyes.project(parts, one_by_one)))))

    def loss(theta):
        errors = (command(theta, eyes.project(parts_of(spec, theta), one_by_one)).reshape(right.shape) - right) / SPREAD
        loss = np.minimum(errors**2, FAR**2).mean()
        return loss if looks == 1 else loss + CHANGING * np.minimum((errors[:, 1] - errors[:, 0]) ** 2, FAR**2).mean()

    slope = _slope_of_loss(spec, eyes, command)(jnp.asarray(theta), seen, right)
    for block in (block for block in blocks(spec) if block.part != "low"):
        step = np.zeros_like(theta)
        step[block.start : block.stop] = slope[block.start : block.stop]
        size = np.linalg.norm(step)
        step *= 1e-4 / size
        assert (loss(theta + step) - loss(theta - step)) / 2e-4 == pytest.approx(size, rel=0.25)  # there are kinks


def test_every_other_lesson_is_of_what_a_told_policy_meets_beginning_with_its_first_look(tmp_path):
    told = PolicySpec((24, 24, 3), sensors=2, actions=2, vision=Blind(), controller=Products())
    env = {"size": [24, 24], "told": ["target"], "told_error": 0.1}
    still = PolicyFile(told, np.zeros(12, np.float32), None, "iap/reacher-easy-v0", env)  # whatever it is told
    save(tmp_path / "still.policy", still)
    wanted = replace(TEACH, parts=("finger",), lessons=100, an_episode=5, low_from=str(tmp_path / "still.policy"))
    places = collect(REACHER, wanted, told_policy(REACHER, wanted), lambda _what, _share: None).places
    scattered, met = places.reshape(10, 2, 5, 2).transpose(1, 0, 2, 3)  # of each episode five lessons of one look
    assert (scattered.std(axis=1) > 0.05).any(axis=1).all()
    np.testing.assert_allclose(met, np.broadcast_to(met[:, :1], met.shape), atol=0.05)


def test_what_the_policy_itself_meets_is_seen_with_its_own_eyes(taught):
    policy = Policy(REACHER.policy, unflatten(REACHER.policy, taught.theta), taught.normaliser)
    wanted = replace(TEACH, parts=("finger",), lessons=120, an_episode=6, own=2, low_from="told")
    first, again = (collect_own(REACHER, wanted, policy, time, lambda _what, _share: None) for time in (1, 2))
    assert len(first.seen) == len(again.seen) == 42
    assert not np.array_equal(first.places, again.places)
    moved = np.ptp(first.places.reshape(7, 6, 2), axis=1).max(axis=1)
    assert moved.min() > 0.02  # a policy that acts does not stand still


def test_where_changes_matter_a_lesson_is_of_two_successive_looks_in_view():
    env = EnvSpec.of("iap/cartpole-swingup-v0", size=(24, 24))
    wanted = replace(TEACH, parts=("x of cart", "x of pole_1 from cart"), lessons=100, an_episode=10)
    config = replace(CHANGING_PLACES, env=env, policy=replace(CHANGING_PLACES.policy, actions=1), teach=wanted)
    lessons = collect(config, wanted, None, lambda _what, _share: None)
    assert lessons.seen.shape[1:] == (2, 2, *config.policy.seen_shape)  # two looks, each with the first
    assert len(lessons.seen) < 100  # some carts are out of view
    apart = np.abs(lessons.places[:, 1] - lessons.places[:, 0])
    assert 0 < np.median(apart[:, 0]) < 0.2  # m, in one step; poses of their own are a metre apart
    np.testing.assert_array_equal(lessons.seen[:, 0, 1], lessons.seen[:, 1, 1])
    known, new = lessons.parted()
    assert len(known.seen) + len(new.seen) == len(lessons.seen)
    assert not set(known.episodes) & set(new.episodes)


def test_evolution_starts_from_the_taught_policy_and_leaves_its_eyes(tmp_path):
    config = replace(REACHER, teach=replace(TEACH, lessons=100, steps=3))
    with InlinePool(config.job) as pool:
        progress = train(config, pool, RunDirectory.create(tmp_path / "run", config))
    assert progress.begun is not None
    assert set(progress.begun["taught"]) >= {"r2_drawn", "r2_taught"}
    start = load(tmp_path / "run" / "taught.policy").theta
    eyes = np.concatenate([np.arange(b.start, b.stop) for b in blocks(config.policy) if b.part != "low"])
    candidates, _ = ask(progress.search)
    for theta in candidates:
        np.testing.assert_array_equal(theta[eyes], start[eyes])
        assert not np.array_equal(theta, start)


def test_the_low_level_does_what_the_policy_did_that_was_told_the_same(tmp_path):
    told = TrainConfig(
        env=EnvSpec.of("iap/reacher-easy-v0", size=(24, 24), told=("target",)),
        policy=PolicySpec((24, 24, 3), sensors=2, actions=2, vision=Blind(), controller=Products()),
        strategy=CMAES(population=4),
        iterations=2,
        episodes=1,
        max_steps=5,
        evaluate_episodes=1,
    )
    with InlinePool(told.job) as pool:
        train(told, pool, RunDirectory.create(tmp_path / "told", told))
    config = replace(REACHER, teach=replace(TEACH, lessons=100, own=1, steps=2, low_from=str(tmp_path / "told")))
    taught = teach_by_gradient(config)
    file, _ = find_policy(str(tmp_path / "told"))
    teller = Policy(file.spec, unflatten(file.spec, file.theta), file.normaliser)
    place = np.array([0.3, -0.2], np.float32)
    action, _, _ = teller.act(teller.begin(), {"image": None, "sensors": place})
    params = Policy(config.policy, unflatten(config.policy, taught.theta), taught.normaliser).params
    assert file.normaliser is not None
    assert params.low is not None
    low = controller_of(Products(), params.low)
    own, _ = low(SPREAD * file.normaliser.apply(place), NO_MEMORY)
    np.testing.assert_allclose(own, action, rtol=1e-4)
    with pytest.raises(ValueError, match="low_from must be a blind policy with 2 sensors"):
        teach_by_gradient(replace(config, teach=replace(TEACH, low_from="zoo:seek")))


def test_a_config_that_teaches_by_gradient_survives_its_file():
    assert config_from_json(config_to_json(REACHER)) == REACHER


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        (replace(REACHER.policy, vision=Rank(keep=4)), "MultiRank or CNN"),
        (replace(REACHER.policy, level=TwoLevel(latent=3, longest_hold=1)), r"level.latent 2"),
        (replace(REACHER.policy, level=None), "two levels"),
        (replace(REACHER.policy, frames=2), "one frame"),
    ],
)
def test_a_policy_that_cannot_be_taught_so_is_refused(policy, why):
    with pytest.raises(ValueError, match=why):
        replace(REACHER, policy=policy)


@pytest.mark.parametrize(
    "wrong", [{"parts": ()}, {"rate": 0.0}, {"lessons": 3}, {"steps": 0}, {"own": 1}, {"an_episode": 500}]
)
def test_teaching_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(ValueError, match=f"teach.{next(iter(wrong))}"):
        replace(TEACH, **wrong)


def test_lessons_of_too_few_episodes_to_judge_by_are_refused():
    with pytest.raises(ValueError, match="lessons must be of at least 4 episodes"):
        replace(TEACH, lessons=100, an_episode=30)


def test_an_environment_that_cannot_scatter_is_refused():
    with pytest.raises(ValueError, match="iap/Seek-v0 cannot teach"):
        teach_by_gradient(replace(REACHER, env=EnvSpec.of("iap/Seek-v0")))
