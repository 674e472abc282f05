"""What every evolution strategy provides: a population of candidates, and an update from their utilities.

A strategy is a frozen dataclass of plain values. Lengths (σ, learning rates, speeds) are in units of the scales that
the search is started with: a parameter of scale 0.1 is perturbed, and moves, a tenth as far.
"""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from iap._validation import require_count
from iap.evolution.shaping import Shaping

if TYPE_CHECKING:
    from iap.evolution._evosax import Engine

State = Any  # a tree of NumPy arrays (NamedTuple or dataclass known to JAX) with an array `mean`


class Strategy(ABC):
    """Base class of the strategies: sample candidates around a mean, then update from their utilities.

    A strategy works on a vector x that starts at 0. Its state is a tree of NumPy arrays with a field `mean`, so that a
    checkpoint can hold it. Register a new strategy once: `STRATEGIES.register("name", MyStrategy)`.

    Attributes:
        population: candidates per iteration.
        shaping: how returns become utilities.
    """

    population: int
    shaping: Shaping = "ranks"

    def check_size(self, size: int) -> None:
        """Raise ValueError if the strategy cannot search this many parameters."""
        del size

    @abstractmethod
    def init(self, size: int) -> State:
        """Return the state before the first iteration, with mean 0."""

    @abstractmethod
    def ask(self, state: State, seed: int, iteration: int) -> tuple[Float[np.ndarray, "n p"], State]:
        """Return the candidates of an iteration, and the state to update with them."""

    @abstractmethod
    def tell(
        self,
        state: State,
        candidates: Float[np.ndarray, "n p"],
        utilities: Float[np.ndarray, " n"],
        theta: Float[np.ndarray, " p"],
    ) -> State:
        """Return the state after an update.

        Args:
            state: the state returned by `ask`.
            candidates: the candidates, in the units of the strategy.
            utilities: the utility of each candidate; larger is better.
            theta: the mean in the units of the parameters, for weight decay.
        """


class EvosaxStrategy(Strategy):
    """A strategy computed by evosax, in float32 on the CPU. JAX is imported when the first search starts."""

    @abstractmethod
    def build_engine(self, size: int) -> "Engine":
        """Return the evosax algorithm for this many parameters."""

    def after_update(self, state: State, theta: Float[np.ndarray, " p"]) -> State:
        """Return the state with the part of the update that evosax does not provide; nothing by default."""
        del theta
        return state

    def init(self, size: int) -> State:
        """Return evosax's initial state at mean 0."""
        from iap.evolution import _evosax

        return _evosax.init(self, size)

    def ask(self, state: State, seed: int, iteration: int) -> tuple[Float[np.ndarray, "n p"], State]:
        """Return evosax's candidates for this seed and iteration."""
        from iap.evolution import _evosax

        return _evosax.ask(self, state, seed, iteration)

    def tell(
        self,
        state: State,
        candidates: Float[np.ndarray, "n p"],
        utilities: Float[np.ndarray, " n"],
        theta: Float[np.ndarray, " p"],
    ) -> State:
        """Return evosax's updated state, then `after_update`."""
        from iap.evolution import _evosax

        return _evosax.tell(self, state, candidates, utilities, theta)


def require_pairs(population: int) -> None:
    """Raise unless the population is an even count."""
    require_count("population", population, least=2)
    if population % 2:
        raise ValueError(f"population must be even, because candidates are antithetic pairs, not {population}")


def require_number(name: str, value: object) -> None:
    """Raise unless `value` is an int or a float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number, not {value!r}")


def require_fraction(name: str, value: float) -> None:
    """Raise unless 0 < value ≤ 1."""
    require_number(name, value)
    if not 0 < value <= 1:
        raise ValueError(f"{name} must be more than 0 and at most 1, not {value}")
