"""Distillation by gradients: the command is trained to estimate keypoints."""

from dataclasses import replace

import numpy as np
import pytest

from iap.attention import ReLU, Softmax
from iap.distillation import pretrain
from iap.distillation.config import Distillation
from iap.distillation.dataset import Collector, encoder_inputs, frames_per_sample, teacher_policy
from iap.distillation.encoder_regression import COMMAND_STD, estimate, frame_features, regression_loss
from iap.distillation.optimisation import Descent
from iap.envs.core import EnvConfig
from iap.envs.protocols import RandomizableState, require_protocol
from iap.evolution import CMAES, ask
from iap.policies import (
    CNN,
    LSTM,
    MLP,
    Blind,
    Hierarchy,
    Linear,
    MultiHeadRank,
    Normaliser,
    Policy,
    PolicyConfig,
    PolicyFile,
    PooledMoments,
    Quadratic,
    Rank,
    Symmetry,
    blocks,
    flatten,
    init,
)
from iap.policies.serialization import load, save
from iap.rollouts import InlinePool
from iap.training.config import SigmaMultipliers, TrainConfig, config_from_json, config_to_json, fit_to_env
from iap.training.loop import train
from iap.training.run_directory import RunDirectory
from iap.zoo.locate import locate_policy

torch = pytest.importorskip("torch")

OPTIONS = Distillation(("target",), samples=800, steps=200, batch=32)
ENCODER = MultiHeadRank(patch=3, stride=1, d=4, heads=2, top_k=12)
REACHER = TrainConfig(
    env=EnvConfig.of("iap/reacher-easy-v0", size=(24, 24)),
    policy=PolicyConfig(
        (24, 24, 3),
        sensors=0,
        actions=2,
        encoder=ENCODER,
        controller=MLP((6,)),
        preprocessing=("local_contrast_coarse",),
        hierarchy=Hierarchy(latent_size=2, max_command_steps=1, low_level=Quadratic(), high_level_sensors=False),
    ),
    strategy=CMAES(population=4),
    sigma_multipliers=SigmaMultipliers(encoder=0, controller=0, low_level=1),
    iterations=1,
    episodes=1,
    max_steps=5,
    pretraining=OPTIONS,
    freeze_normaliser=True,
    evaluate_episodes=2,
)
FIRST_FRAME = replace(
    REACHER.policy, first_frame_features=True, preprocessing=("first_frame_difference", "local_contrast_fine")
)
DELTAS = Hierarchy(latent_size=2, max_command_steps=1, low_level=Quadratic(deltas=True), high_level_sensors=False)
POLICIES = {
    "multi-head-rank": REACHER.policy,
    "first frame": FIRST_FRAME,
    "stem": replace(REACHER.policy, encoder=replace(ENCODER, stem=((3, 3, 2),), top_k=8)),
    "deltas": replace(FIRST_FRAME, hierarchy=DELTAS),
    "cnn": replace(REACHER.policy, encoder=CNN(((3, 4, 2), (2, 3, 2))), controller=Linear()),
    "rank": replace(
        REACHER.policy,
        encoder=Rank(patch=2, stride=2, top_k=12, kernel=ReLU(), features=PooledMoments(2, score_weighted=True)),
    ),
    "not normalised": replace(REACHER.policy, normalise=False),
}


def silent(_what, _share):
    pass


def pretrained(config):
    assert config.pretraining is not None
    return pretrain(config.pretraining, config.env, config.policy, config.seed)


@pytest.fixture(scope="module")
def result():
    return pretrained(REACHER)


@pytest.fixture(scope="module")
def images():
    """The image at a reset, and images of four random states."""
    env = REACHER.env.make()
    first = env.reset(seed=3)[0]["image"].copy()
    randomizable = require_protocol(env, RandomizableState)
    others = [randomizable.randomize_state(np.random.default_rng(i))["image"].copy() for i in range(4)]
    env.close()
    return [first, *others]


def test_a_trained_command_estimates_keypoints_which_a_random_one_does_not(result):
    assert result.facts["r2_initial"] < 0.1
    assert result.facts["r2_pretrained"] > 0.5


