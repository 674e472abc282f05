"""The strategies as evosax has them: the only module that knows JAX's arrays, and that evosax minimises.

States go in and come out as trees of NumPy arrays, so that a state read from a file and one just computed are the same
to the compiler.
"""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache, partial
from typing import Any, NamedTuple

import evosax.algorithms as evosax
import jax
import jax.numpy as jnp
import numpy as np
import optax
from evosax.core.fitness_shaping import identity_fitness_shaping_fn
from jaxtyping import Float

from iap.evolution.clipup import clipup
from iap.evolution.strategies import ARS, CMAES, PGPE, SNES, OpenES, Strategy

State = Any  # evosax's dataclass of the strategy, with NumPy arrays as leaves
PERTURBATION_OVER_SPEED = 15
LEAST_SIGMA_OVER_FIRST = 1e-5


class Algorithm(NamedTuple):
    """evosax's object, which holds what is compiled, and its numbers."""

    engine: Any
    params: Any


@contextmanager
def float32_on_cpu() -> Iterator[None]:
    """Float32 on the CPU, whatever the process has chosen for its other JAX arrays."""
    with jax.default_device(jax.local_devices(backend="cpu")[0]), jax.enable_x64(False):
        yield


@float32_on_cpu()
def first_state(strategy: Strategy, size: int) -> State:
    """The state of a search that is at 0 and knows nothing."""
    engine, params = _algorithm(strategy, size)
    zeros = np.zeros(size, np.float32)
    state = engine.init(_key(0, 0), zeros, params)
    # evosax remembers the best fitness, but what it sees are utilities, which do not compare between iterations
    return _as_numpy(state.replace(best_solution=zeros, best_fitness=np.float32(-np.inf)))


@float32_on_cpu()
def sample(strategy: Strategy, state: State, seed: int, iteration: int) -> tuple[Float[np.ndarray, "n p"], State]:
    """The iteration's candidates, and the state to update with them."""
    engine, params = _algorithm(strategy, state.mean.size)
    candidates, state = engine.ask(_key(seed, iteration), state, params)
    return np.asarray(candidates), _as_numpy(state)


@float32_on_cpu()
def update(
    strategy: Strategy,
    state: State,
    candidates: Float[np.ndarray, "n p"],
    utilities: Float[np.ndarray, " n"],
    theta: Float[np.ndarray, " p"],
) -> State:
    """The state after the candidates' utilities are known; `theta` is the mean in its own units, which may decay."""
    engine, params = _algorithm(strategy, state.mean.size)
    after, _ = engine.tell(_key(0, 0), candidates, -utilities, state, params)  # no tell draws random numbers
    if isinstance(strategy, OpenES):
        after = _decay(strategy, after, theta)
    return _as_numpy(after)


def _key(seed: int, iteration: int) -> jax.Array:
    """Random numbers by counting: nothing is carried over from one iteration to the next."""
    words = np.random.SeedSequence(seed).generate_state(2)  # JAX alone would drop all but the seed's last 32 bits
    return jax.random.fold_in(jax.random.wrap_key_data(jnp.asarray(words), impl="threefry2x32"), iteration)


@lru_cache(maxsize=32)
def _algorithm(strategy: Strategy, size: int) -> Algorithm:
    shaped = {"fitness_shaping_fn": identity_fitness_shaping_fn, "metrics_fn": _no_metrics}
    ordered = {"fitness_shaping_fn": _weigh_by_order, "metrics_fn": _no_metrics}
    n, theta = strategy.population, jnp.zeros(size)
    match strategy:
        case OpenES():
            steps = optax.adam(_decayed(strategy.learning_rate, strategy.learning_rate_decay, strategy.decay_floor))
            spread = optax.constant_schedule(strategy.sigma)
            return _with_params(evosax.Open_ES(n, theta, optimizer=steps, std_schedule=spread, **shaped))
        case ARS():
            steps = optax.sgd(strategy.learning_rate)
            spread = optax.constant_schedule(strategy.sigma)
            engine = evosax.ARS(n, theta, optimizer=steps, std_schedule=spread, **shaped)
            engine.elite_ratio = strategy.top
            return _with_params(engine)
        case PGPE():
            speed = strategy.max_speed or strategy.sigma * math.sqrt(size) / PERTURBATION_OVER_SPEED
            engine = evosax.PGPE(n, theta, optimizer=clipup(speed, strategy.momentum), **shaped)
            return _with_params(engine, std_init=strategy.sigma, std_lr=strategy.sigma_learning_rate)
        case CMAES():
            # at σ = 0, which candidates that round to one θ lead to, the strategy would divide by it
            least = strategy.sigma * LEAST_SIGMA_OVER_FIRST
            return _with_params(evosax.CMA_ES(n, theta, **ordered), std_init=strategy.sigma, std_min=least)
        case SNES():
            return _with_params(evosax.SNES(n, theta, **ordered), std_init=strategy.sigma)


def _with_params(engine: Any, **chosen: float) -> Algorithm:
    defaults = jax.jit(lambda: engine.default_params)()  # one compilation, not one an operation
    return Algorithm(engine, defaults.replace(**{name: np.float32(value) for name, value in chosen.items()}))


def _decayed(start: float, decay: float, floor: float) -> Callable[[Any], jax.Array]:
    """What `start` has come to after a number of updates."""
    return lambda updates: start * jnp.maximum(decay ** jnp.float32(updates), floor)


@partial(jax.jit, static_argnames="strategy")
def _decay(strategy: OpenES, state: State, theta: Float[np.ndarray, " p"]) -> State:
    """What an update has besides evosax's: θ shrinks, and so does σ."""
    rate = _decayed(strategy.learning_rate, strategy.learning_rate_decay, strategy.decay_floor)
    spread = _decayed(strategy.sigma, strategy.sigma_decay, strategy.decay_floor)
    shrunk = state.mean - rate(state.generation_counter - 1) * strategy.weight_decay * theta
    return state.replace(mean=shrunk, std=spread(state.generation_counter))


def _weigh_by_order(population: Any, fitness: jax.Array, state: Any, params: Any) -> jax.Array:
    """The strategy's weights, best first; those of equal fitness share theirs, so that the sum stays what it is."""
    del population, state
    less = jnp.sum(fitness < fitness[:, None], axis=1, keepdims=True)
    equal = jnp.sum(fitness == fitness[:, None], axis=1, keepdims=True)
    place = jnp.arange(len(fitness))
    theirs = (place >= less) & (place < less + equal)
    return jnp.sum(jnp.where(theirs, params.weights, 0.0) / equal, axis=1)


def _as_numpy(state: State) -> State:
    return jax.tree.map(np.asarray, state)


def _no_metrics(*_: Any) -> dict[str, Any]:
    return {}
