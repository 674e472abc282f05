"""Eyes that are taught by gradients tell where things are in the image."""

from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

from iap.distillation.dataset import collect, collect_own, shown, successive_looks, told_policy
from iap.distillation.encoder_regression import (
    CHANGING,
    FAR,
    SPREAD,
    _slope_of_loss,
    command_of,
    parts_of,
    teach_by_gradient,
)
from iap.distillation.jax_encoders import eyes_of
from iap.evaluation.evaluate import locate_policy
from iap.evolution import CMAES, ask
from iap.policies import (
    CNN,
    MLP,
    Blind,
    Hierarchy,
    Linear,
    MultiHeadRank,
    Normaliser,
    Policy,
    PolicyConfig,
    Quadratic,
    Rank,
)
from iap.policies.controllers import NO_MEMORY, controller_of
from iap.policies.params import blocks, flatten, init, unflatten
from iap.policies.serialization import PolicyFile, load, save
from iap.rollouts import EnvConfig, InlinePool
from iap.training.config import Distillation, SigmaMultipliers, TrainConfig, config_from_json, config_to_json
from iap.training.loop import train
from iap.training.run_directory import RunDirectory

TEACH = Distillation(("target",), samples=800, steps=200, batch=32)
REACHER = TrainConfig(
    env=EnvConfig.of("iap/reacher-easy-v0", size=(24, 24)),
    policy=PolicyConfig(
        (24, 24, 3),
        sensors=0,
        actions=2,
        encoder=MultiHeadRank(patch=3, stride=1, d=4, heads=2, top_k=12),
        controller=MLP((6,)),
        preprocessing=("local_contrast_coarse",),
        hierarchy=Hierarchy(latent_size=2, max_command_steps=1, low=Quadratic(), high_level_sensors=False),
    ),
    strategy=CMAES(population=4),
    sigma_multipliers=SigmaMultipliers(encoder=0, controller=0, low_level=1),
    iterations=1,
    episodes=1,
    max_steps=5,
    pretraining=TEACH,
    freeze_normaliser=True,
    evaluate_episodes=2,
)
RECALLING = replace(REACHER, policy=replace(REACHER.policy, first_frame_features=True, preprocessing=("first_frame_difference", "local_contrast_fine")))
STEMMED = replace(
    REACHER, policy=replace(REACHER.policy, encoder=replace(REACHER.policy.encoder, stem=((3, 3, 2),), top_k=8))
)
CHANGING_PLACES = replace(
    REACHER,
    policy=replace(
        RECALLING.policy, hierarchy=Hierarchy(latent_size=2, max_command_steps=1, low=Quadratic(changes=True), high_level_sensors=False)
    ),
)
CONVOLVING = replace(REACHER, policy=replace(REACHER.policy, encoder=CNN(((3, 4, 2), (2, 3, 2))), controller=Linear()))


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
    images = [suite.randomize_state(np.random.default_rng(i))["image"].copy() for i in range(5)]
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
    seen = rng.integers(0, 255, (6, looks, 1 + spec.first_frame_features, *spec.input_shape), dtype=np.uint8)
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
    told = PolicyConfig((24, 24, 3), sensors=2, actions=2, encoder=Blind(), controller=Quadratic())
    env = {"size": [24, 24], "keypoints": ["target"], "keypoint_noise": 0.1}
    still = PolicyFile(told, np.zeros(12, np.float32), None, "iap/reacher-easy-v0", env)  # whatever it is told
    save(tmp_path / "still.policy", still)
    wanted = replace(TEACH, keypoints=("finger",), samples=100, samples_per_episode=5, teacher=str(tmp_path / "still.policy"))
    places = collect(REACHER, wanted, told_policy(REACHER, wanted), lambda _what, _share: None).places
    scattered, met = places.reshape(10, 2, 5, 2).transpose(1, 0, 2, 3)  # of each episode five lessons of one look
    assert (scattered.std(axis=1) > 0.05).any(axis=1).all()
    np.testing.assert_allclose(met, np.broadcast_to(met[:, :1], met.shape), atol=0.05)


def test_what_the_policy_itself_meets_is_seen_with_its_own_eyes(taught):
    policy = Policy(REACHER.policy, unflatten(REACHER.policy, taught.theta), taught.normaliser)
    wanted = replace(TEACH, keypoints=("finger",), samples=120, samples_per_episode=6, student_rounds=2, teacher="keypoints")
    first, again = (collect_own(REACHER, wanted, policy, time, lambda _what, _share: None) for time in (1, 2))
    assert len(first.seen) == len(again.seen) == 42
    assert not np.array_equal(first.places, again.places)
    moved = np.ptp(first.places.reshape(7, 6, 2), axis=1).max(axis=1)
    assert moved.min() > 0.02  # a policy that acts does not stand still