def test_the_same_seed_gives_the_same_policy_and_another_seed_another_one():
    config = replace(REACHER, pretraining=replace(OPTIONS, samples=100, steps=3))
    first, same = pretrained(config), pretrained(config)
    assert first.theta.tobytes() == same.theta.tobytes()
    assert (first.facts["r2_initial"], first.facts["r2_pretrained"]) == (
        same.facts["r2_initial"],
        same.facts["r2_pretrained"],
    )
    assert not np.array_equal(first.theta, pretrained(replace(config, seed=1)).theta)


@pytest.mark.parametrize("name", POLICIES)
def test_the_differentiated_command_is_that_of_the_acting_policy(name, images):
    config, theta = POLICIES[name], flatten(init(POLICIES[name], 1))
    normaliser = Normaliser.of(np.random.default_rng(0).normal(0, 0.3, (20, config.inputs_size)))
    policy, no_sensors, commands = Policy(config, theta, normaliser), np.zeros(0, np.float32), []
    for image in images:
        _, state, _ = policy.act(policy.reset(), {"image": images[0], "sensors": no_sensors})
        commands.append(policy.act(state, {"image": image, "sensors": no_sensors})[1].latent)
    inputs = np.stack([encoder_inputs(config, image, images[0], images[0]) for image in images])
    estimated = estimate(config, normaliser, torch.from_numpy(theta), inputs).numpy()
    assert np.std(commands) > 1e-3
    np.testing.assert_allclose(estimated, commands, atol=1e-5)


@pytest.mark.parametrize("name", POLICIES)
def test_the_gradient_of_the_loss_is_that_of_finite_differences(name):
    config, rng = POLICIES[name], np.random.default_rng(2)
    frames = frames_per_sample(config)
    shape = (6, frames, 1 + config.first_frame_features, *config.input_shape)
    inputs = rng.integers(0, 255, shape, dtype=np.uint8)
    targets = rng.uniform(-0.5, 0.5, (6, frames, 2)).astype(np.float32)
    theta = torch.tensor(flatten(init(config, 4)), requires_grad=True)
    with torch.no_grad():
        features = frame_features(config, theta, inputs.reshape(-1, *inputs.shape[2:]))
    normaliser = Normaliser.of(features.numpy())

    def loss(theta):
        return regression_loss(config, normaliser, theta, inputs, targets)

    [gradient] = torch.autograd.grad(loss(theta), theta)
    with torch.no_grad():
        for block in (block for block in blocks(config) if block.part != "low_level"):
            step = torch.zeros_like(theta)
            step[block.start : block.stop] = gradient[block.start : block.stop]
            size = float(torch.linalg.norm(step))
            assert size > 0, block.name
            step *= 1e-4 / size
            difference = float(loss(theta + step) - loss(theta - step)) / 2e-4
            assert difference == pytest.approx(size, rel=0.25), block.name  # there are kinks


def test_the_loss_falls_along_its_gradient():
    config, rng = REACHER.policy, np.random.default_rng(0)
    inputs = rng.integers(0, 255, (16, 1, 1, *config.input_shape), dtype=np.uint8)
    targets = rng.uniform(-0.3, 0.3, (16, 1, 2)).astype(np.float32)
    descent = Descent(flatten(init(config, 0)), steps=30, learning_rate=0.01)
    with torch.no_grad():
        normaliser = Normaliser.of(frame_features(config, descent.theta, inputs[:, 0]).numpy())
    losses = [descent.step(regression_loss(config, normaliser, descent.theta, inputs, targets)) for _ in range(30)]
    assert losses[-1] < 0.7 * losses[0]


def test_errors_that_change_between_frames_count_more():
    config, theta = POLICIES["deltas"], torch.from_numpy(flatten(init(POLICIES["deltas"], 0)))
    inputs = np.random.default_rng(0).integers(0, 255, (1, 1, 2, *config.input_shape), dtype=np.uint8)
    inputs, normaliser = np.repeat(inputs, 2, axis=1), Normaliser.none(config.inputs_size)
    command = estimate(config, normaliser, theta, inputs[:, 0]).numpy()
    constant, alternating = (
        command + COMMAND_STD * np.array([[[s, s], [t, t]]], np.float32) for s, t in [(1, 1), (1, -1)]
    )
    assert float(regression_loss(config, normaliser, theta, inputs, constant)) == pytest.approx(1, rel=1e-4)
    assert float(regression_loss(config, normaliser, theta, inputs, alternating)) == pytest.approx(1 + 3 * 4, rel=1e-4)


