"""Separable natural evolution strategy: one σ per parameter."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from iap._validation import require_count, require_positive
from iap.evolution.strategy import EvosaxStrategy

if TYPE_CHECKING:
    from iap.evolution._evosax import Engine


@dataclass(frozen=True)
class SNES(EvosaxStrategy):
    """Separable natural evolution strategy (Wierstra et al. 2014): one σ per parameter, for any number of parameters.

    It uses only the order of the returns.

    Attributes:
        population: candidates per iteration.
        sigma: initial σ of every parameter.
    """

    population: int = 64
    sigma: float = 0.05

    def __post_init__(self) -> None:
        require_count("population", self.population, least=2)
        require_positive("sigma", self.sigma)

    def build_engine(self, size: int) -> "Engine":
        """Return evosax's SNES."""
        import evosax.algorithms as evosax
        import jax.numpy as jnp

        from iap.evolution._evosax import WEIGHTS_BY_ORDER, with_params

        algorithm = evosax.SNES(self.population, jnp.zeros(size), **WEIGHTS_BY_ORDER)
        return with_params(algorithm, std_init=self.sigma)
