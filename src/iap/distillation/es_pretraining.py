"""Pretraining of an encoder by an evolution strategy: linear regression from its features to the simulator's state.

Random actions visit a few hundred states. The fitness of an encoder is the R² of a ridge regression from its features
to the state. The high level becomes that regression, so that the command is the estimated state. The low level, which
acts on it, is trained from returns afterwards. The state is used in pretraining only: the policy acts on images.
"""

from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from iap.distillation.config import ESPretraining
from iap.distillation.pretrained import PRETRAINING, Pretrained, Report
from iap.distillation.ridge import normalised_with_one, ridge
from iap.envs.core import EnvConfig, to_action
from iap.envs.protocols import PrivilegedState, require_protocol
from iap.evolution import SNES, ask, mean, start, tell
from iap.policies import Normaliser, Policy, PolicyConfig, blocks, flatten, init
from iap.policies.preprocessing import preprocess_image
from iap.policies.step import encode_one
from iap.rollouts import TRAINING_SEEDS, draw_seeds

FRAMES = 3  # of a sample: frame differences exist from the second on, changes of features from the third on
LONGEST_EPISODE = 100  # steps
MAX_REPEATS = 8  # steps for which a random action is repeated
RIDGE = 0.03  # regularisation, as a share of the inputs' variance
COMMAND_STD = 0.5  # of each number of the command before tanh


class Samples(NamedTuple):
    """Short sequences of images, and the state in the last one.

    For a policy whose features are relative to the first frame, positions are relative to the first state too. All
    positions and velocities are standardised.
    """

    first: list[np.ndarray]  # image of each episode
    episode: list[int]  # of each sample
    images: list[list[np.ndarray]]
    positions: Float[np.ndarray, "n s"]
    velocities: Float[np.ndarray, "n t"]


def pretrain_by_es(
    pretraining: ESPretraining, env: EnvConfig, policy: PolicyConfig, seed: int, report: Report
) -> Pretrained:
    """The best of many random encoders, evolved; and a high level that gives the estimated state."""
    samples = _collect(pretraining, env, policy, seed, report)
    theta, initial, final = _evolve(pretraining, policy, seed, samples, report)
    inputs = _controller_inputs(Policy(policy, theta), samples)
    states = np.hstack([samples.positions, samples.velocities])
    facts = {"r2_initial": initial, "r2_pretrained": final}
    return Pretrained(_with_regression(policy, theta, inputs, states), Normaliser.of(inputs), facts)


def cross_validated_r2(inputs: Float[np.ndarray, "n d"], states: Float[np.ndarray, "n s"]) -> float:
    """The mean R² over all columns of ridge regressions, each half predicted from the other."""
    half = len(inputs) // 2
    halves = slice(None, half), slice(half, None)
    explained = []
    for own, other in (halves, halves[::-1]):
        x = normalised_with_one(inputs, Normaliser.of(inputs[other]))
        residual = states[own] - x[own] @ ridge(x[other], states[other], RIDGE)
        explained.append(1 - np.square(residual).sum(axis=0) / np.square(states[own]).sum(axis=0))
    return float(np.maximum(np.mean(explained, axis=0), -1).mean())


