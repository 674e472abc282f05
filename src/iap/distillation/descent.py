"""Adam, by which whatever has gradients is taught."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

MOMENTUM, SQUARES, TINY = 0.9, 0.999, 1e-8

Moments = tuple[Array, Array]
Step = Callable[[Array, Moments, int, Float[Array | np.ndarray, " p"]], tuple[Array, Moments]]


def no_moments(theta: Float[Array, " p"]) -> Moments:
    """Those before the first step."""
    return jnp.zeros_like(theta), jnp.zeros_like(theta)


def descent(steps: int, rate: float) -> Step:
    """θ, moments, the step's number and the gradient → θ and moments; a step's length falls to 0 along a cosine."""

    @jax.jit
    def step(theta: Array, moments: Moments, i: int, slope: Array) -> tuple[Array, Moments]:
        slope /= jnp.maximum(1.0, jnp.linalg.norm(slope))
        first = MOMENTUM * moments[0] + (1 - MOMENTUM) * slope
        second = SQUARES * moments[1] + (1 - SQUARES) * slope**2
        length = rate * 0.5 * (1 + jnp.cos(jnp.pi * i / steps))
        size = jnp.sqrt(second / (1 - SQUARES ** (i + 1))) + TINY
        return theta - length * first / (1 - MOMENTUM ** (i + 1)) / size, (first, second)

    return step
