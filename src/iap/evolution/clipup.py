"""ClipUp (Toklu et al. 2020): steps of one length along the gradient, momentum, and a speed limit."""

from typing import NamedTuple

import jax.numpy as jnp
import optax
from jaxtyping import Array, Float

RATE_OVER_SPEED = 0.75
TINY = 1e-30


class ClipUpState(NamedTuple):
    """The velocity, which is the last step taken."""

    velocity: Float[Array, " p"]


def clipup(max_speed: float, momentum: float = 0.9) -> optax.GradientTransformation:
    """v ← momentum·v − rate·g/‖g‖, shortened to `max_speed` if longer, with rate = 0.75·max_speed; for one vector."""

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
