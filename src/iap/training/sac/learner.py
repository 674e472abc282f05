"""One update of SAC in JAX: critics, actor and entropy coefficient in one gradient step of Adam."""

from collections.abc import Callable
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np

from iap.training.sac.config import SAC
from iap.training.sac.networks import init_network, sample_action, value

CRITICS = 2
FIRST_LOG_ENTROPY_COEFFICIENT = -2.0
BETAS, EPSILON = (0.9, 0.999), 1e-8  # of Adam


class Learnt(NamedTuple):
    """What gradients change: the actor, the critics, and the logarithm of the entropy coefficient."""

    actor: Any
    critics: Any
    log_entropy_coefficient: Any


class Learner(NamedTuple):
    """The state of the optimisation.

    Attributes:
        learnt: the parameters.
        targets: the target critics.
        first, second: Adam's moments.
        updates: number of updates so far.
    """

    learnt: Learnt
    targets: Any
    first: Learnt
    second: Learnt
    updates: Any


class Batch(NamedTuple):
    """Transitions with the noise of the two sampled actions; `goes_on` is 0 after termination."""

    sensors: Any
    actions: Any
    rewards: Any
    next_sensors: Any
    goes_on: Any
    noise: Any
    next_noise: Any


def first_learner(config: SAC, sensors: int, actions: int) -> Learner:
    """Random networks; the target critics are the critics."""
    import jax

    rng = np.random.default_rng([config.seed, 0])
    actor = init_network(rng, sensors, config.hidden, 2 * actions)
    critics = [init_network(rng, sensors + actions, config.hidden, 1) for _ in range(CRITICS)]
    learnt = Learnt(actor, critics, np.float32(FIRST_LOG_ENTROPY_COEFFICIENT))
    zeros = jax.tree.map(np.zeros_like, learnt)
    return Learner(learnt, jax.tree.map(np.array, critics), zeros, zeros, np.int32(0))


class Rates(NamedTuple):
    """The numbers of a config that the update depends on."""

    learning_rate: float
    discount: float
    target_rate: float
    reward_scale: float


def rates_of(config: SAC) -> Rates:
    """The rates of a config."""
    return Rates(config.learning_rate, config.discount, config.target_rate, config.reward_scale)


@cache
def make_updates(rates: Rates) -> Callable[[Learner, Batch], Learner]:
    """A compiled function: one update for each entry of the batch's first axis."""
    import jax

    def step(learner: Learner, batch: Batch) -> tuple[Learner, None]:
        return _update(rates, learner, batch), None

    @partial(jax.jit, donate_argnums=0)
    def updates(learner: Learner, batches: Batch) -> Learner:
        return jax.lax.scan(step, learner, batches)[0]

    return updates


def _update(rates: Rates, learner: Learner, batch: Batch) -> Learner:
    import jax

    gradients = jax.grad(partial(_loss, rates))(learner.learnt, learner.targets, batch)
    count = learner.updates + 1
    first = jax.tree.map(lambda m, g: BETAS[0] * m + (1 - BETAS[0]) * g, learner.first, gradients)
    second = jax.tree.map(lambda v, g: BETAS[1] * v + (1 - BETAS[1]) * g * g, learner.second, gradients)
    rate = rates.learning_rate * jax.numpy.sqrt(1 - BETAS[1] ** count) / (1 - BETAS[0] ** count)
    learnt = jax.tree.map(lambda x, m, v: x - rate * m / (jax.numpy.sqrt(v) + EPSILON), learner.learnt, first, second)
    targets = jax.tree.map(lambda t, x: t + rates.target_rate * (x - t), learner.targets, learnt.critics)
    return Learner(learnt, targets, first, second, count)


def _loss(rates: Rates, learnt: Learnt, targets: Any, batch: Batch) -> Any:
    """The sum of the losses of critics, actor and entropy coefficient, each with gradients of its own part only."""
    from jax import numpy as jnp
    from jax.lax import stop_gradient

    coefficient = stop_gradient(jnp.exp(learnt.log_entropy_coefficient))
    next_actions, next_log = sample_action(stop_gradient(learnt.actor), batch.next_sensors, batch.next_noise)
    next_value = _least(targets, batch.next_sensors, next_actions) - coefficient * next_log
    wanted = stop_gradient(rates.reward_scale * batch.rewards + rates.discount * batch.goes_on * next_value)
    errors = [value(critic, batch.sensors, batch.actions) - wanted for critic in learnt.critics]
    critic_loss = sum(jnp.mean(error**2) for error in errors) / 2
    actions, log = sample_action(learnt.actor, batch.sensors, batch.noise)
    actor_loss = jnp.mean(coefficient * log - _least(stop_gradient(learnt.critics), batch.sensors, actions))
    missing_entropy = stop_gradient(jnp.mean(log)) - actions.shape[-1]  # the target entropy is −1 per action
    return critic_loss + actor_loss - learnt.log_entropy_coefficient * missing_entropy


def _least(critics: Any, sensors: Any, actions: Any) -> Any:
    from jax import numpy as jnp

    return jnp.minimum(*(value(critic, sensors, actions) for critic in critics))