def test_where_changes_matter_a_lesson_is_of_two_successive_looks_in_view():
    env = EnvConfig.of("iap/cartpole-swingup-v0", size=(24, 24))
    wanted = replace(TEACH, keypoints=("x of cart", "x of pole_1 from cart"), samples=100, samples_per_episode=10)
    config = replace(CHANGING_PLACES, env=env, policy=replace(CHANGING_PLACES.policy, actions=1), pretraining=wanted)
    lessons = collect(config, wanted, None, lambda _what, _share: None)
    assert lessons.seen.shape[1:] == (2, 2, *config.policy.input_shape)  # two looks, each with the first
    assert len(lessons.seen) < 100  # some carts are out of view
    apart = np.abs(lessons.places[:, 1] - lessons.places[:, 0])
    assert 0 < np.median(apart[:, 0]) < 0.2  # m, in one step; poses of their own are a metre apart
    np.testing.assert_array_equal(lessons.seen[:, 0, 1], lessons.seen[:, 1, 1])
    known, new = lessons.parted()
    assert len(known.seen) + len(new.seen) == len(lessons.seen)
    assert not set(known.episodes) & set(new.episodes)


def test_evolution_starts_from_the_taught_policy_and_leaves_its_eyes(tmp_path):
    config = replace(REACHER, pretraining=replace(TEACH, samples=100, steps=3))
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
        env=EnvConfig.of("iap/reacher-easy-v0", size=(24, 24), keypoints=("target",)),
        policy=PolicyConfig((24, 24, 3), sensors=2, actions=2, encoder=Blind(), controller=Quadratic()),
        strategy=CMAES(population=4),
        iterations=2,
        episodes=1,
        max_steps=5,
        evaluate_episodes=1,
    )
    with InlinePool(told.job) as pool:
        train(told, pool, RunDirectory.create(tmp_path / "keypoints", told))
    config = replace(REACHER, pretraining=replace(TEACH, samples=100, student_rounds=1, steps=2, teacher=str(tmp_path / "keypoints")))
    taught = teach_by_gradient(config)
    file, _ = locate_policy(str(tmp_path / "keypoints"))
    teller = Policy(file.spec, unflatten(file.spec, file.theta), file.normaliser)
    place = np.array([0.3, -0.2], np.float32)
    action, _, _ = teller.act(teller.begin(), {"image": None, "sensors": place})
    params = Policy(config.policy, unflatten(config.policy, taught.theta), taught.normaliser).params
    assert file.normaliser is not None
    assert params.low is not None
    low = controller_of(Quadratic(), params.low)
    own, _ = low(SPREAD * file.normaliser.apply(place), NO_MEMORY)
    np.testing.assert_allclose(own, action, rtol=1e-4)
    with pytest.raises(ValueError, match="teacher must be a blind policy with 2 sensors"):
        teach_by_gradient(replace(config, pretraining=replace(TEACH, teacher="zoo:seek")))


def test_a_config_that_teaches_by_gradient_survives_its_file():
    assert config_from_json(config_to_json(REACHER)) == REACHER


@pytest.mark.parametrize(
    ("policy", "why"),
    [
        (replace(REACHER.policy, encoder=Rank(top_k=4)), "MultiHeadRank or CNN"),
        (replace(REACHER.policy, hierarchy=Hierarchy(latent_size=3, max_command_steps=1)), r"level.latent 2"),
        (replace(REACHER.policy, hierarchy=None), "two levels"),
        (replace(REACHER.policy, frames=2), "one frame"),
    ],
)
def test_a_policy_that_cannot_be_taught_so_is_refused(policy, why):
    with pytest.raises(ValueError, match=why):
        replace(REACHER, policy=policy)


@pytest.mark.parametrize(
    "wrong", [{"parts": ()}, {"rate": 0.0}, {"lessons": 3}, {"steps": 0}, {"own": 1}, {"samples_per_episode": 500}]
)
def test_teaching_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(ValueError, match=f"teach.{next(iter(wrong))}"):
        replace(TEACH, **wrong)


def test_lessons_of_too_few_episodes_to_judge_by_are_refused():
    with pytest.raises(ValueError, match="lessons must be of at least 4 episodes"):
        replace(TEACH, samples=100, samples_per_episode=30)


def test_an_environment_that_cannot_scatter_is_refused():
    with pytest.raises(ValueError, match="iap/Seek-v0 cannot teach"):
        teach_by_gradient(replace(REACHER, env=EnvConfig.of("iap/Seek-v0")))