def _collect(pretraining: ESPretraining, env: EnvConfig, policy: PolicyConfig, seed: int, report: Report) -> Samples:
    """Samples of episodes with random actions, each repeated for some steps; their size differs between episodes."""
    made = env.make()
    rng = np.random.default_rng(draw_seeds(seed, PRETRAINING, 1))
    count = -(-pretraining.samples // pretraining.samples_per_episode)
    seeds = draw_seeds(seed, PRETRAINING, 1 + count)[1:]
    first, episode, images, positions = [], [], [], []
    try:
        state_of = require_protocol(made, PrivilegedState).privileged_state
        for number, episode_seed in enumerate(seeds):
            report("collecting random states", number / len(seeds))
            observation, _ = made.reset(seed=TRAINING_SEEDS + episode_seed)
            ends = rng.choice(np.arange(FRAMES - 1, LONGEST_EPISODE), pretraining.samples_per_episode, replace=False)
            strength, hold, recent, raw = rng.uniform(0.2, 1), 0, [], np.zeros(policy.actions, np.float32)
            first.append(observation["image"].copy())
            origin = state_of() if policy.relative_to_first_frame else 0.0
            for step in range(max(ends) + 1):
                recent = [*recent, (observation["image"].copy(), state_of())][-FRAMES:]
                if step in ends:
                    episode.append(number)
                    images.append([image for image, _ in recent])
                    positions.append([state - origin for _, state in recent[-2:]])
                if hold == 0:
                    hold = rng.integers(1, MAX_REPEATS)
                    raw = (strength * rng.uniform(-1, 1, policy.actions)).astype(np.float32)
                hold -= 1
                observation, _, terminated, truncated, _ = made.step(to_action(made.action_space, raw))
                if terminated or truncated:
                    break
    finally:
        made.close()
    before, now = np.array(positions, np.float64).transpose(1, 0, 2)
    return Samples(first, episode, images, _standardised(now), _standardised(now - before))


def _standardised(states: Float[np.ndarray, "n s"]) -> Float[np.ndarray, "n t"]:
    """The columns that vary, with mean 0 and standard deviation 1."""
    varying = states[:, states.std(axis=0) > 1e-6]  # noqa: PLR2004
    return (varying - varying.mean(axis=0)) / varying.std(axis=0)


def _evolve(
    pretraining: ESPretraining, policy: PolicyConfig, seed: int, samples: Samples, report: Report
) -> tuple[Float[np.ndarray, " p"], float, float]:
    """θ with an evolved encoder, and the R² of the best random encoder and of the evolved one."""
    channels = policy.preprocessing
    inputs = [
        preprocess_image(channels, images[-1], images[-2], samples.first[episode])
        for images, episode in zip(samples.images, samples.episode, strict=True)
    ]
    first = [preprocess_image(channels, image, image, image) for image in samples.first]

    def fitness(theta: np.ndarray) -> float:
        own = Policy(policy, theta)
        features = np.array([encode_image(own, image) for image in inputs])
        if policy.relative_to_first_frame:
            features -= np.array([encode_image(own, image) for image in first])[samples.episode]
        return cross_validated_r2(features, samples.positions)

    seeds = draw_seeds(seed, PRETRAINING + 1, pretraining.random_encoders)
    drawn = np.stack([flatten(init(policy, one)) for one in seeds])
    scores = []
    for i, theta in enumerate(drawn):
        scores.append(fitness(theta))
        report(f"random encoders, best R² {max(scores):.2f}", (i + 1) / len(drawn))
    best = int(np.argmax(scores))
    multipliers = np.zeros(drawn.shape[1], np.float32)
    for block in blocks(policy):
        multipliers[block.start : block.stop] = block.part == "encoder"
    search = start(SNES(pretraining.population, pretraining.sigma), drawn[best], multipliers, seed)
    for i in range(pretraining.iterations):
        thetas, search = ask(search)
        returns = [fitness(theta) for theta in thetas]
        search = tell(search, thetas, np.array(returns))
        report(f"training the encoder, R² {np.mean(returns):.2f}", (i + 1) / pretraining.iterations)
    return mean(search), scores[best], fitness(mean(search))


def _controller_inputs(policy: Policy, samples: Samples) -> Float[np.ndarray, "n d"]:
    """The controller's inputs at the end of each sample."""
    config, inputs = policy.config, []
    no_sensors = np.zeros(config.sensors, np.float32)
    uses_first = config.relative_to_first_frame or "first_frame_difference" in config.preprocessing
    for episode, images in zip(samples.episode, samples.images, strict=True):
        state = policy.reset()
        for image in [samples.first[episode], *images] if uses_first else images:
            _, state, _ = policy.act(state, {"image": image, "sensors": no_sensors})
        inputs.append(state.inputs)
    return np.array(inputs)


def _with_regression(
    policy: PolicyConfig, theta: np.ndarray, inputs: Float[np.ndarray, "n d"], states: Float[np.ndarray, "n s"]
) -> np.ndarray:
    """θ whose high level gives the principal components of the estimated state, as many as the command has."""
    assert policy.hierarchy is not None
    features = inputs[:, : policy.features_size]
    x = normalised_with_one(features, Normaliser.of(features))
    weights = ridge(x, states, RIDGE)
    _, strengths, directions = np.linalg.svd(x @ weights, full_matrices=False)
    size = policy.hierarchy.latent_size
    spread = strengths[:size] / np.sqrt(len(x))
    command = weights @ (directions[:size].T * COMMAND_STD / spread)
    bias, weight = (block for block in blocks(policy) if block.part == "controller")
    rows = np.zeros(weight.shape)  # the last row is the command's duration, which does not matter here
    rows[:size, : len(command) - 1] = command[:-1].T
    theta = theta.copy()
    theta[bias.start : bias.stop] = [*command[-1], 0]
    theta[weight.start : weight.stop] = rows.ravel()
    return theta


def encode_image(policy: Policy, image: np.ndarray) -> Float[np.ndarray, " r"]:
    """The features of one preprocessed image, by the compiled encoder."""
    arrays = policy.compiled_for(image.dtype)
    if arrays is None:
        return np.asarray(policy.config.encoder.forward(policy.params["encoder"], image[None]).features[0])
    return encode_one(arrays.encoder, image)