def test_half_of_the_episodes_are_the_teachers_and_start_with_its_first_frame(tmp_path):
    config = PolicyConfig((24, 24, 3), sensors=2, actions=2, encoder=Blind(), controller=Quadratic())
    env = {"size": [24, 24], "keypoints": ["target"], "keypoint_noise": 0.1}
    motionless = PolicyFile(config, np.zeros(12, np.float32), None, "iap/reacher-easy-v0", env)
    save(tmp_path / "motionless.policy", motionless)
    teacher = str(tmp_path / "motionless.policy")
    options = replace(OPTIONS, keypoints=("finger",), samples=100, samples_per_episode=5, teacher=teacher)
    collector = Collector(options, REACHER.env, REACHER.policy, REACHER.seed)
    keypoints = collector.collect(teacher_policy(options, REACHER.policy), silent).keypoints
    random, of_teacher = keypoints.reshape(10, 2, 5, 2).transpose(1, 0, 2, 3)  # five samples of one frame an episode
    assert (random.std(axis=1) > 0.05).any(axis=1).all()
    np.testing.assert_allclose(of_teacher, np.broadcast_to(of_teacher[:, :1], of_teacher.shape), atol=0.05)


def test_samples_of_the_student_come_from_episodes_in_which_it_acts(result):
    policy = Policy(REACHER.policy, result.theta, result.normaliser)
    options = replace(
        OPTIONS, keypoints=("finger",), samples=120, samples_per_episode=6, student_rounds=2, teacher="any"
    )
    collector = Collector(options, REACHER.env, REACHER.policy, REACHER.seed)
    first, second = (collector.collect_from(policy, number, silent) for number in (1, 2))
    assert len(first.inputs) == len(second.inputs) == 42
    assert not np.array_equal(first.keypoints, second.keypoints)
    moved = np.ptp(first.keypoints.reshape(7, 6, 2), axis=1).max(axis=1)
    assert moved.min() > 0.02


def test_where_the_low_level_uses_deltas_a_sample_is_two_successive_frames_in_view():
    env = EnvConfig.of("iap/cartpole-swingup-v0", size=(24, 24))
    policy = replace(POLICIES["deltas"], actions=1)
    options = replace(OPTIONS, keypoints=("x of cart", "x of pole_1 from cart"), samples=100, samples_per_episode=10)
    dataset = Collector(options, env, policy, seed=0).collect(None, silent)
    assert dataset.inputs.shape[1:] == (2, 2, *policy.input_shape)  # two frames, each with the first of the episode
    assert len(dataset.inputs) < 100  # in some the cart is out of view
    apart = np.abs(dataset.keypoints[:, 1] - dataset.keypoints[:, 0])
    assert 0 < np.median(apart[:, 0]) < 0.2  # m, in one step; independent states are a metre apart
    np.testing.assert_array_equal(dataset.inputs[:, 0, 1], dataset.inputs[:, 1, 1])
    training, validation = dataset.split()
    assert len(training.inputs) + len(validation.inputs) == len(dataset.inputs)
    assert not set(training.episodes) & set(validation.episodes)
    joined = training.joined(validation)
    assert len(joined.inputs) == len(dataset.inputs)


def test_training_starts_from_the_distilled_policy_and_leaves_its_encoder_unchanged(tmp_path):
    config = replace(REACHER, pretraining=replace(OPTIONS, samples=100, steps=3))
    with InlinePool(config.job) as pool:
        progress = train(config, pool, RunDirectory.create(tmp_path / "run", config))
    assert progress.start is not None
    assert set(progress.start["pretrained"]) >= {"r2_initial", "r2_pretrained"}
    start = load(tmp_path / "run" / "pretrained.policy").theta
    fixed = np.concatenate([np.arange(b.start, b.stop) for b in blocks(config.policy) if b.part != "low_level"])
    candidates, _ = ask(progress.search)
    for theta in candidates:
        np.testing.assert_array_equal(theta[fixed], start[fixed])
        assert not np.array_equal(theta, start)


