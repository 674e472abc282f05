"""Training of a recurrent controller on the controller's inputs in labelled episodes, through time, in JAX.

JAX's compiled loop over the steps of an episode takes a tenth of the time of PyTorch's.
"""

from typing import Any

import numpy as np
from jaxtyping import Float

from iap.distillation.bank import Bank
from iap.distillation.labelling import Arrays
from iap.distillation.optimisation import LARGEST_GRADIENT, one_cycle
from iap.policies import Normaliser, PolicyConfig, blocks

MOMENTS = ("count", "mu", "nu")


def unroll(
    config: PolicyConfig, params: dict[str, Any], normaliser: Normaliser, inputs: Float[Any, "n t d"]
) -> Float[Any, "n t k"]:
    """The actions on sequences of controller inputs (JAX arrays) from the start of an episode, differentiable."""
    import jax
    import jax.numpy as jnp

    x = inputs
    if config.normalise:
        mean, scale, clip = (jnp.asarray(part, jnp.float32) for part in normaliser.coefficients)
        x = jnp.clip((inputs - mean) * scale, -clip, clip)
    count, steps, _ = x.shape
    controller, name = config.controller, "controller"
    if config.hierarchy is not None:
        flat = x[..., : config.controller_inputs_size].reshape(count * steps, -1)
        outputs, _ = config.controller.step(params["controller"], flat[:, :0], flat)
        x = jnp.concatenate([outputs[:, :-1].reshape(count, steps, -1), x[..., config.features_size :]], axis=-1)
        controller, name = config.hierarchy.low_level, "low_level"

    def step(state: Any, now: Any) -> tuple[Any, Any]:
        actions, state = controller.step(params[name], state, now)
        return state, actions

    start = jnp.zeros((count, controller.state_size(x.shape[-1])))
    _, actions = jax.lax.scan(step, start, jnp.swapaxes(x, 0, 1))
    return jnp.swapaxes(actions, 0, 1)


class SequenceTraining:
    """The part of θ behind the encoder, and the optimiser.

    Attributes:
        done: updates so far.
    """

    def __init__(
        self,
        config: PolicyConfig,
        normaliser: Normaliser,
        theta: np.ndarray,
        bank: Bank,
        length: int,
        burn_in: int,
        batch: int,
        updates: int,
        learning_rate: float,
    ) -> None:
        import jax
        import jax.numpy as jnp
        import optax

        self._bank, self._length, self._batch = bank, length, batch
        self._updates, self._rate, self.done = updates, learning_rate, 0
        self._theta = np.asarray(theta, np.float32)
        listed = [block for block in blocks(config) if block.part != "encoder"]
        self._start = listed[0].start
        self._vector: Any = jnp.asarray(self._theta[self._start :])
        self._optimiser = optax.chain(optax.clip_by_global_norm(LARGEST_GRADIENT), optax.scale_by_adam())
        self._state: Any = self._optimiser.init(self._vector)
        self._episodes = [bounds for bounds in bank.episodes() if bounds[1] - bounds[0] > 1]

        def error(vector: Any, inputs: Any, actions: Any, weights: Any) -> Any:
            params: dict[str, Any] = {}
            for block in listed:
                part = vector[block.start - self._start : block.stop - self._start].reshape(block.shape)
                params.setdefault(block.part, {})[block.name] = part
            outputs = unroll(config, params, normaliser, inputs)
            return jnp.sum(weights * (outputs - actions) ** 2) / jnp.sum(weights)

        @jax.jit
        def update(vector: Any, state: Any, rate: Any, *arrays: Any) -> tuple[Any, Any, Any]:
            value, gradient = jax.value_and_grad(error)(vector, *arrays)
            updates, state = self._optimiser.update(gradient, state)
            return vector - rate * updates, state, value

        self._update: Any = update
        self._burn_in = burn_in

    def step(self, rng: np.random.Generator) -> float:
        """One update; the loss."""
        rate = self._rate * one_cycle(self.done / self._updates)
        inputs, actions, weights = self._draw(rng)
        self._vector, self._state, loss = self._update(self._vector, self._state, rate, inputs, actions, weights)
        self.done += 1
        return float(loss)

    def vector(self) -> np.ndarray:
        """The whole of θ."""
        return np.concatenate([self._theta[: self._start], np.asarray(self._vector)])

    def arrays(self) -> Arrays:
        """Everything that a continued training needs."""
        adam = self._state[1]
        return {"vector": np.array(self._vector)} | {f"adam.{n}": np.atleast_1d(getattr(adam, n)) for n in MOMENTS}

    def restore(self, arrays: Arrays, done: int) -> None:
        """Continue from a checkpoint."""
        import jax.numpy as jnp

        self._vector, self.done = jnp.asarray(arrays["vector"]), done
        count, mu, nu = (jnp.asarray(arrays[f"adam.{name}"]) for name in MOMENTS)
        self._state = (self._state[0], self._state[1]._replace(count=count.reshape(()), mu=mu, nu=nu))

    def _draw(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Random windows; the first steps of one that does not start with its episode only warm up the memory."""
        rows, weights = [], np.ones((self._batch, self._length, 1), np.float32)
        for number in range(self._batch):
            start, stop = self._episodes[rng.integers(len(self._episodes))]
            first = int(rng.integers(start, max(start + 1, stop - self._length + 1)))
            index = np.arange(first, first + self._length)
            weights[number, index >= stop] = 0
            if first > start:
                weights[number, : self._burn_in] = 0
            rows.append(np.minimum(index, stop - 1))
        batch = self._bank.rows(np.concatenate(rows), ("inputs", "actions", "weights"))
        shape = self._batch, self._length, -1
        return (
            batch["inputs"].reshape(shape),
            batch["actions"].reshape(shape),
            weights * batch["weights"].reshape(shape),
        )
