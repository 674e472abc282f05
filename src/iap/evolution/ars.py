"""Augmented random search: a plain gradient step along the best directions."""

from dataclasses import dataclass
from typing import TYPE_CHECKING

from iap._validation import require_positive
from iap.evolution.strategy import EvosaxStrategy, require_fraction, require_pairs

if TYPE_CHECKING:
    from iap.evolution._evosax import Engine


@dataclass(frozen=True)
class ARS(EvosaxStrategy):
    """Augmented random search (Mania et al. 2018): a plain step along the best directions.

    The step is divided by the standard deviation of the returns it uses, so returns are only standardised.

    Attributes:
        population: candidates per iteration, in antithetic pairs, so even.
        sigma: σ, the standard deviation of the perturbations.
        learning_rate: step size.
        top: fraction of directions used: those with the larger max(r⁺, r⁻).
    """

    population: int = 64
    sigma: float = 0.03
    learning_rate: float = 0.02
    top: float = 0.5

    shaping = "standardised"

    def __post_init__(self) -> None:
        require_pairs(self.population)
        require_positive("sigma", self.sigma)
        require_positive("learning_rate", self.learning_rate)
        require_fraction("top", self.top)

    def build_engine(self, size: int) -> "Engine":
        """Return evosax's ARS with plain gradient descent."""
        import evosax.algorithms as evosax
        import jax.numpy as jnp
        import optax

        from iap.evolution._evosax import UTILITIES_AS_GIVEN, with_params

        sgd, sigma = optax.sgd(self.learning_rate), optax.constant_schedule(self.sigma)
        algorithm = evosax.ARS(
            self.population, jnp.zeros(size), optimizer=sgd, std_schedule=sigma, **UTILITIES_AS_GIVEN
        )
        algorithm.elite_ratio = self.top
        return with_params(algorithm)