def test_the_low_level_acts_as_the_teacher_on_the_same_keypoints(tmp_path):
    teacher = TrainConfig(
        env=EnvConfig.of("iap/reacher-easy-v0", size=(24, 24), keypoints=("target",)),
        policy=PolicyConfig((24, 24, 3), sensors=2, actions=2, encoder=Blind(), controller=Quadratic()),
        strategy=CMAES(population=4),
        iterations=2,
        episodes=1,
        max_steps=5,
        evaluate_episodes=1,
    )
    with InlinePool(teacher.job) as pool:
        train(teacher, pool, RunDirectory.create(tmp_path / "teacher", teacher))
    options = replace(OPTIONS, samples=100, student_rounds=1, steps=2, teacher=str(tmp_path / "teacher"))
    config = replace(REACHER, pretraining=options)
    result = pretrained(config)
    file, _ = locate_policy(str(tmp_path / "teacher"))
    acting, target = Policy.of(file), np.array([0.3, -0.2], np.float32)
    action, _, _ = acting.act(acting.reset(), {"image": None, "sensors": target})
    assert file.normaliser is not None
    params = Policy(config.policy, result.theta, result.normaliser).params["low_level"]
    command = COMMAND_STD * file.normaliser.apply(target)
    own, _ = Quadratic().step(params, np.zeros((1, 0), np.float32), command[None])
    np.testing.assert_allclose(own[0], action, rtol=1e-4)
    with pytest.raises(ValueError, match=r"pretraining\.teacher must be a blind policy with 2 sensors"):
        pretrained(replace(config, pretraining=replace(OPTIONS, teacher="zoo:seek")))


def test_a_config_with_distillation_is_the_same_after_a_round_trip_through_json():
    assert config_from_json(config_to_json(REACHER)) == REACHER


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"encoder": Blind()}, "not a blind one"),
        ({"encoder": Rank(top_k=4, kernel=Softmax("trigonometric"))}, "scores are not negative"),
        ({"encoder": Rank(top_k=4, select="sample")}, 'not select="sample"'),
        ({"hierarchy": None}, "a hierarchy that encodes an image at every step"),
        ({"hierarchy": Hierarchy(latent_size=2)}, "a hierarchy that encodes an image at every step"),
        ({"frames": 2}, "one frame"),
        ({"relative_to_first_frame": True}, "one frame"),
        ({"symmetry": Symmetry()}, "no symmetry"),
        ({"controller": LSTM(4)}, "a high-level controller without memory"),
        ({"sensors": 2}, "without sensors, not one with 2"),
    ],
)
def test_a_policy_that_cannot_be_distilled_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        replace(REACHER, policy=replace(REACHER.policy, **changes))


def test_a_command_of_another_size_than_the_keypoints_is_refused():
    assert REACHER.policy.hierarchy is not None
    hierarchy = replace(REACHER.policy.hierarchy, latent_size=3)
    with pytest.raises(ValueError, match=r"hierarchy\.latent_size must be 2, the coordinates of target, not 3"):
        fit_to_env(replace(REACHER, policy=replace(REACHER.policy, hierarchy=hierarchy)))


@pytest.mark.parametrize(
    "wrong",
    [
        {"keypoints": ()},
        {"learning_rate": 0.0},
        {"samples": 3},
        {"steps": 0},
        {"student_rounds": 1},
        {"samples_per_episode": 500},
    ],
)
def test_invalid_options_are_refused(wrong):
    with pytest.raises(ValueError, match=rf"pretraining\.{next(iter(wrong))}"):
        replace(OPTIONS, **wrong)


def test_samples_of_too_few_episodes_to_validate_with_are_refused():
    with pytest.raises(ValueError, match=r"pretraining\.samples must be of at least 4 episodes"):
        replace(OPTIONS, samples=100, samples_per_episode=30)


def test_an_environment_without_keypoints_is_refused():
    config = replace(REACHER, env=EnvConfig.of("iap/Seek-v0"))
    with pytest.raises(ValueError, match="iap/Seek-v0 does not implement Keypoints"):
        pretrained(config)
    with pytest.raises(ValueError, match="iap/Seek-v0 offers no keypoints"):
        fit_to_env(config)
