"""Parameter-exploring policy gradients (PGPE) and its optimiser, ClipUp."""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

from jaxtyping import Float

from iap._validation import require_name, require_positive
from iap.evolution.shaping import Shaping
from iap.evolution.strategy import EvosaxStrategy, require_number, require_pairs

if TYPE_CHECKING:
    from jaxtyping import Array  # at run time this import loads JAX

    from iap.evolution._evosax import Engine

PERTURBATION_OVER_SPEED = 15  # length of a perturbation over the default maximum speed
RATE_OVER_SPEED = 0.75
TINY = 1e-30  # keeps the division by a norm of 0 finite


@dataclass(frozen=True)
class PGPE(EvosaxStrategy):
    """Parameter-exploring policy gradients with ClipUp (Toklu et al. 2020): σ is learnt for each parameter.

    Attributes:
        population: candidates per iteration, in antithetic pairs, so even.
        sigma: initial σ of every parameter.
        max_speed: the longest step; None is σ√p / 15, a fifteenth of the length of a perturbation.
        momentum: fraction of the velocity kept from step to step.
        sigma_learning_rate: learning rate of σ; σ changes by at most 20 % per iteration.
        shaping: how returns become utilities: centred ranks, or standardised values.
    """

    population: int = 64
    sigma: float = 0.05
    max_speed: float | None = None
    momentum: float = 0.9
    sigma_learning_rate: float = 0.1
    shaping: Shaping = "ranks"

    def __post_init__(self) -> None:
        require_pairs(self.population)
        require_positive("sigma", self.sigma)
        if self.max_speed is not None:
            require_positive("max_speed", self.max_speed)
        require_number("momentum", self.momentum)
        if not 0 <= self.momentum < 1:
            raise ValueError(f"momentum must be at least 0 and less than 1, not {self.momentum}")
        require_positive("sigma_learning_rate", self.sigma_learning_rate)
        require_name("shaping", self.shaping, Shaping)

    def build_engine(self, size: int) -> Engine:
        """Return evosax's PGPE with ClipUp."""
        import evosax.algorithms as evosax
        import jax.numpy as jnp

        from iap.evolution._evosax import UTILITIES_AS_GIVEN, with_params

        max_speed = self.max_speed or self.sigma * sqrt(size) / PERTURBATION_OVER_SPEED
        optimizer = clipup(max_speed, self.momentum)
        algorithm = evosax.PGPE(self.population, jnp.zeros(size), optimizer=optimizer, **UTILITIES_AS_GIVEN)
        return with_params(algorithm, std_init=self.sigma, std_lr=self.sigma_learning_rate)


class ClipUpState(NamedTuple):
    """The velocity, which is the last step."""

    velocity: Float[Array, " p"]


def clipup(max_speed: float, momentum: float = 0.9) -> Any:
    """Return the ClipUp optimiser (Toklu et al. 2020) for one vector, as an optax transformation.

    v ← momentum · v − rate · g/‖g‖, clipped to the length `max_speed`, with rate = 0.75 · max_speed.
    """
    import jax.numpy as jnp
    import optax

    def init(params: Float[Array, " p"]) -> ClipUpState:
        return ClipUpState(jnp.zeros_like(params))

    def update(gradient: Float[Array, " p"], state: ClipUpState, params: Float[Array, " p"] | None = None):
        del params
        direction = gradient / jnp.maximum(jnp.linalg.norm(gradient), TINY)
        velocity = momentum * state.velocity - RATE_OVER_SPEED * max_speed * direction
        speed = jnp.linalg.norm(velocity)
        velocity = velocity * jnp.minimum(1.0, max_speed / jnp.maximum(speed, TINY))
        return velocity, ClipUpState(velocity)

    return optax.GradientTransformation(init, update)  # pyright: ignore[reportArgumentType]
