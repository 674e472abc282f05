"""The replay memory of SAC: the latest transitions, sampled uniformly."""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from iap._validation import require_count
from iap.policies import Moments, Normaliser
from iap.training.sac.learner import Batch

FIELDS = ("sensors", "actions", "rewards", "next_sensors", "goes_on")
CAPACITY = 1_000_000  # memory is used only as far as it is filled


class Replay:
    """A ring of transitions."""

    def __init__(self, sensors: int, actions: int, capacity: int = CAPACITY) -> None:
        shapes = {
            "sensors": (sensors,),
            "actions": (actions,),
            "rewards": (),
            "next_sensors": (sensors,),
            "goes_on": (),
        }
        self._arrays = {name: np.empty((capacity, *shape), np.float32) for name, shape in shapes.items()}
        self._capacity = capacity
        self.count = 0

    def __len__(self) -> int:
        """The number of transitions that can be sampled."""
        return min(self.count, self._capacity)

    def add(
        self,
        sensors: Float[np.ndarray, " n"],
        action: Float[np.ndarray, " k"],
        reward: float,
        next_sensors: Float[np.ndarray, " n"],
        terminated: bool,
    ) -> None:
        """Add a transition; the oldest is replaced if the memory is full."""
        values = (sensors, action, reward, next_sensors, not terminated)
        for name, value in zip(FIELDS, values, strict=True):
            self._arrays[name][self.count % self._capacity] = value
        self.count += 1

    def sample(self, rng: np.random.Generator, updates: int, batch: int, normaliser: Normaliser) -> Batch:
        """Batches for several updates, each array (updates, batch, …), with normalised sensors and new noise."""
        index = rng.integers(0, len(self), (updates, batch))
        drawn = {name: array[index] for name, array in self._arrays.items()}
        drawn |= {name: normaliser.apply(drawn[name]) for name in ("sensors", "next_sensors")}
        shape = drawn["actions"].shape
        noise, next_noise = (rng.standard_normal(shape, np.float32) for _ in range(2))
        return Batch(**drawn, noise=noise, next_noise=next_noise)

    def moments_since(self, start: int) -> Moments:
        """The moments of the sensors of the transitions from number `start` on."""
        return Moments.of(self._arrays["sensors"][np.arange(start, self.count) % self._capacity])

    def to_arrays(self) -> dict[str, np.ndarray]:
        """All transitions, as named arrays."""
        return {name: array[: len(self)] for name, array in self._arrays.items()} | {"count": np.array(self.count)}

    def restore(self, arrays: Mapping[str, np.ndarray]) -> None:
        """The inverse of `to_arrays`."""
        self.count = require_count("count", arrays["count"].item(), least=0)
        for name, array in self._arrays.items():
            array[: len(self)] = arrays[name]
