"""What the evosax strategies share: float32 on the CPU, random keys, the sign flip, and shaping by order.

Only this module knows that evosax minimises. States enter and leave as trees of NumPy arrays, so that a state read
from a file and a state just computed are the same to the JAX compiler.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from evosax.core.fitness_shaping import identity_fitness_shaping_fn
from jaxtyping import Float

from iap.evolution.strategy import EvosaxStrategy, State


class Engine(NamedTuple):
    """An evosax algorithm, which holds the compiled functions, and its hyperparameters."""

    algorithm: Any
    params: Any


@contextmanager
def float32_on_cpu() -> Iterator[None]:
    """Use float32 on the CPU, independent of the JAX settings of the process."""
    with jax.default_device(jax.local_devices(backend="cpu")[0]), jax.enable_x64(False):
        yield


@float32_on_cpu()
def init(strategy: EvosaxStrategy, size: int) -> State:
    """Return the state of a new search at mean 0."""
    algorithm, params = _engine(strategy, size)
    zeros = np.zeros(size, np.float32)
    state = algorithm.init(_key(0, 0), zeros, params)
    # evosax stores the best fitness, but it receives utilities, which do not compare between iterations
    return _as_numpy(state.replace(best_solution=zeros, best_fitness=np.float32(-np.inf)))


@float32_on_cpu()
def ask(strategy: EvosaxStrategy, state: State, seed: int, iteration: int) -> tuple[Float[np.ndarray, "n p"], State]:
    """Return the candidates of the iteration, and the state to update with them."""
    algorithm, params = _engine(strategy, state.mean.size)
    candidates, state = algorithm.ask(_key(seed, iteration), state, params)
    return np.asarray(candidates), _as_numpy(state)


@float32_on_cpu()
def tell(
    strategy: EvosaxStrategy,
    state: State,
    candidates: Float[np.ndarray, "n p"],
    utilities: Float[np.ndarray, " n"],
    theta: Float[np.ndarray, " p"],
) -> State:
    """Return the state after the update; `theta` is the mean in the units of the parameters."""
    algorithm, params = _engine(strategy, state.mean.size)
    after, _ = algorithm.tell(_key(0, 0), candidates, -utilities, state, params)  # no tell draws random numbers
    return _as_numpy(strategy.after_update(after, theta))


def with_params(algorithm: Any, **chosen: float) -> Engine:
    """Return the algorithm with its default hyperparameters, except those chosen."""
    defaults = jax.jit(lambda: algorithm.default_params)()  # jit compiles once, not once per operation
    return Engine(algorithm, defaults.replace(**{name: np.float32(value) for name, value in chosen.items()}))


@lru_cache(maxsize=32)
def _engine(strategy: EvosaxStrategy, size: int) -> Engine:
    return strategy.build_engine(size)


def _key(seed: int, iteration: int) -> jax.Array:
    """Return the random key of an iteration: a function of the counter, so that no key has to be stored."""
    words = np.random.SeedSequence(seed).generate_state(2)  # JAX alone would use only the last 32 bits of the seed
    return jax.random.fold_in(jax.random.wrap_key_data(jnp.asarray(words), impl="threefry2x32"), iteration)


def _weigh_by_order(population: Any, fitness: jax.Array, state: Any, params: Any) -> jax.Array:
    """Assign the strategy's weights, best first; candidates of equal fitness share theirs, so the sum is unchanged."""
    del population, state
    less = jnp.sum(fitness < fitness[:, None], axis=1, keepdims=True)
    equal = jnp.sum(fitness == fitness[:, None], axis=1, keepdims=True)
    place = jnp.arange(len(fitness))
    shared = (place >= less) & (place < less + equal)
    return jnp.sum(jnp.where(shared, params.weights, 0.0) / equal, axis=1)


def _as_numpy(state: State) -> State:
    return jax.tree.map(np.asarray, state)


def _no_metrics(*_: Any) -> dict[str, Any]:
    return {}


# options of an evosax algorithm: it takes utilities as they are, or weighs candidates by the order of their utilities
UTILITIES_AS_GIVEN = {"fitness_shaping_fn": identity_fitness_shaping_fn, "metrics_fn": _no_metrics}
WEIGHTS_BY_ORDER = {"fitness_shaping_fn": _weigh_by_order, "metrics_fn": _no_metrics}
