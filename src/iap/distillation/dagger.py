"""A low level that remembers, taught to do what a policy would do that is told where things are.

Eyes err at every look, and at each in another way: whoever remembers many looks knows better. What is to be remembered
is hard to find by trying, but what a told policy would do is known at every step, wherever the taught one has led; by
gradients through time the low level learns to do the same from what the eyes say.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from iap.distillation.dataset import require_teacher
from iap.distillation.descent import descent, no_moments
from iap.distillation.es_pretraining import TEACHING, Told
from iap.envs.core import to_action
from iap.envs.protocols import Keypoints, LazyRendering, require_protocol
from iap.policies import Normaliser, Policy, PolicyConfig, blocks
from iap.policies.params import unflatten
from iap.policies.serialization import PolicyFile
from iap.training.config import TRAINING_SEEDS, Distillation, TrainConfig
from iap.training.returns import draw_seeds

IMITATING = TEACHING + (1 << 16)  # the stream of the episodes' seeds, far from those of lessons
BATCH = 32  # episodes
RATE = 0.01  # how far a step goes at first
OFTEN = 500  # steps from one word about progress to the next


class Practice(NamedTuple):
    """An episode: what the eyes said at each step, and what the told policy would have done."""

    commands: Float[np.ndarray, "t latent"]
    actions: Float[np.ndarray, "t k"]


def imitate(
    config: TrainConfig,
    wanted: Distillation,
    theta: Float[np.ndarray, " p"],
    normaliser: Normaliser,
    told: PolicyFile,
    time: int,
    tell_about: Told,
) -> Float[np.ndarray, " p"]:
    """θ with a low level that was taught by a told policy, for the n-th time.

    In the first round the told policy acts, in the others the taught one: it learns what to do where it itself leads.
    """
    spec, env = config.policy, config.env.make()
    teacher = Policy(told.spec, unflatten(told.spec, told.theta), told.normaliser)
    first, *seeds = draw_seeds(config.seed, IMITATING + time, 1 + wanted.dagger_rounds * wanted.dagger_episodes)
    rng, practised = np.random.default_rng(first), []
    learn, theta = _learning(spec, wanted), theta.copy()
    try:
        require_teacher(env)
        for number in range(wanted.dagger_rounds):
            pupil = Policy(spec, unflatten(spec, theta), normaliser)
            for i, seed in enumerate(seeds[number :: wanted.dagger_rounds]):
                share = (number + i / wanted.dagger_episodes) / wanted.dagger_rounds
                tell_about(f"practising, round {number + 1} of {wanted.dagger_rounds}", share)
                practised.append(
                    _practise(env, wanted.keypoints, teacher, pupil, TRAINING_SEEDS + seed, teacher_acts=number == 0)
                )
            theta = learn(
                theta, practised, rng, lambda what, at=number + 1: tell_about(what, at / wanted.dagger_rounds)
            )
    finally:
        env.close()
    return theta


def _practise(
    env: Any, parts: tuple[str, ...], teacher: Policy, pupil: Policy, seed: int, *, teacher_acts: bool
) -> Practice:
    """An episode in which one of the two acts."""
    observation, _ = env.reset(seed=seed)
    taught, knowing, over = pupil.begin(seed), teacher.begin(seed), False
    commands, actions = [], []
    while not over:
        own, taught, _ = pupil.act(taught, observation)
        right, knowing, _ = teacher.act(knowing, {"image": None, "sensors": require_protocol(env, Keypoints).keypoints(parts)})
        commands.append(taught.latent)
        actions.append(right)
        raw = right if teacher_acts else own
        require_protocol(env, LazyRendering).set_rendering(pupil.needs_image(taught))
        observation, _, terminated, truncated, _ = env.step(to_action(env.action_space, raw))
        over = terminated or truncated
    return Practice(np.array(commands, np.float32), np.array(actions, np.float32))


def _learning(spec: PolicyConfig, wanted: Distillation) -> Callable[..., np.ndarray]:
    """θ, all that was practised → θ whose low level does more of what the told policy would have done."""
    low = [block for block in blocks(spec) if block.part == "low"]
    start, stop = low[0].start, low[-1].stop

    def error(of_low: Array, commands: Array, actions: Array, counts: Array) -> Array:
        parts = {b.name: of_low[b.start - start : b.stop - start].reshape(b.shape) for b in low}
        return jnp.sum(counts[..., None] * (remember(parts, commands) - actions) ** 2) / jnp.sum(counts)

    slope, step = jax.jit(jax.value_and_grad(error)), descent(wanted.dagger_steps, RATE)

    def learn(
        theta: np.ndarray, practised: list[Practice], rng: np.random.Generator, tell_about: Callable[[str], None]
    ) -> np.ndarray:
        commands, actions, counts = _padded(practised)
        of_low, recent = jnp.asarray(theta[start:stop]), []
        moments = no_moments(of_low)
        for i in range(wanted.dagger_steps):
            chosen = rng.integers(len(practised), size=BATCH)
            wrong, slopes = slope(of_low, commands[chosen], actions[chosen], counts[chosen])
            of_low, moments = step(of_low, moments, i, slopes)
            recent.append(wrong)
            if (i + 1) % OFTEN == 0:
                tell_about(f"teaching what to do, error {np.mean(recent[-OFTEN:]):.3f}")
        return np.concatenate([theta[:start], np.asarray(of_low), theta[stop:]])

    return learn


def remember(parts: dict[str, Array], commands: Float[Array, "n t latent"]) -> Float[Array, "n t k"]:
    """What a low level that is an LSTM does on what it is told step by step: `controllers.Recurrent`, in JAX."""
    weight = jnp.concatenate([parts["weight_ih"], parts["weight_hh"]], axis=1)
    bias = parts["bias_ih"] + parts["bias_hh"]

    def step(memory: tuple[Array, Array], x: Array) -> tuple[tuple[Array, Array], Array]:
        h, c = memory
        i, f, g, o = jnp.split(jnp.concatenate([x, h], axis=1) @ weight.T + bias, 4, axis=1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(g)
        h = jax.nn.sigmoid(o) * jnp.tanh(c)
        return (h, c), h

    nothing = jnp.zeros((len(commands), parts["weight_hh"].shape[1]))
    _, remembered = jax.lax.scan(step, (nothing, nothing), jnp.swapaxes(commands, 0, 1))
    return jnp.tanh(jnp.swapaxes(remembered, 0, 1) @ parts["output.weight"].T + parts["output.bias"])


def _padded(practised: list[Practice]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Commands and actions of all episodes, as long as the longest, and which steps count: those that there were."""
    lengths = [len(practice.actions) for practice in practised]

    def pad(arrays: list[np.ndarray]) -> np.ndarray:
        return np.stack([np.pad(array, ((0, max(lengths) - len(array)), (0, 0))) for array in arrays])

    commands, actions = zip(*practised, strict=True)
    counts = np.arange(max(lengths)) < np.array(lengths)[:, None]
    return pad(list(commands)), pad(list(actions)), counts.astype(np.float32)
