"""OpenAI's evolution strategy: antithetic perturbations weighted by utility, followed by Adam."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from math import inf
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from iap._validation import require_name, require_positive
from iap.evolution.shaping import Shaping
from iap.evolution.strategy import (
    EvosaxStrategy,
    State,
    require_fraction,
    require_number,
    require_pairs,
)

if TYPE_CHECKING:
    from jaxtyping import Array  # at run time this import loads JAX

    from iap.evolution._evosax import Engine


@dataclass(frozen=True)
class OpenES(EvosaxStrategy):
    """OpenAI's strategy (Salimans et al. 2017): antithetic perturbations weighted by utility, then Adam.

    Attributes:
        population: candidates per iteration, in antithetic pairs, so even.
        sigma: σ, the standard deviation of the perturbations.
        learning_rate: Adam's step size.
        learning_rate_decay: factor of the learning rate per update; 1 is constant.
        sigma_decay: factor of σ per update; 1 is constant.
        decay_floor: fraction of the initial value below which neither decays.
        weight_decay: fraction of θ subtracted per update, times the learning rate of the parameter.
        shaping: how returns become utilities: centred ranks, or standardised values.
    """

    population: int = 64
    sigma: float = 0.05
    learning_rate: float = 0.03
    learning_rate_decay: float = 1.0
    sigma_decay: float = 1.0
    decay_floor: float = 0.1
    weight_decay: float = 0.005
    shaping: Shaping = "ranks"

    def __post_init__(self) -> None:
        require_pairs(self.population)
        require_positive("sigma", self.sigma)
        require_positive("learning_rate", self.learning_rate)
        require_fraction("learning_rate_decay", self.learning_rate_decay)
        require_fraction("sigma_decay", self.sigma_decay)
        require_fraction("decay_floor", self.decay_floor)
        require_number("weight_decay", self.weight_decay)
        if not 0 <= self.weight_decay < inf:
            raise ValueError(f"weight_decay must be 0 or more, not {self.weight_decay}")
        require_name("shaping", self.shaping, Shaping)

    def build_engine(self, size: int) -> Engine:
        """Return evosax's Open_ES with Adam."""
        import evosax.algorithms as evosax
        import jax.numpy as jnp
        import optax

        from iap.evolution._evosax import UTILITIES_AS_GIVEN, with_params

        adam = optax.adam(_decayed(self.learning_rate, self.learning_rate_decay, self.decay_floor))
        sigma = optax.constant_schedule(self.sigma)  # `after_update` applies the decay
        algorithm = evosax.Open_ES(
            self.population, jnp.zeros(size), optimizer=adam, std_schedule=sigma, **UTILITIES_AS_GIVEN
        )
        return with_params(algorithm)

    def after_update(self, state: State, theta: Float[np.ndarray, " p"]) -> State:
        """Apply weight decay to the mean, and the decay of σ."""
        return _jitted_decay()(self, state, theta)


@cache
def _jitted_decay() -> Callable[..., State]:
    import jax

    return jax.jit(_decay, static_argnames="strategy")


def _decay(strategy: OpenES, state: State, theta: Float[Array, " p"]) -> State:
    rate = _decayed(strategy.learning_rate, strategy.learning_rate_decay, strategy.decay_floor)
    sigma = _decayed(strategy.sigma, strategy.sigma_decay, strategy.decay_floor)
    shrunk = state.mean - rate(state.generation_counter - 1) * strategy.weight_decay * theta
    return state.replace(mean=shrunk, std=sigma(state.generation_counter))


def _decayed(initial: float, decay: float, floor: float) -> Callable[[Any], Any]:
    """Return the schedule initial · max(decay^updates, floor)."""
    import jax.numpy as jnp

    return lambda updates: initial * jnp.maximum(decay ** jnp.float32(updates), floor)
