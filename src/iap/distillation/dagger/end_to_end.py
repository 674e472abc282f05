"""Training of a policy without memory on labelled images, end to end, in PyTorch."""

from collections.abc import Callable

import numpy as np

from iap.distillation.bank import Bank
from iap.distillation.dagger.batches import Mirror, joined
from iap.distillation.dagger.imitation import act, imitation_loss
from iap.distillation.labelling import Arrays
from iap.distillation.optimisation import Descent, one_cycle
from iap.policies import Normaliser, PolicyConfig, Symmetry


class EndToEndTraining:
    """θ as a whole, and the optimiser."""

    def __init__(
        self,
        config: PolicyConfig,
        normaliser: Normaliser,
        theta: np.ndarray,
        draw: "Sampler",
        softness: Callable[[int], float],
        updates: int,
        learning_rate: float,
    ) -> None:
        """A training of so many updates; `softness` of the selection depends on how many are done."""
        self._config, self._normaliser, self._draw, self._softness = config, normaliser, draw, softness
        self._descent = Descent(theta, updates, learning_rate, one_cycle)

    @property
    def done(self) -> int:
        """Updates so far."""
        return self._descent.done

    def step(self, rng: np.random.Generator) -> float:
        """One update; the loss."""
        batch = self._draw(rng)
        outputs = act(self._config, self._normaliser, self._descent.theta, batch, self._softness(self.done))
        return self._descent.step(imitation_loss(outputs, batch, self._draw.axes))

    def vector(self) -> np.ndarray:
        """θ."""
        return self._descent.vector()

    def arrays(self) -> Arrays:
        """Everything that a continued training needs."""
        moments = {f"adam.{name}": np.atleast_1d(x) for name, x in self._descent.moments().items()}
        return {"vector": self.vector()} | moments

    def restore(self, arrays: Arrays, done: int) -> None:
        """Continue from a checkpoint."""
        moments = {name.removeprefix("adam."): x for name, x in arrays.items() if name.startswith("adam.")}
        moments["step"] = moments["step"].reshape(())
        self._descent.restore(arrays["vector"], moments, done)


class Sampler:
    """Draws batches in proportion to the importance of steps, half of them mirrored if there is a symmetry.

    Attributes:
        axes: of the cost maps.
    """

    def __init__(self, bank: Bank, batch: int, symmetry: Symmetry | None) -> None:
        self._bank, self._batch, self.axes = bank, batch, bank.axes
        self._cumulated = np.cumsum(bank.column("importance").astype(np.float64))
        self._mirror = None if symmetry is None else Mirror.of(symmetry, bank.axes)

    def __call__(self, rng: np.random.Generator) -> Arrays:
        """A batch."""
        places = rng.random(self._batch) * self._cumulated[-1]
        indices = np.minimum(np.searchsorted(self._cumulated, places, side="right"), len(self._cumulated) - 1)
        if self._mirror is None:
            return self._bank.rows(indices)
        half = self._batch // 2
        return joined(self._bank.rows(indices[:half]), self._mirror(self._bank.rows(indices[half:])))
