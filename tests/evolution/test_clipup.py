from typing import Any

import jax.numpy as jnp
import numpy as np

from iap.evolution.pgpe import clipup


def steps_for(max_speed: float, momentum: float, gradients: Any) -> np.ndarray:
    """Return the steps of ClipUp for a sequence of gradients."""
    transformation = clipup(max_speed, momentum)
    state = transformation.init(jnp.zeros(len(gradients[0])))
    steps = []
    for gradient in gradients:
        step, state = transformation.update(jnp.asarray(gradient, dtype=jnp.float32), state)
        steps.append(np.asarray(step))
    return np.array(steps)


def test_the_first_step_has_three_quarters_of_the_maximum_speed_for_any_gradient_norm():
    for norm in (1e-6, 1.0, 1e6):
        steps = steps_for(0.2, 0.9, [[3 * norm, -4 * norm]])
        np.testing.assert_allclose(steps, [[-0.75 * 0.2 * 0.6, 0.75 * 0.2 * 0.8]], rtol=1e-5)


def test_steps_follow_momentum_and_the_speed_limit():
    gradients = np.random.default_rng(0).standard_normal((6, 3))
    velocity = np.zeros(3)
    for step, gradient in zip(steps_for(0.2, 0.9, gradients), gradients, strict=True):
        velocity = 0.9 * velocity - 0.15 * gradient / np.linalg.norm(gradient)
        velocity *= min(1.0, 0.2 / np.linalg.norm(velocity))
        np.testing.assert_allclose(step, velocity, rtol=1e-4, atol=1e-6)


def test_steps_along_one_direction_reach_the_maximum_speed_and_stay_there():
    speeds = np.linalg.norm(steps_for(0.2, 0.9, np.ones((5, 2))), axis=1)
    np.testing.assert_allclose(speeds, [0.15, 0.2, 0.2, 0.2, 0.2], rtol=1e-5)


def test_a_zero_gradient_only_decays_the_velocity():
    first, second = steps_for(0.2, 0.5, [[2.0, 0.0], [0.0, 0.0]])
    np.testing.assert_allclose(second, 0.5 * first, rtol=1e-6)
