"""Eyes that are taught before anything is done with them: evolved until they tell where things are.

Random actions visit a few hundred states. Random eyes look on, and evolution improves those from whose readouts ridge
regression tells most about what the simulator knows. Of that regression the high level is made, so that its command is
what the eyes know of the state; what to do about it remains to be learnt from returns. The simulator's state is needed
for teaching alone: a taught policy sees images, as any other.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from jaxtyping import Float

from iap.envs.core import to_action
from iap.evaluation.probe import as_received, ridge, state_teller
from iap.evolution import SNES, ask, mean, start, tell
from iap.policies import Normaliser, blocks, flatten, init
from iap.policies.params import unflatten
from iap.policies.policy import Policy
from iap.policies.preprocessing import show
from iap.training.config import TRAINING_SEEDS, ESPretraining, TrainConfig
from iap.training.returns import draw_seeds

LOOKS = 3  # of a lesson: changes are seen from the second on, and how the eyes' readouts change from the third on
LONGEST_EPISODE = 100  # steps
LONGEST_HOLD = 8  # steps for which a random action is held
TEACHING = (1 << 31) + 2  # the stream of the episodes' seeds
RIDGE = 0.03  # of the inputs' variance
COMMAND = 0.5  # standard deviation of each number that the taught high level says, before tanh

Told = Callable[[str, float], None]


class Lessons(NamedTuple):
    """A few images in a row, many times over; where things are in the last, and how they move, all of one spread.

    For a policy whose readouts are counted from the first look of an episode, so are the places.
    """

    first: list[np.ndarray]  # of each episode
    episode: list[int]  # that each lesson is of
    images: list[list[np.ndarray]]
    places: Float[np.ndarray, "n s"]
    speeds: Float[np.ndarray, "n t"]


@dataclass(frozen=True)
class Taught:
    """A policy whose eyes tell the state, and how much of its places they explained, before and after (R²)."""

    theta: Float[np.ndarray, " p"]
    normaliser: Normaliser
    drawn: float
    taught: float


def teach(config: TrainConfig, tell_about: Told = lambda _what, _share: None) -> Taught:
    """The best of many random eyes, evolved to tell places; and a high level that says what they know."""
    assert isinstance(config.pretraining, ESPretraining)
    lessons = _collect(config, config.pretraining, tell_about)
    theta, drawn, taught = _evolve_eyes(config, config.pretraining, lessons, tell_about)
    inputs = _inputs(_policy(config, theta), lessons)
    states = np.hstack([lessons.places, lessons.speeds])
    return Taught(_with_command(config, theta, inputs, states), Normaliser.of(inputs), drawn, taught)


def told_by(inputs: Float[np.ndarray, "n d"], states: Float[np.ndarray, "n s"]) -> float:
    """R² of ridge regression from inputs to states, each half by what the other one taught, over all columns."""
    half = len(inputs) // 2
    halves = slice(None, half), slice(half, None)
    explained = []
    for own, other in (halves, halves[::-1]):
        x = as_received(inputs, Normaliser.of(inputs[other]))
        left = states[own] - x[own] @ ridge(x[other], states[other], RIDGE)
        explained.append(1 - np.square(left).sum(axis=0) / np.square(states[own]).sum(axis=0))
    return float(np.maximum(np.mean(explained, axis=0), -1).mean())


def _collect(config: TrainConfig, wanted: ESPretraining, tell_about: Told) -> Lessons:
    """Lessons from random episodes: actions held for a while, wild in some of them and gentle in others."""
    env = config.env.make()
    rng = np.random.default_rng(draw_seeds(config.seed, TEACHING, 1))
    seeds = draw_seeds(config.seed, TEACHING, 1 + -(-wanted.samples // wanted.samples_per_episode))[1:]
    first, episode, images, places = [], [], [], []
    try:
        state_of = state_teller(env)
        for number, seed in enumerate(seeds):
            tell_about("looking at random states", number / len(seeds))
            observation, _ = env.reset(seed=TRAINING_SEEDS + seed)
            ends = rng.choice(np.arange(LOOKS - 1, LONGEST_EPISODE), wanted.samples_per_episode, replace=False)
            strength, hold, seen, raw = rng.uniform(0.2, 1), 0, [], np.zeros(config.policy.actions, np.float32)
            first.append(observation["image"].copy())
            origin = state_of() if config.policy.relative_to_first_frame else 0.0
            for step in range(max(ends) + 1):
                seen = [*seen, (observation["image"].copy(), state_of())][-LOOKS:]
                if step in ends:
                    episode.append(number)
                    images.append([image for image, _ in seen])
                    places.append([place - origin for _, place in seen[-2:]])
                if hold == 0:
                    hold = rng.integers(1, LONGEST_HOLD)
                    raw = (strength * rng.uniform(-1, 1, config.policy.actions)).astype(np.float32)
                hold -= 1
                observation, _, terminated, truncated, _ = env.step(to_action(env.action_space, raw))
                if terminated or truncated:
                    break
    finally:
        env.close()
    before, now = np.array(places, np.float64).transpose(1, 0, 2)
    return Lessons(first, episode, images, _spread_alike(now), _spread_alike(now - before))


def _spread_alike(states: Float[np.ndarray, "n s"]) -> Float[np.ndarray, "n t"]:
    """What varies in the states, in units of its standard deviation."""
    varying = states[:, states.std(axis=0) > 1e-6]  # noqa: PLR2004
    return (varying - varying.mean(axis=0)) / varying.std(axis=0)


def _evolve_eyes(
    config: TrainConfig, wanted: ESPretraining, lessons: Lessons, tell_about: Told
) -> tuple[Float[np.ndarray, " p"], float, float]:
    """θ with evolved eyes, and what its eyes told as they were drawn and in the end."""
    spec = config.policy
    seen = [
        show(spec.preprocessing, images[-1], images[-2], lessons.first[episode])
        for images, episode in zip(lessons.images, lessons.episode, strict=True)
    ]
    first = [show(spec.preprocessing, image, image, image) for image in lessons.first]

    def judge(theta: np.ndarray) -> float:
        policy = _policy(config, theta)
        assert policy.encoder is not None
        look, state = policy.encoder.look, policy.begin()
        readouts = np.array([look(image, state).readout for image in seen])
        if spec.relative_to_first_frame:
            readouts -= np.array([look(image, state).readout for image in first])[lessons.episode]
        return told_by(readouts, lessons.places)

    drawn = np.stack([flatten(init(spec, seed)) for seed in draw_seeds(config.seed, TEACHING + 1, wanted.draws)])
    told = []
    for i, theta in enumerate(drawn):
        told.append(judge(theta))
        tell_about(f"trying random eyes, best R² {max(told):.2f}", (i + 1) / len(drawn))
    best = int(np.argmax(told))
    scales = np.zeros(drawn.shape[1], np.float32)
    for block in blocks(spec):
        scales[block.start : block.stop] = block.part == "encoder"
    search = start(SNES(wanted.population, wanted.sigma), drawn[best], scales, config.seed)
    for i in range(wanted.iterations):
        thetas, search = ask(search)
        returns = [judge(theta) for theta in thetas]
        search = tell(search, thetas, np.array(returns))
        tell_about(f"teaching eyes, R² {np.mean(returns):.2f}", (i + 1) / wanted.iterations)
    return mean(search), told[best], judge(mean(search))


def _policy(config: TrainConfig, theta: np.ndarray) -> Policy:
    return Policy(config.policy, unflatten(config.policy, theta))


def _inputs(policy: Policy, lessons: Lessons) -> Float[np.ndarray, "n d"]:
    """What the policy's controller receives at the end of each lesson."""
    no_sensors, inputs = np.zeros(policy.spec.sensors, np.float32), []
    counted = (
        policy.spec.relative_to_first_frame or "first_frame_difference" in policy.spec.preprocessing
    )  # from the first look on
    for episode, images in zip(lessons.episode, lessons.images, strict=True):
        state = policy.begin()
        for image in [lessons.first[episode], *images] if counted else images:
            _, state, _ = policy.act(state, {"image": image, "sensors": no_sensors})
        inputs.append(state.inputs)
    return np.array(inputs)


def _with_command(
    config: TrainConfig, theta: np.ndarray, inputs: Float[np.ndarray, "n d"], states: Float[np.ndarray, "n s"]
) -> np.ndarray:
    """θ whose high level says what is known of the state, in as few numbers as it has: those that vary most."""
    assert config.policy.hierarchy is not None
    features = inputs[:, : config.policy.features_size]
    x = as_received(features, Normaliser.of(features))
    weights = ridge(x, states, RIDGE)
    _, strengths, directions = np.linalg.svd(x @ weights, full_matrices=False)
    latent = config.policy.hierarchy.latent_size
    spread = strengths[:latent] / np.sqrt(len(x))
    command = weights @ (directions[:latent].T * COMMAND / spread)
    bias, weight = (block for block in blocks(config.policy) if block.part == "controller")
    rows = np.zeros(weight.shape)  # the last says how long to hold, and is free to say anything
    rows[:latent, : len(command) - 1] = command[:-1].T
    theta = theta.copy()
    theta[bias.start : bias.stop] = [*command[-1], 0]
    theta[weight.start : weight.stop] = rows.ravel()
    return theta
