"""DAgger for a recurrent low level: it learns the teacher's actions on the states that it reaches itself.

The encoder's estimates are noisy in every frame. A recurrent low level averages the noise out; what it has to remember
is hard to find by search, but the teacher's action is known at every step, wherever the student leads.
"""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float

from iap.distillation.config import Distillation
from iap.distillation.optimisation import LARGEST_GRADIENT
from iap.distillation.pretrained import PRETRAINING, Report
from iap.envs.core import EnvConfig, to_action
from iap.envs.protocols import Keypoints, LazyRendering, find_protocol, require_protocol
from iap.policies import Policy, PolicyConfig, blocks
from iap.rollouts import TRAINING_SEEDS, draw_seeds

DAGGER = PRETRAINING + (1 << 16)  # the stream of the episodes' seeds
BATCH = 32  # episodes
LEARNING_RATE = 0.01
REPORT_EVERY = 500  # steps


class LabelledEpisode(NamedTuple):
    """The student's command at each step, and the teacher's action there."""

    commands: Float[np.ndarray, "t latent"]
    actions: Float[np.ndarray, "t k"]


def train_low_level(
    pretraining: Distillation,
    env: EnvConfig,
    student: Policy,
    teacher: Policy,
    seed: int,
    round_number: int,
    report: Report,
) -> Float[np.ndarray, " p"]:
    """The student's θ with a low level trained on the teacher's actions.

    In the first round the teacher acts, in the others the student: it learns what to do where it leads itself.
    """
    made = env.make()
    rounds, episodes = pretraining.dagger_rounds, pretraining.dagger_episodes
    first, *seeds = draw_seeds(seed, DAGGER + round_number, 1 + rounds * episodes)
    rng, labelled = np.random.default_rng(first), []
    try:
        require_protocol(made, Keypoints)
        for number in range(rounds):
            for i, episode_seed in enumerate(seeds[number::rounds]):
                report(f"DAgger, round {number + 1} of {rounds}", (number + i / episodes) / rounds)
                acting = "teacher" if number == 0 else "student"
                labelled.append(
                    _run(made, pretraining.keypoints, teacher, student, TRAINING_SEEDS + episode_seed, acting)
                )
            theta = _fit(student, labelled, rng, pretraining.dagger_steps, report, (number + 1) / rounds)
            student = Policy(student.config, theta, student.normaliser)
    finally:
        made.close()
    return student.theta


def _run(
    env: Any, keypoints: tuple[str, ...], teacher: Policy, student: Policy, seed: int, acting: str
) -> LabelledEpisode:
    """An episode in which one of the two acts and both are asked."""
    observation, _ = env.reset(seed=seed)
    located, lazy = require_protocol(env, Keypoints), find_protocol(env, LazyRendering)
    student_state, teacher_state, over = student.reset(seed), teacher.reset(seed), False
    commands, actions = [], []
    while not over:
        own, student_state, _ = student.act(student_state, observation)
        sensors = {"image": None, "sensors": located.keypoints(keypoints)}
        label, teacher_state, _ = teacher.act(teacher_state, sensors)
        commands.append(student_state.latent)
        actions.append(label)
        if lazy is not None:
            lazy.set_rendering(student.needs_image(student_state))
        raw = label if acting == "teacher" else own
        observation, _, terminated, truncated, _ = env.step(to_action(env.action_space, raw))
        over = terminated or truncated
    return LabelledEpisode(np.array(commands, np.float32), np.array(actions, np.float32))


def _fit(
    student: Policy,
    labelled: list[LabelledEpisode],
    rng: np.random.Generator,
    steps: int,
    report: Report,
    share: float,
) -> np.ndarray:
    """θ whose low level imitates the teacher's actions in all episodes so far, by gradients through time.

    In JAX, whose compiled loop over the steps of an episode takes a tenth of the time of PyTorch's.
    """
    import jax
    import jax.numpy as jnp
    import optax

    config, theta = student.config, student.theta.copy()
    low_level = [block for block in blocks(config) if block.part == "low_level"]
    start, stop = low_level[0].start, low_level[-1].stop
    commands, actions, weights = _padded(labelled)
    optimiser = optax.chain(
        optax.clip_by_global_norm(LARGEST_GRADIENT), optax.adam(optax.cosine_decay_schedule(LEARNING_RATE, steps))
    )

    def error(vector: Any, commands: Any, actions: Any, weights: Any) -> Any:
        params = {b.name: vector[b.start - start : b.stop - start].reshape(b.shape) for b in low_level}
        outputs = unroll(config, params, commands)
        return jnp.sum(weights[..., None] * (outputs - actions) ** 2) / jnp.sum(weights)

    @jax.jit
    def step(vector: Any, state: Any, *batch: Any) -> tuple[Any, Any, Any]:
        value, gradient = jax.value_and_grad(error)(vector, *batch)
        updates, state = optimiser.update(gradient, state)
        return optax.apply_updates(vector, updates), state, value

    vector, recent = jnp.asarray(theta[start:stop]), []
    state = optimiser.init(vector)
    for i in range(steps):
        chosen = rng.integers(len(labelled), size=BATCH)
        vector, state, value = step(vector, state, commands[chosen], actions[chosen], weights[chosen])
        recent.append(value)
        if (i + 1) % REPORT_EVERY == 0:
            report(f"imitating the teacher, error {np.mean(recent[-REPORT_EVERY:]):.3f}", share)
    return np.concatenate([theta[:start], np.asarray(vector), theta[stop:]])


def unroll(config: PolicyConfig, params: dict[str, Any], commands: Float[Any, "n t latent"]) -> Float[Any, "n t k"]:
    """The low level's outputs on sequences of commands (JAX arrays), from the start of an episode."""
    import jax
    import jax.numpy as jnp

    assert config.hierarchy is not None
    low_level = config.hierarchy.low_level

    def step(state: Any, inputs: Any) -> tuple[Any, Any]:
        outputs, state = low_level.step(params, state, inputs)
        return state, outputs

    start = jnp.zeros((commands.shape[0], low_level.state_size(commands.shape[2])))
    _, outputs = jax.lax.scan(step, start, jnp.swapaxes(jnp.asarray(commands), 0, 1))
    return jnp.swapaxes(outputs, 0, 1)


def _padded(labelled: list[LabelledEpisode]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Commands and actions of all episodes, padded to the longest, and the weight of each step: 0 for padding."""
    lengths = [len(episode.actions) for episode in labelled]

    def pad(arrays: list[np.ndarray]) -> np.ndarray:
        return np.stack([np.pad(array, ((0, max(lengths) - len(array)), (0, 0))) for array in arrays])

    commands, actions = zip(*labelled, strict=True)
    weights = np.arange(max(lengths)) < np.array(lengths)[:, None]
    return pad(list(commands)), pad(list(actions)), weights.astype(np.float32)
