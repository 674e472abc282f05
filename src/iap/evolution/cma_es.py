"""CMA-ES with a full covariance matrix."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from iap._validation import require_count, require_positive
from iap.evolution.strategy import EvosaxStrategy

if TYPE_CHECKING:
    from iap.evolution._evosax import Engine

MIN_SIGMA_OVER_INITIAL = 1e-5


@dataclass(frozen=True)
class CMAES(EvosaxStrategy):
    """CMA-ES (Hansen 2016) with a full covariance matrix, for up to some hundred parameters.

    It uses only the order of the returns.

    Attributes:
        population: candidates per iteration.
        sigma: initial σ.
    """

    population: int = 24
    sigma: float = 0.1

    max_parameters: ClassVar[int] = 2_000

    def __post_init__(self) -> None:
        require_count("population", self.population, least=4)
        require_positive("sigma", self.sigma)

    def check_size(self, size: int) -> None:
        """Raise if the covariance matrix would be too large."""
        if size > self.max_parameters:
            raise ValueError(
                f"theta0 has {size} parameters, but cma-es stores a covariance matrix of the squared size and takes at "
                f"most {self.max_parameters}: choose snes, which stores one σ per parameter"
            )

    def build_engine(self, size: int) -> "Engine":
        """Return evosax's CMA_ES."""
        import evosax.algorithms as evosax
        import jax.numpy as jnp

        from iap.evolution._evosax import WEIGHTS_BY_ORDER, with_params

        # if all candidates round to the same θ, σ would reach 0, and evosax divides by σ
        min_sigma = self.sigma * MIN_SIGMA_OVER_INITIAL
        algorithm = evosax.CMA_ES(self.population, jnp.zeros(size), **WEIGHTS_BY_ORDER)
        return with_params(algorithm, std_init=self.sigma, std_min=min_sigma)
